"""Source → Map: YAML read strictly, event by event, so that nothing in it can grow or hide."""

import re
from typing import Any

import yaml

from .problems import Mark, Problem, Source, SpecError, quoted
from .source import Map, Plain, Seq, cannot_stand

DEPTH = 64  # nested maps and lists; a spec needs about a dozen
ALIASED = 100_000  # values that aliases may repeat in one file; more is a bomb

# What a text may not hold even when it is written with an escape.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")

# What libyaml says of the two commonest slips, in words for people; and what it finds open at the end of a file.
_PLAINLY = {
    "mapping values are not allowed in this context": "this colon would begin a map; put a text that holds one in quotes",
    "found character that cannot start any token": "no text can begin with this character; put it in quotes",
}
_OPENING = {'"': "quote", "'": "quote", "[": "bracket", "{": "bracket"}


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


def _syntax(source: Source, error: yaml.MarkedYAMLError) -> Problem:
    place, message = error.problem_mark or error.context_mark, error.problem or "it cannot be read"
    mark = Mark(source, place.line + 1, place.column + 1) if place else Mark(source, 1, 1)
    if "\t" in source.line(mark.line)[: mark.column]:
        return Problem(mark, "a tab cannot indent YAML; use spaces")
    opened = error.context_mark
    what = _OPENING.get(source.text[opened.index : opened.index + 1]) if opened else None
    if what and place and opened and place.index >= len(source.text.rstrip()):
        mark = Mark(source, opened.line + 1, opened.column + 1)
        return Problem(mark, f"this is not YAML: the {what} that opens here is never closed")
    return Problem(mark, f"this is not YAML: {_PLAINLY.get(message, message)}")


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
            self.report(event, cannot_stand(control[0]))
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
            self.report(event, cannot_stand(control[0]))
        elif key in items:
            self.report(event, f"the key {quoted(key)} is already on line {items.keys_at[key].line}")
        return key
