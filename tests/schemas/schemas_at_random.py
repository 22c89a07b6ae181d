"""Random specs of schemas: every keyword of the language, named types that recurse, names that are hard on Python."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from verbc.testing.values import FORMATS

Schemas = st.SearchStrategy[Any]

NAMES = ("Leaf", "Node", "Choice")
PROPERTIES = (
    "a",
    "class",
    "b-c",
    "model_dump",
    "self",
    "x y",
    "\xe9",
    "1st",
    "__init__",
    "$ref",
    "None",
    "schema",
    "\u65e5\u672c",
)
PATTERNS = ("^[a-z]+$", "^[0-9]{2}-[A-F]{1,3}$", "a|b", "^x.?y$", "^$|^z")
TEXTS = st.sampled_from(
    ["", "a", "no", "null", "1", "2.5", "12:30", 'quote "', "back\\slash", "\xe9", "\u65e5\u672c", "x" * 70]
)
SCALARS = st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.sampled_from([0.5, -1e300, 1e-9]) | TEXTS
DESCRIPTIONS = st.sampled_from([{}, {}, {"description": 'With """ and \\ in it.'}, {"deprecated": True}])


def _bounds(low: str, high: str, numbers: st.SearchStrategy[Any], room: Any) -> Schemas:
    """None, one or both of two bounds, with room between them."""
    one = st.one_of(numbers.map(lambda number: {low: number}), numbers.map(lambda number: {high: number + room}))
    both = numbers.map(lambda number: {low: number, high: number + room})
    return st.just({}) | one | both


def _with(type_name: str, *parts: Schemas) -> Schemas:
    return st.tuples(st.just({"type": type_name}), *parts).map(_joined)


def _joined(parts: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    return {key: value for part in parts for key, value in part.items()}


def _distinct(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """A few values, no two of them equal to JSON or to Python."""
    return st.lists(values, min_size=1, max_size=4, unique_by=lambda value: (value is None, value))


STRINGS = st.one_of(
    _with("string", _bounds("minLength", "maxLength", st.integers(0, 3), 4)),
    st.sampled_from(PATTERNS).map(lambda pattern: {"type": "string", "pattern": pattern}),
    st.sampled_from(sorted(FORMATS)).map(lambda name: {"type": "string", "format": name}),
    _distinct(TEXTS).map(lambda texts: {"type": "string", "enum": texts}),
)
NUMBERS = st.one_of(
    _with("integer", _bounds("minimum", "maximum", st.integers(-9, 9), 12)),
    _with("integer", _bounds("exclusiveMinimum", "exclusiveMaximum", st.integers(-9, 9), 12)),
    st.integers(1, 7).map(lambda step: {"type": "integer", "multipleOf": step}),
    _with("number", _bounds("minimum", "maximum", st.sampled_from([-2.5, 0, 0.25, 7]), 3)),
)
VALUES = st.one_of(
    _distinct(SCALARS).map(lambda values: {"enum": values}),
    SCALARS.map(lambda value: {"const": value}),
    st.just({"enum": [[1, "a"], {"b": None}, "c"]}),
    st.just({"const": {"a": [True]}}),
)
TYPE_LISTS = st.lists(
    st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"]),
    min_size=2,
    max_size=4,
    unique=True,
).map(lambda names: {"type": names})
NULLABLE = st.one_of(STRINGS, NUMBERS).map(lambda schema: _as_nullable(schema))
SIMPLE = st.one_of(
    STRINGS,
    NUMBERS,
    VALUES,
    TYPE_LISTS,
    NULLABLE,
    st.sampled_from(["string", "integer", "boolean", "null"]),
    st.just({}),
)


def _as_nullable(schema: dict[str, Any]) -> dict[str, Any]:
    extra = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **extra}


def _arrays(inner: Schemas) -> Schemas:
    return _with(
        "array", inner.map(lambda items: {"items": items}), _bounds("minItems", "maxItems", st.integers(0, 1), 2)
    )


UNIQUE = st.sampled_from(["string", "integer"]).map(lambda name: {"type": "array", "items": name, "uniqueItems": True})


def _objects(inner: Schemas) -> Schemas:
    """Objects that list properties, some of them required, and say what further ones may be."""
    further: Schemas = st.just({}) | st.booleans().map(_further) | inner.map(_further)
    properties = st.dictionaries(st.sampled_from(PROPERTIES), inner, max_size=4)
    return st.tuples(properties, st.sets(st.sampled_from(PROPERTIES)), further, DESCRIPTIONS).map(
        lambda parts: {
            "type": "object",
            "properties": parts[0],
            **({"required": required} if (required := [name for name in parts[0] if name in parts[1]]) else {}),
            **parts[2],
            **parts[3],
        }
    )


def _further(value: Any) -> dict[str, Any]:
    return {"additionalProperties": value}


def _maps(inner: Schemas) -> Schemas:
    return _with("object", inner.map(_further), _bounds("minProperties", "maxProperties", st.integers(0, 1), 2))


def _alternatives(inner: Schemas) -> Schemas:
    several = st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches})
    one = st.tuples(NUMBERS, _arrays(inner)).map(lambda branches: {"oneOf": list(branches)})
    return several | one


def schemas(leaves: Schemas) -> Schemas:
    return st.recursive(
        leaves,
        lambda inner: _objects(inner) | _objects(inner) | _arrays(inner) | _maps(inner) | _alternatives(inner),
        max_leaves=6,
    )


def _named(names: tuple[str, ...]) -> Schemas:
    """Named types, by their name alone or with something beside it."""
    alone = st.sampled_from(names)
    return alone | alone.map(lambda name: {"type": name, "description": "A named one."})


LEAVES = SIMPLE | UNIQUE
ANY = schemas(LEAVES | _named(NAMES))
TYPES = st.fixed_dictionaries(
    {
        "Leaf": schemas(LEAVES),
        # Types that come to an end, whatever is drawn: by a property left out, an empty list, or another alternative.
        "Node": st.tuples(ANY, ANY).map(
            lambda pair: {
                "type": "object",
                "properties": {
                    "leaf": "Leaf",
                    "first": pair[0],
                    "second": pair[1],
                    "nodes": {"type": "array", "items": "Node"},
                },
            }
        ),
        "Choice": ANY.map(
            lambda further: {
                "anyOf": [
                    {"type": ["boolean", "null"]},
                    {"type": "array", "items": "Choice"},
                    {"type": "object", "additionalProperties": "Choice"},
                    {"type": "object", "properties": {"leaf": "Leaf", "more": further}},
                ]
            }
        ),
    }
)


@st.composite
def verbs(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    """A few verbs with parameters and a result; the last one uses every named type."""
    made = {}
    for number in range(3):
        params = draw(st.dictionaries(st.sampled_from(PROPERTIES), ANY, max_size=3))
        made[f"v{number}"] = {
            "params": params,
            "required": [name for name in params if draw(st.booleans())],
            "result": draw(ANY),
        }
    made["named"] = {"params": {name: name for name in NAMES}, "result": "Node"}
    return made
