"""The projection of foreign replies."""

from typing import Any

import pytest

from verbc.support.projection import projected

WORK = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}}},
    "additionalProperties": False,
    "$defs": {
        "Part": {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "part": {"$ref": "#/$defs/Part"}},
            "additionalProperties": False,
        }
    },
}
LABELS = {"type": "object", "properties": {"a": {}}, "additionalProperties": WORK}
NULLABLE = {"anyOf": [WORK, {"type": "null"}], "$defs": WORK["$defs"]}
CLOSED = {
    "anyOf": [
        {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
        {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False},
    ]
}
NESTED = {
    "type": "object",
    "properties": {"a": {"type": "object", "properties": {"b": {}}, "additionalProperties": False}},
    "additionalProperties": False,
}
TWIN = {
    "type": "object",
    "properties": {"a": {"type": "object", "properties": {"c": {}}, "additionalProperties": False}},
    "additionalProperties": False,
}
EITHER = {"oneOf": [WORK, LABELS], "$defs": WORK["$defs"]}


@pytest.mark.parametrize(
    ("schema", "value", "left"),
    [
        (WORK, {"id": "a", "more": 1}, {"id": "a"}),
        (WORK, {"parts": [{"n": 1, "x": 2, "part": {"n": 3, "y": 4}}]}, {"parts": [{"n": 1, "part": {"n": 3}}]}),
        (WORK, {"parts": "no list", "id": 5}, {"parts": "no list", "id": 5}),
        (WORK, ["no object"], ["no object"]),
        ({"type": "object"}, {"any": {"thing": 1}}, {"any": {"thing": 1}}),
        ({"type": "object", "properties": {}, "additionalProperties": True}, {"b": 1}, {"b": 1}),
        (NULLABLE, {"id": "a", "more": 1}, {"id": "a"}),
        (NULLABLE, None, None),
        (EITHER, {"id": "a", "more": 1}, {"id": "a", "more": 1}),
        (CLOSED, {"a": 1, "n": 2, "zz": 4}, {"a": 1, "n": 2}),
        (CLOSED, [{"a": {"x": 1}, "q": 1}], [{"a": {"x": 1}, "q": 1}]),
        ({"type": "array", "items": CLOSED}, [{"a": 1, "q": 1}, 7], [{"a": 1}, 7]),
        ({**NESTED, "oneOf": [NESTED, CLOSED]}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"oneOf": [NESTED, CLOSED]}, {"a": {"b": 1, "c": 2}, "n": 3}, {"a": {"b": 1, "c": 2}, "n": 3}),
        ({"oneOf": [NESTED, TWIN]}, {"a": {"b": 1, "c": 2, "d": 3}}, {"a": {"b": 1, "c": 2}}),
        ({"oneOf": [CLOSED, {"type": "object"}]}, {"q": 1}, {"q": 1}),
        ({"oneOf": [CLOSED, {}]}, {"q": 1}, {"q": 1}),
        ({"oneOf": [CLOSED, {"type": ["string", "null"]}]}, {"a": 1, "q": 1}, {"a": 1}),
        ({"oneOf": [{"type": "array"}, {"type": "array", "items": CLOSED}]}, [{"q": 1}], [{"q": 1}]),
        ({"type": "object", "additionalProperties": CLOSED}, {"k": {"a": 1, "q": 1}}, {"k": {"a": 1}}),
        ({"type": "object", "additionalProperties": False}, {"k": 1}, {}),
    ],
)
def test_only_members_that_the_schema_does_not_name_are_dropped(schema: Any, value: Any, left: Any) -> None:
    assert projected(value, schema) == left


def test_further_members_are_projected_by_their_own_schema() -> None:
    schema = {**LABELS, "$defs": WORK["$defs"]}
    assert projected({"a": {"b": 1}, "w": {"id": "x", "y": 1}}, schema) == {"a": {"b": 1}, "w": {"id": "x"}}


def test_alternatives_that_refer_to_each_other_are_followed_once() -> None:
    either = {"oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}
    node = {"type": "object", "properties": {"next": either, "n": {}}, "additionalProperties": False}
    schema = {**either, "$defs": {"A": node, "B": {**node, "properties": {"next": either}}, "C": either}}
    value: dict[str, object] = {"n": 1, "x": 1}
    left: dict[str, object] = {"n": 1}
    for _ in range(60):
        value, left = {"next": value, "x": 1}, {"next": left}
    assert projected(value, schema) == left
