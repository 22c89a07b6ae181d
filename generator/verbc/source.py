"""Reads YAML strictly and keeps the place of every key and value.

Keys are text as written. A plain scalar stays what was written, too, until somebody wants a value: then only `true`,
`false`, `null` and decimal numbers, as JSON writes them, are anything but text.
"""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from .problems import Mark, Problem, Source, SpecError, quoted

DEPTH = 64  # nested maps and lists; a spec needs about a dozen
ALIASED = 100_000  # values that aliases may repeat in one file; more is a bomb

DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
# What YAML 1.2 lets a file hold; libyaml refuses the rest without saying where.
UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Plain(str):
    """A scalar written without quotes."""

    __slots__ = ()

    @property
    def value(self) -> Any:
        """The value where text is not what is wanted."""
        if self in WORDS:
            return WORDS[self]
        return json.loads(self) if DECIMAL.fullmatch(self) else str(self)


class Map(dict[str, Any]):
    """A YAML map that knows where it, its keys and its values stand."""

    __slots__ = ("keys_at", "mark", "values_at")

    def __init__(self, mark: Mark) -> None:
        super().__init__()
        self.mark = mark
        self.keys_at: dict[str, Mark] = {}
        self.values_at: dict[str, Mark] = {}

    def put(self, key: str, value: Any, key_at: Mark, value_at: Mark) -> None:
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
        raise _failure(source, bad.start(), f"the character U+{ord(bad[0]):04X} cannot stand in YAML; take it out")
    return source


def load(source: Source) -> Map:
    """The document of a source, which is a map.

    Raises:
        SpecError: it is not one YAML document of the strict kind.
    """
    try:
        return _Composer(source).document()
    except yaml.MarkedYAMLError as error:
        raise SpecError([_syntax(source, error)]) from None


def _failure(source: Source, offset: int, message: str) -> SpecError:
    before = source.text[:offset]
    line = before.count("\n") + 1
    return SpecError([Problem(Mark(source, line, offset - before.rfind("\n")), message)])


def _syntax(source: Source, error: yaml.MarkedYAMLError) -> Problem:
    place = error.problem_mark or error.context_mark
    mark = Mark(source, place.line + 1, place.column + 1) if place else Mark(source, 1, 1)
    if "\t" in source.line(mark.line)[: mark.column]:
        return Problem(mark, "a tab cannot indent YAML; use spaces")
    return Problem(mark, f"this is not YAML: {error.problem or 'it cannot be read'}")


class _Composer:
    """Builds positioned data from libyaml's events, node by node."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.parser = yaml.CSafeLoader(source.text)
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.open: set[str] = set()
        self.seen = 0
        self.aliased = 0

    def document(self) -> Map:
        self.parser.get_event()
        first = self.parser.get_event()
        if not isinstance(first, yaml.DocumentStartEvent):
            raise self.failure(None, "the file is empty; a spec is a map")
        event = self.parser.get_event()
        root = self.node(event, 0)
        if not isinstance(root, Map):
            raise self.failure(event, "a spec is a map; write `key: value` lines")
        self.parser.get_event()
        after = self.parser.get_event()
        if not isinstance(after, yaml.StreamEndEvent):
            raise self.failure(after, "a second document begins here; a spec file holds one")
        return root

    def mark(self, event: Any) -> Mark:
        place = event.start_mark
        return Mark(self.source, place.line + 1, place.column + 1)

    def failure(self, event: Any, message: str) -> SpecError:
        return SpecError([Problem(self.mark(event) if event else Mark(self.source, 1, 1), message)])

    def node(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event)
        if event.tag is not None:
            raise self.failure(event, f"the tag {quoted(event.tag)} has no meaning here; take it out")
        if depth > DEPTH:
            raise self.failure(event, f"this is nested more than {DEPTH} deep")
        anchor = event.anchor
        before = self.seen
        self.seen += 1
        if anchor:
            if anchor in self.anchors or anchor in self.open:
                raise self.failure(event, f"the anchor {quoted(anchor)} is defined twice")
            self.open.add(anchor)
        built = self.built(event, depth)
        if anchor:
            self.open.discard(anchor)
            self.anchors[anchor] = (built, self.seen - before)
        return built

    def built(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            return event.value if event.style else Plain(event.value)
        if isinstance(event, yaml.SequenceStartEvent):
            return self.sequence(event, depth)
        return self.mapping(event, depth)

    def alias(self, event: Any) -> Any:
        if event.anchor in self.open:
            raise self.failure(event, f"the alias {quoted(event.anchor)} holds itself")
        if event.anchor not in self.anchors:
            raise self.failure(event, f"the alias {quoted(event.anchor)} has no anchor before it")
        value, size = self.anchors[event.anchor]
        self.aliased += size
        self.seen += size
        if self.aliased > ALIASED:
            raise self.failure(event, f"aliases repeat more than {ALIASED} values; write them out")
        return value

    def sequence(self, event: Any, depth: int) -> Seq:
        items = Seq(self.mark(event))
        while not isinstance(item := self.parser.get_event(), yaml.SequenceEndEvent):
            value = self.node(item, depth + 1)
            if value == "" and isinstance(value, Plain):
                raise self.failure(item, "this item has no value; write one or take it out")
            items.put(value, self.mark(item))
        return items

    def mapping(self, event: Any, depth: int) -> Map:
        items = Map(self.mark(event))
        while not isinstance(key_event := self.parser.get_event(), yaml.MappingEndEvent):
            key = self.key(key_event, items)
            value_event = self.parser.get_event()
            value = self.node(value_event, depth + 1)
            if value == "" and isinstance(value, Plain):
                raise self.failure(key_event, f"the key {quoted(key)} has no value; write one or take it out")
            items.put(key, value, self.mark(key_event), self.mark(value_event))
        return items

    def key(self, event: Any, items: Map) -> str:
        if not isinstance(event, yaml.ScalarEvent) or event.tag is not None or event.anchor:
            raise self.failure(event, "a key is plain text")
        if event.value == "<<" and not event.style:
            raise self.failure(event, "merge keys are not read; use `shared` and `use`")
        if event.value in items:
            first = items.keys_at[event.value]
            raise self.failure(event, f"the key {quoted(event.value)} is already on line {first.line}")
        return str(event.value)
