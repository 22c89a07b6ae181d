"""YAML read strictly, as JSON values: nothing in it can grow, hide, or be taken for what it was not meant to be.

Of what is written without quotes only `true`, `false`, `null` and decimal numbers are anything but text.
"""

from __future__ import annotations

import re
from typing import Any, Final

from .quoting import quoted
from .strict_json import DEPTH, Unacceptable, parse

# Characters that aliases may repeat in one text; more is a bomb.
_ALIASED: Final = 1_000_000
_DECIMAL: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[+-]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)|NaN|-?Infinity")
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}
# What a YAML text may hold as it is, and what a text in quotes may hold by an escape.
_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|\r(?!\n)"
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
# What parsers say of the commonest slips, in words for people.
_PLAINLY: Final = {
    "mapping values are not allowed in this context": "this colon would begin a map; put a text that holds one in quotes",
    "mapping values are not allowed here": "this colon would begin a map; put a text that holds one in quotes",
    "exceeded maximum nesting depth": f"this is nested more than {DEPTH} deep",
    "found character that cannot start any token": "no text can begin with this character; put it in quotes",
}


class YamlError(Exception):
    """Why a text is not taken: its text is such as "line 3, column 5: this key is already on line 2"."""

    def __init__(self, line: int, column: int, reason: str) -> None:
        super().__init__(f"line {line}, column {column}: {reason}")
        self.line = line
        self.column = column
        self.reason = reason


def load_yaml(text: str) -> Any:
    """The JSON value that one YAML document stands for; `1.0` becomes `1`. JSON is YAML. Raises YamlError."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            # Escapes of JSON, such as those for characters beyond 16 bits, are not all known to readers of YAML.
            return parse(text, DEPTH)
        except Unacceptable:
            pass  # it may be YAML, and otherwise its place is told below
    if found := _UNPRINTABLE.search(text):
        raise _at(text, found.start(), _cannot_stand(found[0]))
    return _composed(text)


def _at(text: str, offset: int, reason: str) -> YamlError:
    before = text[:offset]
    return YamlError(before.count("\n") + 1, offset - before.rfind("\n"), reason)


def _cannot_stand(character: str) -> str:
    return f"the character U+{ord(character):04X} cannot stand here; take it out"


def _composed(text: str) -> Any:
    import yaml

    try:
        return _Composer(text).document()
    except yaml.MarkedYAMLError as error:
        place = error.problem_mark or error.context_mark
        reason = error.problem or "it cannot be read"
        line, column = (place.line + 1, place.column + 1) if place else (1, 1)
        raise YamlError(line, column, _PLAINLY.get(reason, f"this is not YAML: {reason}")) from None
    except RecursionError:
        raise YamlError(1, 1, "this is nested too deeply") from None


class _Composer:
    """Makes values of the events of a parser, which are read with `import yaml` when one is made."""

    def __init__(self, text: str) -> None:
        import yaml

        self._yaml = yaml
        self._parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._open: set[str] = set()
        self._seen = 0
        self._aliased = 0

    def document(self) -> Any:
        """The value of the one document."""
        self._parser.get_event()
        first = self._parser.get_event()
        if not isinstance(first, self._yaml.DocumentStartEvent):
            raise YamlError(1, 1, "there is nothing in it")
        value = self._node(self._parser.get_event(), DEPTH)
        self._parser.get_event()
        after = self._parser.get_event()
        if not isinstance(after, self._yaml.StreamEndEvent):
            raise _fault(after, "a second document begins here; there can be one")
        return value

    def _node(self, event: Any, depth: int) -> Any:
        if isinstance(event, self._yaml.AliasEvent):
            return self._alias(event)
        if event.tag is not None:
            written = event.tag.replace("tag:yaml.org,2002:", "!!")
            raise _fault(event, f"the tag {quoted(written)} has no meaning here; take it out")
        before = self._seen
        self._seen += 1
        if event.anchor:
            self._begin_anchor(event)
        value = self._value(event, depth)
        if event.anchor:
            self._open.discard(event.anchor)
            self._anchors[event.anchor] = (value, self._seen - before)
        return value

    def _begin_anchor(self, event: Any) -> None:
        if event.anchor in self._anchors or event.anchor in self._open:
            raise _fault(event, f"the anchor {quoted(event.anchor)} is defined twice")
        self._open.add(event.anchor)

    def _value(self, event: Any, depth: int) -> Any:
        if isinstance(event, self._yaml.ScalarEvent):
            return self._scalar(event)
        if depth == 0:
            raise _fault(event, f"this is nested more than {DEPTH} deep")
        if isinstance(event, self._yaml.SequenceStartEvent):
            return self._list(depth - 1)
        return self._map(depth - 1)

    def _scalar(self, event: Any) -> Any:
        self._seen += len(event.value)
        if event.style:
            return _text(event)
        if event.value == "":
            raise _fault(event, "there is no value here; write one, or take this out")
        return _plain(event)

    def _alias(self, event: Any) -> Any:
        if event.anchor in self._open:
            raise _fault(event, f"the alias {quoted(event.anchor)} holds itself")
        if event.anchor not in self._anchors:
            raise _fault(event, f"the alias {quoted(event.anchor)} has no anchor before it")
        value, size = self._anchors[event.anchor]
        self._aliased += size
        self._seen += size
        if self._aliased > _ALIASED:
            raise _fault(event, "aliases repeat too much; write it out")
        return value

    def _list(self, depth: int) -> list[Any]:
        items = []
        while not isinstance(event := self._parser.get_event(), self._yaml.SequenceEndEvent):
            items.append(self._node(event, depth))
        return items

    def _map(self, depth: int) -> dict[str, Any]:
        items: dict[str, Any] = {}
        while not isinstance(event := self._parser.get_event(), self._yaml.MappingEndEvent):
            key = self._key(event)
            if key in items:
                raise _fault(event, f"the key {quoted(key)} is there before")
            items[key] = self._node(self._parser.get_event(), depth)
        return items

    def _key(self, event: Any) -> str:
        if not isinstance(event, self._yaml.ScalarEvent) or event.tag is not None or event.anchor:
            raise _fault(event, "a key has to be plain text")
        self._seen += len(event.value)
        if event.style:
            return _text(event)
        if event.value == "<<":
            raise _fault(event, "merge keys are not read; write the keys out")
        if event.value == "" or not isinstance(_plain(event), str):
            raise _fault(event, f"the key {quoted(event.value)} is no text; put it in quotes")
        return str(event.value)


def _text(event: Any) -> str:
    if control := _CONTROL.search(event.value):
        raise _fault(event, _cannot_stand(control[0]))
    return str(event.value)


def _plain(event: Any) -> Any:
    """What a scalar without quotes stands for."""
    written: str = event.value
    if written in _WORDS:
        return _WORDS[written]
    if _NOT_FINITE.fullmatch(written):
        raise _fault(event, f"{quoted(written)} is no number that JSON has; put a text in quotes")
    if not _DECIMAL.fullmatch(written):
        return written
    try:
        return parse(written)
    except Unacceptable as error:
        raise _fault(event, f"this number {error.reason.replace('holds a number that ', '')}") from None


def _fault(event: Any, reason: str) -> YamlError:
    place = event.start_mark
    return YamlError(place.line + 1, place.column + 1, reason)
