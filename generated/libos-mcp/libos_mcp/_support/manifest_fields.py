"""The members of an object of a manifest, taken one by one: what is wrong with one is noted, and the others are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from .quoting import quoted

Path: TypeAlias = tuple[str | int, ...]
Check: TypeAlias = Callable[[Any], Any]

_REQUIRED: Final = object()


class FieldError(ValueError):
    """What a value must be: a predicate such as "must be a list"."""


@dataclass(frozen=True, slots=True)
class ManifestProblem:
    """One thing that is wrong with a manifest, and where: names of members, and numbers of items."""

    path: Path
    text: str  # "`right` must be `read`, `write` or `execute`"

    def __str__(self) -> str:
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{_bare(step)}" for step in self.path)
        return f"{place.removeprefix('.')}: {self.text}." if place else f"{self.text[:1].upper()}{self.text[1:]}."


class Members:
    """One object. `take` gives what a member is read as, or None where it cannot be; then `problems` says why."""

    def __init__(self, value: Any, path: Path, problems: list[ManifestProblem], *, what: str) -> None:
        self.path = path
        self.problems = problems
        self._value: dict[str, Any] | None = value if isinstance(value, dict) else None
        self._what = what
        self._taken: set[str] = set()
        if self._value is None:
            self.note(f"{what} must be an object")

    def take(self, name: str, check: Check, default: Any = _REQUIRED) -> Any:
        """The member `name` as `check` reads it, which raises FieldError; the default where it is not there."""
        self._taken.add(name)
        if self._value is None:
            return None
        if name not in self._value:
            if default is _REQUIRED:
                self.note(f"{self._what} must have {quoted(name)}")
            return None if default is _REQUIRED else default
        try:
            return check(self._value[name])
        except FieldError as error:
            self.note(f"{quoted(name)} {error}", name)
            return None

    def names(self) -> list[str]:
        """The names of all members."""
        return list(self._value or ())

    def has(self, name: str) -> bool:
        """Whether there is such a member."""
        return self._value is not None and name in self._value

    def rest(self) -> None:
        """Note every member that nobody has taken."""
        for name in self.names():
            if name not in self._taken:
                self.note(f"there is no {quoted(name)} in {self._what}", name)

    def note(self, text: str, *place: str | int) -> None:
        """Note a problem, at a place within the object."""
        self.problems.append(ManifestProblem((*self.path, *place), text))


def one_of(*choices: str) -> Check:
    """One of several words."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            *others, last = [quoted(choice) if choice else "empty" for choice in choices]
            raise FieldError(f"must be {', '.join(others)} or {last}" if others else f"must be {last}")
        return value

    return check


def whole(least: int, most: int) -> Check:
    """A whole number within bounds."""

    def check(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise FieldError(f"must be a whole number, {least} to {most}")
        return value

    return check


def matching(pattern: str, sentence: str, most: int) -> Check:
    """A text of at most `most` characters that has a form."""
    compiled = re.compile(pattern)

    def check(value: Any) -> str:
        if not isinstance(value, str) or len(value) > most or not compiled.fullmatch(value):
            raise FieldError(sentence)
        return value

    return check


def or_null(check: Check) -> Check:
    """What `check` takes, or null."""
    return lambda value: None if value is None else check(value)


def anything(value: Any) -> Any:
    """A value that is read by other means."""
    if value is None:
        raise FieldError("must not be null")
    return value


def truth(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise FieldError("must be true or false")
    return value


def an_object(value: Any) -> dict[str, Any]:
    """Any object."""
    if not isinstance(value, dict):
        raise FieldError("must be an object")
    return value


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts without NUL, which no program can be given."""
    if not isinstance(value, list) or not all(isinstance(item, str) and "\0" not in item for item in value):
        raise FieldError("must be a list of texts without NUL")
    return tuple(value)


def repeated(values: Collection[Any]) -> Iterator[int]:
    """The numbers of the items that stand before already; None is no item."""
    seen = set()
    for index, value in enumerate(values):
        if value is not None and value in seen:
            yield index
        seen.add(value)


def _bare(name: str) -> str:
    return quoted(name)[1:-1]
