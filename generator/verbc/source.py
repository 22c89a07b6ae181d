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
# What a file may hold: what YAML 1.2 lets it, without the further line breaks of YAML 1.1, which libyaml still counts.
UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|\r(?!\n)")
# What a text may not hold either, when it is written with an escape.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")


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
        number = json.loads(self)
        return int(number) if isinstance(number, float) and number.is_integer() else number


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
        raise _failure(source, bad.start(), _cannot_stand(bad[0]))
    return source


def load(source: Source) -> Map:
    """The document of a source, which is a map.

    Raises:
        SpecError: it is not one YAML document of the strict kind.
    """
    composer = _Composer(source)
    try:
        document = composer.document()
    except yaml.MarkedYAMLError as error:
        raise SpecError([*composer.problems, _syntax(source, error)]) from None
    except SpecError as error:
        raise SpecError([*composer.problems, *error.problems]) from None
    if composer.problems:
        raise SpecError(composer.problems)
    return document


def _cannot_stand(character: str) -> str:
    return f"the character U+{ord(character):04X} cannot stand in a spec; take it out"


def _failure(source: Source, offset: int, message: str) -> SpecError:
    before = source.text[:offset]
    line = before.count("\n") + 1
    return SpecError([Problem(Mark(source, line, offset - before.rfind("\n")), message)])


def _syntax(source: Source, error: yaml.MarkedYAMLError) -> Problem:
    place, message = error.problem_mark or error.context_mark, error.problem or "it cannot be read"
    mark = Mark(source, place.line + 1, place.column + 1) if place else Mark(source, 1, 1)
    if "\t" in source.line(mark.line)[: mark.column]:
        return Problem(mark, "a tab cannot indent YAML; use spaces")
    opened = error.context_mark
    if (
        place
        and opened
        and source.text[opened.index : opened.index + 1] in _OPENING
        and place.index >= len(source.text.rstrip())
    ):
        what = _OPENING[source.text[opened.index]]
        return Problem(
            Mark(source, opened.line + 1, opened.column + 1),
            f"this is not YAML: the {what} that opens here is never closed",
        )
    return Problem(mark, f"this is not YAML: {_PLAINLY.get(message, message)}")


# What libyaml says of the two commonest slips, in words for people.
_PLAINLY = {
    "mapping values are not allowed in this context": "this colon would begin a map; put a text that holds one in quotes",
    "found character that cannot start any token": "no text can begin with this character; put it in quotes",
}


_OPENING = {'"': "quote", "'": "quote", "[": "bracket", "{": "bracket"}


class _Composer:
    """Builds positioned data from libyaml's events, node by node."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.parser = yaml.CSafeLoader(source.text)
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.open: set[str] = set()
        self.problems: list[Problem] = []  # what need not end the reading
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
        # A mark for every key and value: this way round it costs half as much.
        return tuple.__new__(Mark, (self.source, place.line + 1, place.column + 1))

    def report(self, event: Any, message: str) -> None:
        self.problems.append(Problem(self.mark(event), message))

    def failure(self, event: Any, message: str) -> SpecError:
        return SpecError([Problem(self.mark(event) if event else Mark(self.source, 1, 1), message)])

    def node(self, event: Any, depth: int) -> Any:
        # Most nodes are plain scalars, so they go the shortest way.
        if type(event) is yaml.ScalarEvent and event.anchor is None and event.tag is None:
            self.seen += 1
            return self.scalar(event)
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event)
        if event.tag is not None:
            written = event.tag.replace("tag:yaml.org,2002:", "!!")
            self.report(event, f"the tag {quoted(written)} has no meaning here; take it out")
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
            return self.scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self.sequence(event, depth)
        return self.mapping(event, depth)

    def scalar(self, event: Any) -> str:
        if event.style == '"' and (control := CONTROL.search(event.value)):
            self.report(event, _cannot_stand(control[0]))
        return event.value if event.style else Plain(event.value)

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
                self.report(item, "this item has no value; write one or take it out")
            items.put(value, self.mark(item))
        return items

    def mapping(self, event: Any, depth: int) -> Map:
        items = Map(self.mark(event))
        while not isinstance(key_event := self.parser.get_event(), yaml.MappingEndEvent):
            key = self.key(key_event, items)
            value_event = self.parser.get_event()
            value = self.node(value_event, depth + 1)
            if value == "" and isinstance(value, Plain):
                self.report(key_event, f"the key {quoted(key)} has no value; write one or take it out")
            if key not in items:
                items.put(key, value, self.mark(key_event), self.mark(value_event))
        return items

    def key(self, event: Any, items: Map) -> str:
        if not isinstance(event, yaml.ScalarEvent) or event.tag is not None or event.anchor:
            raise self.failure(event, "a key is plain text")
        key = str(event.value)
        if key == "<<" and not event.style:
            self.report(event, "merge keys are not read; use `shared` and `use`")
        elif event.style == '"' and (control := CONTROL.search(key)):
            self.report(event, _cannot_stand(control[0]))
        elif key in items:
            self.report(event, f"the key {quoted(key)} is already on line {items.keys_at[key].line}")
        return key
