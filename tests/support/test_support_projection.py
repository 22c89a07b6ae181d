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
    ],
)
def test_only_members_that_the_schema_does_not_name_are_dropped(schema: Any, value: Any, left: Any) -> None:
    assert projected(value, schema) == left


def test_further_members_are_projected_by_their_own_schema() -> None:
    schema = {**LABELS, "$defs": WORK["$defs"]}
    assert projected({"a": {"b": 1}, "w": {"id": "x", "y": 1}}, schema) == {"a": {"b": 1}, "w": {"id": "x"}}
