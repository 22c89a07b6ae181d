"""How much work one value can be for a schema, and which schemas are too much."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbc.support.schema_expansion import expansion_problem

KEYWORDS = ["$ref", "$id", "$anchor", "$defs", "allOf", "items", "properties", "not", "dependencies"]
OUT = "a reference leads out of this schema"
BACK = "a reference leads back to where it stands"
MORE = "one value would be checked with more than 10000 schemas"
OWN = "a schema within this one has an id of its own"


def within(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4)


def doubled(times: int, *, by: str = "#/$defs/{}") -> dict[str, Any]:
    """A schema that needs 2 to the power of `times` checks."""
    schemas: dict[str, Any] = {
        f"d{number}": {"$anchor": f"d{number}", "allOf": [{"$ref": by.format(f"d{number + 1}")}] * 2}
        for number in range(times)
    }
    return {"$defs": {**schemas, f"d{times}": {"$anchor": f"d{times}"}}, "$ref": by.format("d0")}


def chained(times: int) -> dict[str, Any]:
    """A schema whose references lead from one to the next."""
    schemas: dict[str, Any] = {f"d{number}": {"$ref": f"#/$defs/d{number + 1}"} for number in range(times)}
    return {"$ref": "#/$defs/d0", "$defs": {**schemas, f"d{times}": {}}}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "properties": {"a": {"prefixItems": [{}, {"not": {}}]}}},
        {"properties": {"children": {"items": {"$ref": "#"}}}},
        {"$defs": {"a": {"properties": {"next": {"$ref": "#/$defs/a"}}}}, "$ref": "#/$defs/a"},
        {"$defs": {"a": {"$anchor": "x", "items": {"$ref": "#x"}}}, "anyOf": [{"$ref": "#x"}, {"type": "null"}]},
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"$id": "#x"}}, "$ref": "#x"},
        {"$id": "https://example.org/schema", "items": {"$ref": "#/$defs/a"}, "$defs": {"a": {}}},
        {"properties": {"$ref": {"type": "string"}, "id": {"type": "string"}, "allOf": {}}},
        {"const": {"$ref": "https://example.org", "id": "x"}, "default": {"$ref": "x"}, "examples": [{"$id": "x"}]},
        {"oneOf": [{"const": number} for number in range(5000)]},
        {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
        {"a/b": {"%": {}}, "items": {"$ref": "#/a~1b/%25"}},
        {"$defs": {"User": {"id": "User"}}, "items": {"$ref": "#/$defs/User"}},
        chained(199),
        doubled(10),
        doubled(10, by="#{}"),
    ],
)
def test_schemas_of_bounded_work(schema: dict[str, Any]) -> None:
    assert expansion_problem(schema) is None
    jsonschema_rs.validator_for(schema, offline=True)


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (doubled(14), MORE),
        (doubled(60), MORE),
        (doubled(60, by="#{}"), MORE),
        (
            {
                "properties": {"a": {"items": {"$ref": "#/$defs/d0"}}},
                "$defs": doubled(60)["$defs"],
            },
            MORE,
        ),
        ({"hidden": {"$ref": "#/$defs/d0"}, "$defs": doubled(60)["$defs"], "items": {"$ref": "#/hidden"}}, MORE),
        ({"oneOf": [{"const": number} for number in range(10_000)]}, MORE),
        ({"$ref": "#"}, BACK),
        ({"$dynamicRef": "#"}, BACK),
        ({"$recursiveRef": "#"}, BACK),
        ({"anyOf": [{"type": "object"}, {"not": {"$ref": "#"}}]}, BACK),
        ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"if": {"$ref": "#/$defs/a"}}}}, BACK),
        ({"dependentSchemas": {"a": {"$ref": "#"}}}, BACK),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, OUT),
        ({"items": {"$ref": "other.json#/a"}}, OUT),
        (
            {"$id": "https://example.org/a", "items": {"$ref": "https://example.org/a#/$defs/b"}, "$defs": {"b": {}}},
            OUT,
        ),
        ({"$defs": {"a": {"$id": "https://example.org/a"}}}, OWN),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "definitions": {"a": {"id": "a"}}}, OWN),
        ({"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}}, "two schemas have the same name"),
        (chained(201), "more than 200 references and schemas follow each other"),
        (chained(50_000), "more than 200 references and schemas follow each other"),
    ],
)
def test_schemas_of_unbounded_work(schema: dict[str, Any], problem: str) -> None:
    assert expansion_problem(schema) == problem


@given(st.recursive(st.none() | st.integers() | st.sampled_from(["#", "#x", "#/$defs", "x"]), within, max_leaves=25))
def test_whatever_stands_in_an_object_it_is_looked_at(value: Any) -> None:
    assert isinstance(expansion_problem({"$defs": value, "not": value}), str | None)
