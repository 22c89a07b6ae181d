"""Parameters that are pinned to the caller: wherever one is nested in arguments, it is his own account, or subject."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Self, TypeAlias

from .call import Caller
from .quoting import quoted, shown
from .refusal import Refusal
from .registry import Registry

_PLACE_CHARACTERS = 64
_ANY_NAME = "*"

# Where a value is: the step to it, and where that step was made from. The arguments themselves are at None.
_Place: TypeAlias = "tuple[_Place, str | int] | None"


class Pin:
    """`pinned` has `account` or `subject` for the name of each pinned parameter."""

    def __init__(self, pinned: Mapping[str, str], *, names: bool) -> None:
        """`names` allows to tell names that no schema declares."""
        self._pinned = dict(pinned)
        self._names = names

    @classmethod
    def of(cls, registry: Registry) -> Self:
        """What the registry pins."""
        return cls((registry.access or {}).get("pin") or {}, names=registry.feedback == "names")

    def refusal(self, arguments: dict[str, Any], caller: Caller, schema: Mapping[str, Any]) -> Refusal | None:
        """Why these arguments are not this caller's to give; None when they are. `schema` is what they fit."""
        if not self._pinned:
            return None
        owned = {"account": caller.account, "subject": caller.subject}
        for place, name, value in self._found(arguments):
            own = owned[self._pinned[name]]
            if own is None or value != own:  # nothing but the same text is equal to a text
                return self._refused(place, name, own, schema)
        return None

    def _found(self, arguments: dict[str, Any]) -> Iterator[tuple[_Place, str, Any]]:
        """Every member with a pinned name: where it is, its name and its value. The outermost come first."""
        waiting: deque[tuple[_Place, Any]] = deque([(None, arguments)])
        while waiting:
            place, value = waiting.popleft()
            members = value.items() if isinstance(value, dict) else enumerate(value)
            for step, member in members:
                if step in self._pinned:
                    yield (place, step), step, member
                if isinstance(member, dict | list):
                    waiting.append(((place, step), member))

    def _refused(self, place: _Place, name: str, own: str | None, schema: Mapping[str, Any]) -> Refusal:
        what = self._pinned[name]
        where = quoted(self._shown(place, _declared(schema)))
        if own is None:
            return Refusal("denied", f"{where} cannot be given: whoever calls has no {what}.")
        return Refusal("denied", f"{where} has to be the {what} of whoever calls, or left out.")

    def _shown(self, place: _Place, declared: frozenset[str]) -> str:
        """A place such as `rows[0].account_id`; of a long one, its end."""
        text = ""
        while place is not None:
            place, step = place
            text = (f"[{step}]" if isinstance(step, int) else f".{self._name(step, declared)}") + text
        text = text.removeprefix(".")
        return text if len(text) <= _PLACE_CHARACTERS else "…" + text[1 - _PLACE_CHARACTERS :]

    def _name(self, name: str, declared: frozenset[str]) -> str:
        return shown(name) if self._names or name in self._pinned or name in declared else _ANY_NAME


def _declared(schema: Mapping[str, Any]) -> frozenset[str]:
    """The names that stand in a schema, of members at any depth."""
    names: set[str] = set()
    waiting: list[Any] = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            members = value.get("properties")
            names.update(members if isinstance(members, Mapping) else ())
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return frozenset(names)
