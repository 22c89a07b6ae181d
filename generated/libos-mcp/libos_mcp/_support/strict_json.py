"""JSON read strictly: what other readers silently repair, or let through, is found before anything relies on it."""

from __future__ import annotations

import json
import math
from typing import Any, Final

DEPTH = 64
# Python turns no longer number into text; a number of more bits could not leave again.
_INTEGER_BITS = 14_000

_NOTHING: Final = object()


class Unacceptable(ValueError):  # noqa: N818 - a verdict on the text, with its reason
    """Why a text or value is not taken: `reason` is a predicate, such as "is not JSON", that holds nothing of it.

    `value` is what the text stands for if it could be parsed at all, and None otherwise.
    """

    def __init__(self, reason: str, value: Any = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.value = value


def parse(text: str | bytes, depth: int = DEPTH) -> Any:
    """The value that `text` stands for; `1.0` becomes `1`. Raises Unacceptable, and nothing else."""
    reader = _Reader()
    value = reader.read(_decoded(text))
    if reader.problem is not None:
        raise Unacceptable(reader.problem, value)
    try:
        return limited(value, depth)
    except Unacceptable as error:
        raise Unacceptable(error.reason, value) from None


def limited(value: Any, depth: int = DEPTH) -> Any:
    """`value`, with integral floats as integers; a list or object is copied only where that changes something.

    Raises Unacceptable for more than `depth` levels, numbers that are not finite, invalid Unicode, and what is no JSON.
    """
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _encodable(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return _printable(value)
    if kind is float:
        return _finite(value)
    if depth == 0:
        raise Unacceptable("is nested too deeply")
    if kind is dict:
        return _limited_object(value, depth - 1)
    if kind is list:
        return _limited_list(value, depth - 1)
    raise Unacceptable("holds something that is not JSON")


def _limited_object(value: dict[Any, Any], depth: int) -> dict[str, Any]:
    changed: dict[str, Any] | None = None
    for key, item in value.items():
        if type(key) is not str:
            raise Unacceptable("has a key that is not a string")
        if not key.isascii():
            _encodable(key)
        kept = limited(item, depth)
        if kept is not item:
            changed = changed if changed is not None else dict(value)
            changed[key] = kept
    return value if changed is None else changed


def _limited_list(value: list[Any], depth: int) -> list[Any]:
    kept = [limited(item, depth) for item in value]
    return value if all(new is old for new, old in zip(kept, value, strict=True)) else kept


def _encodable(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Unacceptable("holds text that is not valid Unicode") from None
    return text


def _printable(number: int) -> int:
    if number.bit_length() > _INTEGER_BITS:
        raise Unacceptable("holds a number that is too long")
    return number


def _finite(number: float) -> int | float:
    if not math.isfinite(number):
        raise Unacceptable("holds a number that is not finite")
    return int(number) if number.is_integer() else number


def _decoded(text: str | bytes) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        raise Unacceptable("is not UTF-8") from None


class _Reader:
    """Reads one text to its end, and remembers the first thing that is wrong with it."""

    def __init__(self) -> None:
        self.problem: str | None = None

    def read(self, text: str) -> Any:
        value = self._read(text, {})
        # Numbers are looked at one by one only when one of them is too long, because that is slow.
        return value if value is not _NOTHING else self._read(text, {"parse_int": self._number})

    def _read(self, text: str, hooks: dict[str, Any]) -> Any:
        try:
            return json.loads(text, object_pairs_hook=self._object, **hooks)
        except json.JSONDecodeError:
            raise Unacceptable("is not JSON") from None
        except RecursionError:
            raise Unacceptable("is nested too deeply") from None
        except ValueError:
            return _NOTHING

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            self.problem = "has an object with the same key twice"
        return value

    def _number(self, digits: str) -> int | None:
        try:
            return int(digits)
        except ValueError:
            self.problem = "holds a number that is too long"
            return None
