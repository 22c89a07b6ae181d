"""The text of a spec file, and its data with the place of every key and value.

Keys are text as written. A plain scalar stays what was written, too, until somebody wants a value: then only `true`,
`false`, `null` and decimal numbers, as JSON writes them, are anything but text.
"""

import json
import re
from math import isinf
from pathlib import Path
from typing import Any

from .problems import Mark, Problem, Source, SpecError

DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
# What a file may hold: what YAML 1.2 lets it, without the further line breaks of YAML 1.1, which libyaml still counts.
UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|\r(?!\n)")


class Plain(str):
    """A scalar written without quotes."""

    __slots__ = ()

    @property
    def value(self) -> Any:
        """The value where text is not what is wanted; numbers have one form, so `1.0` is 1."""
        if self in WORDS:
            return WORDS[self]
        if not DECIMAL.fullmatch(self):
            return str(self)
        try:
            number = json.loads(self)
        except ValueError:  # Python reads no integer of thousands of digits
            return str(self)
        if isinstance(number, float):
            return str(self) if isinf(number) else int(number) if number.is_integer() else number
        return number


class Map(dict[str, Any]):
    """A YAML map that knows where it, its keys and its values stand."""

    __slots__ = ("keys_at", "mark", "values_at")

    def __init__(self, mark: Mark) -> None:
        super().__init__()
        self.mark = mark
        self.keys_at: dict[str, Mark] = {}
        self.values_at: dict[str, Mark] = {}

    def put(self, key: str, value: Any, key_at: Mark, value_at: Mark) -> None:
        """Add a key with its value and their places."""
        self[key] = value
        self.keys_at[key] = key_at
        self.values_at[key] = value_at


class Seq(list[Any]):
    """A YAML list that knows where it and its items stand."""

    __slots__ = ("items_at", "mark")

    def __init__(self, mark: Mark) -> None:
        super().__init__()
        self.mark = mark
        self.items_at: list[Mark] = []

    def put(self, item: Any, mark: Mark) -> None:
        """Add an item with its place."""
        self.append(item)
        self.items_at.append(mark)


def native(value: Any) -> Any:
    """A value of a document as plain data, where no schema wants text."""
    match value:
        case Plain():
            return value.value
        case dict():
            return {str(key): native(item) for key, item in value.items()}
        case list():
            return [native(item) for item in value]
        case _:
            return value


def read(path: Path, name: str) -> Source:
    """Read a file of a spec.

    Raises:
        SpecError: it cannot be read, is not UTF-8, or holds characters that no YAML file may hold.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _failure(Source(name, ""), 0, f"this file cannot be read: {error.strerror or 'unknown error'}") from None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        raise _failure(Source(name, before), len(before), "this byte is not UTF-8; save the file as UTF-8") from None
    source = Source(name, text)
    if text.startswith("\ufeff"):
        raise _failure(source, 0, "the file begins with a byte order mark; save it without one")
    if bad := UNPRINTABLE.search(text):
        raise _failure(source, bad.start(), cannot_stand(bad[0]))
    return source


def cannot_stand(character: str) -> str:
    """What is said of a character that no spec may hold."""
    return f"the character U+{ord(character):04X} cannot stand in a spec; take it out"


def _failure(source: Source, offset: int, message: str) -> SpecError:
    before = source.text[:offset]
    line = before.count("\n") + 1
    return SpecError([Problem(Mark(source, line, offset - before.rfind("\n")), message)])
