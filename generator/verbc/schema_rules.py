"""What may be wrong with one schema of a spec, as small rules over its keywords."""

import re
from collections.abc import Callable, Iterator
from itertools import chain
from math import ceil, floor
from typing import Any

import jsonschema_rs

from .problems import listed, nearest, quoted
from .schemas import JSON_TYPES, Node, Types, by_type_alone, children, json_types, type_names
from .spec import Schema
from .support.validation import Validator

Path = tuple[str | int, ...]
Fault = tuple[Path, str]  # where in the schema, and a sentence
Rule = Callable[[Schema, Types], Iterator[Fault]]

FORMATS = frozenset(
    [
        "date",
        "date-time",
        "duration",
        "email",
        "hostname",
        "idn-email",
        "idn-hostname",
        "ipv4",
        "ipv6",
        "iri",
        "iri-reference",
        "json-pointer",
        "regex",
        "relative-json-pointer",
        "time",
        "uri",
        "uri-reference",
        "uri-template",
        "uuid",
    ]
)

# Keyword → the types it says something about.
SUBJECTS: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        ("properties", "required", "additionalProperties", "minProperties", "maxProperties"), frozenset({"object"})
    ),
    **dict.fromkeys(("items", "minItems", "maxItems", "uniqueItems"), frozenset({"array"})),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), frozenset({"string"})),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), frozenset({"integer", "number"})
    ),
}
BOUNDS = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)
OPEN_BOUNDS = (
    ("exclusiveMinimum", "exclusiveMaximum"),
    ("exclusiveMinimum", "maximum"),
    ("minimum", "exclusiveMaximum"),
)
BESIDE_A_NAME = frozenset({"type", "description", "default", "deprecated"})

# What the regular expressions of clients and servers read differently, or some of them not at all.
_ESCAPES = re.compile(r"\\(?:[dDwWsSbBpPAzZG1-9]|k<)")
_CONSTRUCTS = re.compile(r"\(\?(?!:)|[+*?}]\+|\[\[:")


def faults(node: Node, types: Types) -> Iterator[Fault]:
    """Everything wrong with a schema and the schemas inside it."""
    if isinstance(node, str):
        yield from (((), sentence) for sentence in _unknown(node, types))
        return
    found, given = False, node.model_fields_set
    for keywords, rule in RULES:
        if not given.isdisjoint(keywords):
            for fault in rule(node, types):
                found = True
                yield fault
    for path, child in children(node):
        for inner, sentence in faults(child, types):
            found = True
            yield (*path, *inner), sentence
    if not found:
        yield from _refused_by_validator(node, types)


def _unknown(name: str, types: Types) -> Iterator[str]:
    if name not in JSON_TYPES and name not in types.named:
        yield f"there is no type {quoted(name)}{nearest(name, [*JSON_TYPES, *types.named])}"


def types_are_known(node: Schema, types: Types) -> Iterator[Fault]:
    names = type_names(node)
    for name in names:
        yield from ((("type",), sentence) for sentence in _unknown(name, types))
        if len(names) > 1 and name in types.named:
            yield ("type",), f"{quoted(name)} cannot stand in a list of types; use `anyOf`"
    if isinstance(node.type, tuple) and not names:
        yield ("type",), '"type" must not be empty'
    if len(set(names)) < len(names):
        yield ("type",), '"type" names a type twice'


def names_stand_alone(node: Schema, types: Types) -> Iterator[Fault]:
    if isinstance(node.type, str) and node.type in types.named:
        for keyword in sorted(node.model_fields_set - BESIDE_A_NAME):
            yield (keyword,), f"{quoted(keyword)} cannot stand beside the type {quoted(node.type)}; say it in the type"


def keywords_have_an_effect(node: Schema, types: Types) -> Iterator[Fault]:
    names = set(type_names(node))
    if not names or names & set(types.named):
        return
    for keyword in sorted(SUBJECTS.keys() & node.model_fields_set):
        if not SUBJECTS[keyword] & names:
            yield (keyword,), f"{quoted(keyword)} has no effect on the type {listed(sorted(names))}"


def bounds_leave_room(node: Schema, types: Types) -> Iterator[Fault]:
    for low, high in BOUNDS:
        least, most = getattr(node, low), getattr(node, high)
        if least is not None and most is not None and least > most:
            yield (low,), f"{quoted(low)} is greater than {quoted(high)}"
    for low, high in OPEN_BOUNDS:
        least, most = getattr(node, low), getattr(node, high)
        if least is not None and most is not None and least >= most:
            yield (low,), f"{quoted(low)} must be less than {quoted(high)}"
    if set(type_names(node)) == {"integer"}:
        least, most = node.minimum, node.maximum
        if least is not None and most is not None and ceil(least) > floor(most):
            yield ("minimum",), 'no whole number lies between "minimum" and "maximum"'
    if node.multipleOf is not None and node.multipleOf <= 0:
        yield ("multipleOf",), '"multipleOf" must be greater than 0'


def formats_are_known(node: Schema, types: Types) -> Iterator[Fault]:
    if node.format is not None and node.format not in FORMATS:
        yield ("format",), f"there is no format {quoted(node.format)}{nearest(node.format, FORMATS)}"


def patterns_are_portable(node: Schema, types: Types) -> Iterator[Fault]:
    if node.pattern is None:
        return
    escapes = re.sub(r"\\\\", "", node.pattern)
    constructs = re.sub(r"\[(?!\[:)[^\]]*\]", "x", re.sub(r"\\.", "x", node.pattern))
    if found := _ESCAPES.search(escapes) or _CONSTRUCTS.search(constructs):
        yield ("pattern",), f"{quoted(found[0])} means different things to different clients; write the characters out"


def enums_are_sets(node: Schema, types: Types) -> Iterator[Fault]:
    if node.enum is None:
        return
    if not node.enum:
        yield ("enum",), '"enum" must not be empty'
    bare = by_type_alone(node)
    values = types.form(node)["enum"]
    for index, value in enumerate(values):
        if any(_same(value, other) for other in values[:index]):
            yield ("enum", index), "this value stands in the list already"
        elif node.type and not json_types(value) & types.admitted(bare):
            yield ("enum", index), f"this value is not of the type {listed(type_names(node))}"


def consts_are_of_their_type(node: Schema, types: Types) -> Iterator[Fault]:
    if "const" not in node.model_fields_set:
        return
    if node.enum is not None:
        yield ("enum",), '"enum" has no effect beside "const"'
    if node.type and not json_types(types.form(node)["const"]) & types.admitted(by_type_alone(node)):
        yield ("const",), f"this value is not of the type {listed(type_names(node))}"


def alternatives_exist(node: Schema, types: Types) -> Iterator[Fault]:
    for keyword in ("anyOf", "oneOf"):
        if getattr(node, keyword) == ():
            yield (keyword,), f"{quoted(keyword)} must not be empty"


def required_is_listed(node: Schema, types: Types) -> Iterator[Fault]:
    yield from _duplicates(node.required)
    if node.properties is None or node.additionalProperties not in (None, False):
        return
    for index, name in enumerate(node.required):
        if name not in node.properties:
            yield ("required", index), f"there is no property {quoted(name)}{nearest(name, node.properties)}"


def _duplicates(names: tuple[str, ...]) -> Iterator[Fault]:
    for index, name in enumerate(names):
        if name in names[:index]:
            yield ("required", index), f"{quoted(name)} stands in the list already"


# Each rule with the keywords that it is about.
RULES: tuple[tuple[frozenset[str], Rule], ...] = (
    (frozenset({"type"}), types_are_known),
    (frozenset({"type"}), names_stand_alone),
    (frozenset(SUBJECTS), keywords_have_an_effect),
    (frozenset({*chain(*BOUNDS, *OPEN_BOUNDS), "multipleOf"}), bounds_leave_room),
    (frozenset({"format"}), formats_are_known),
    (frozenset({"pattern"}), patterns_are_portable),
    (frozenset({"enum"}), enums_are_sets),
    (frozenset({"const"}), consts_are_of_their_type),
    (frozenset({"anyOf", "oneOf"}), alternatives_exist),
    (frozenset({"required"}), required_is_listed),
)


def _refused_by_validator(node: Schema, types: Types) -> Iterator[Fault]:
    """The last word: the meta-schema, the regular expression, and whether the default fits."""
    if not node.model_fields_set & {"pattern", "default", "enum"}:
        return
    schema = types.advertised(node)
    try:
        accepts = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    except (jsonschema_rs.ValidationError, ValueError):
        yield ("pattern",), f"{quoted(node.pattern or '')} is not a regular expression"
        return
    for index, value in enumerate(schema.get("enum", ())):
        if not accepts.is_valid(value):
            yield ("enum", index), "this value does not fit the rest of its schema"
    if "default" in node.model_fields_set and not accepts.is_valid(default := types.data(node.default, node)):
        problems = Validator(schema, subject="it").problems(default)
        yield ("default",), f"the default does not fit its own schema: {problems[0]}"


def _same(one: Any, other: Any) -> bool:
    """Whether JSON calls two values equal: `1` is `1.0`, but never `true`."""
    return json_types(one) & json_types(other) != frozenset() and one == other
