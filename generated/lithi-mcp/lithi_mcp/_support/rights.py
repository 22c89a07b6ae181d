"""What callers may do: a verb needs rights, and the scopes of a caller grant them, or some of them, or none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from .call import Caller
from .refusal import Refusal
from .registry import Registry, Verb

_PLACE = re.compile(r"<([^<>]*)>")
_COLON = re.compile(r":(?![^<>]*>)")
_ANY = "*"


@dataclass(frozen=True, slots=True)
class Right:
    """`read job:42`, as the texts between its colons: what a caller gave is within one of them, whatever it holds."""

    parts: tuple[str, ...]

    @classmethod
    def of(cls, template: str, arguments: Mapping[str, Any]) -> Self:
        """The right that `template` is with its places `<name>` filled in.

        Raises KeyError or TypeError for an argument that is not there, or no text.
        """
        return cls(
            tuple(_PLACE.sub(lambda place: _text(arguments[place[1]]), part) for part in _COLON.split(template)),
        )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("Only a text can be a part of a right.")
    return value


def rights_of(verb: Verb, arguments: Mapping[str, Any]) -> Iterator[Right]:
    """All the rights that a call needs whose arguments fit."""
    return (Right.of(template, arguments) for template in verb.requires)


def grants(grant: str, right: Right) -> bool:
    """Whether a grant, a right or one that ends in `:*`, covers `right`. Values in `right` are never patterns."""
    parts = grant.split(":")
    if parts[-1] == _ANY:
        return len(right.parts) >= len(parts) and list(right.parts[: len(parts) - 1]) == parts[:-1]
    # What a caller gave may have colons where it is the last part, and only there: `a:b` and `c` are not `a` and `b:c`.
    return grant.split(":", len(right.parts) - 1) == list(right.parts)


class Access:
    """What scopes grant: names of scopes, and grants for each. Without any, whoever is known may do everything."""

    def __init__(self, scopes: Mapping[str, Sequence[str]]) -> None:
        self._scopes = {scope: tuple(granted) for scope, granted in scopes.items()}

    @classmethod
    def of(cls, registry: Registry) -> Self:
        """What the registry says of scopes."""
        return cls((registry.access or {}).get("scopes") or {})

    def refusal(self, caller: Caller, rights: Iterable[Right]) -> Refusal | None:
        """Why a caller may not do what needs all of `rights`; None when he may."""
        if not self._scopes:
            return None
        missing = [right for right in rights if not self.brings(caller, right)]
        if not missing:
            return None
        if caller.credentials is None:
            return Refusal("denied", "This takes a scope, and a call without a key has none.")
        return self._insufficient(missing)

    def brings(self, caller: Caller, right: Right) -> bool:
        """Whether a scope of the caller grants `right`."""
        return any(self._reaches(scope, right) for scope in caller.scopes)

    def _insufficient(self, missing: Sequence[Right]) -> Refusal:
        alone = [scope for scope in self._scopes if all(self._reaches(scope, right) for right in missing)]
        if alone:
            return _out_of_reach("The key lacks a scope; each of `scopes` is enough.", alone)
        together = [scope for scope in self._scopes if any(self._reaches(scope, right) for right in missing)]
        if all(any(self._reaches(scope, right) for scope in together) for right in missing):
            return _out_of_reach("The key lacks scopes; it takes several of `scopes`.", together)
        return _out_of_reach("No scope allows this.", [])

    def _reaches(self, scope: str, right: Right) -> bool:
        return any(grants(grant, right) for grant in self._scopes.get(scope, ()))


def _out_of_reach(message: str, scopes: list[str]) -> Refusal:
    return Refusal("insufficient_scope", message, {"scopes": scopes})
