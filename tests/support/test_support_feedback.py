"""What is said about values that do not fit: in JSON terms, bounded, and without anything of the values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbc.support.feedback import ARGUMENTS, MOST_PROBLEMS, PROBLEM_CHARACTERS
from verbc.support.validation import Validator

CLOSED = {"type": "object", "additionalProperties": False}


def problems(
    schema: dict[str, Any], value: Any, *, names: bool = True, refused: Mapping[str, str] | None = None
) -> list[str]:
    return Validator(schema, names=names, refused=refused, subject="the arguments object").problems(value)


@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        ({"type": "string"}, 7, "`a` must be a string"),
        ({"type": "integer"}, "7", "`a` must be an integer"),
        ({"type": "integer"}, True, "`a` must be an integer"),
        ({"type": "integer"}, 7.5, "`a` must be an integer"),
        ({"type": "number"}, "7", "`a` must be a number"),
        ({"type": "boolean"}, 1, "`a` must be true or false"),
        ({"type": "array"}, {}, "`a` must be an array"),
        ({"type": "object"}, [], "`a` must be an object"),
        ({"type": ["string", "null"]}, 7, "`a` must be a string or null"),
        ({"type": "string"}, None, "`a` must not be null"),
        ({"enum": ["red", "green", 1]}, "blue", '`a` must be one of "red", "green", 1'),
        ({"enum": ["red"]}, "blue", '`a` must be "red"'),
        ({"const": True}, 1, "`a` must be true"),
        ({"minimum": 1}, 0, "`a` must be at least 1"),
        ({"maximum": 5}, 6, "`a` must be at most 5"),
        ({"exclusiveMinimum": 1}, 1, "`a` must be more than 1"),
        ({"exclusiveMaximum": 1.5}, 2, "`a` must be less than 1.5"),
        ({"multipleOf": 5}, 6, "`a` must be a multiple of 5"),
        ({"minLength": 1}, "", "`a` must have at least 1 character"),
        ({"maxLength": 2}, "abc", "`a` must have at most 2 characters"),
        ({"minItems": 2}, [1], "`a` must have at least 2 items"),
        ({"maxItems": 1}, [1, 2], "`a` must have at most 1 item"),
        ({"uniqueItems": True}, [1, 1], "`a` must not have equal items"),
        ({"pattern": "^[a-z]+$"}, "A", "`a` must match the pattern ^[a-z]+$"),
        ({"format": "date-time"}, "yesterday", "`a` must match the format date-time"),
        ({"not": {"type": "string"}}, "x", "`a` has a form that is not allowed"),
        (False, 1, "`a` is not allowed"),
        ({"items": {"type": "string"}}, ["x", 1], "`a[1]` must be a string"),
        ({"items": {"properties": {"b": {"type": "string"}}}}, [{"b": 1}], "`a[0].b` must be a string"),
        ({"required": ["b"]}, {}, "`a.b` is missing"),
        ({"properties": {"size": True}, **CLOSED}, {"sise": 1}, "`a.sise` is not a known member; did you mean `size`?"),
        ({"additionalProperties": {"type": "string"}}, {"k": 1}, "`a.k` must be a string"),
        ({"properties": {"properties": {"type": "string"}}}, {"properties": 1}, "`a.properties` must be a string"),
        ({"anyOf": [{"type": "string"}, {"const": True}]}, 3, "`a` must be a string or true"),
        (
            {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "null"}]},
            "abc",
            "`a` must have at most 2 characters",
        ),
        ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 5, "`a` fits more than one of the forms it may have"),
        ({"anyOf": [{"required": ["b"]}, {"required": ["c"]}]}, {}, "`a` must have one of the forms in the schema"),
        ({"$ref": "#/$defs/B"}, {"b": 1}, "`a.b` must be a string"),
        ({"anyOf": [{"$ref": "#/$defs/B"}, {"type": "integer"}]}, "x", "`a` must be an object or an integer"),
    ],
)
def test_each_keyword_has_its_words(schema: Any, value: Any, problem: str) -> None:
    definitions = {"B": {"type": "object", "properties": {"b": {"type": "string"}}}}
    assert problems({"type": "object", "properties": {"a": schema}, "$defs": definitions}, {"a": value}) == [problem]


def test_the_alternative_that_was_meant_is_judged() -> None:
    def shape(kind: str, member: str) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"kind": {"const": kind}, member: {"type": "integer"}},
            "required": ["kind"],
        }

    schema = {"properties": {"a": {"oneOf": [shape("circle", "radius"), shape("square", "side")]}}}
    assert problems(schema, {"a": {"kind": "square", "side": "s"}}) == ["`a.side` must be an integer"]


def test_a_wrong_type_is_all_that_is_said_of_a_value() -> None:
    schema = {"properties": {"a": {"type": "string", "enum": ["x", "y"]}, "b": {"type": "string"}}}
    assert problems(schema, {"a": 1, "b": 2}) == ["`a` must be a string", "`b` must be a string"]


def test_problems_come_in_the_order_sent_and_what_is_missing_last() -> None:
    schema = {
        **CLOSED,
        "properties": {"one": {"type": "string"}, "two": {"type": "string"}, "six": {"required": ["z"]}},
        "required": ["five", "two"],
    }
    value = {"six": {}, "three": 1, "force": 1, "one": 1}
    assert problems(schema, value, refused={"force": "It would stop a run."}) == [
        "`six.z` is missing",
        "`three` is not a parameter",
        "`force` is not accepted: It would stop a run.",
        "`one` must be a string",
        "`five` is missing",
        "`two` is missing",
    ]


def test_a_refused_parameter_is_refused_by_an_open_schema_too() -> None:
    assert problems({"type": "object"}, {"force": 1}, refused={"force": "Never."}) == [
        "`force` is not accepted: Never."
    ]


def test_an_unknown_name_is_cut_and_escaped_and_the_nearest_told() -> None:
    schema = {**CLOSED, "properties": {"limit": True}}
    assert problems(schema, {"limt": 1}) == ["`limt` is not a parameter; did you mean `limit`?"]
    assert problems(schema, {"a\u202e\n`": 1}) == ["`a\\u202e\\u000a'` is not a parameter"]
    (problem,) = problems(schema, {"x" * 1000: 1})
    assert problem == "`" + "x" * 63 + "…` is not a parameter"


def test_a_verb_without_parameters_is_named() -> None:
    def told(*sent: str, names: bool = True, **properties: Any) -> list[str]:
        schema = {**CLOSED, "properties": properties}
        refused = {"force": "Never."}
        validator = Validator(schema, names=names, refused=refused, subject=ARGUMENTS, verb="item.names")
        return validator.problems(dict.fromkeys(sent, 1))

    text = "is not a parameter of `item.names`, which has none"
    assert told("id", "force") == [f"`id` {text}", "`force` is not accepted: Never."]
    assert told("x" * 1000) == [f"`{'x' * 63}…` {text}"]
    assert told("zz", id=True) == ["`zz` is not a parameter"]
    assert told("id", "zz", names=False) == ["`*` is not a parameter"]


def test_shapes_names_only_what_the_schema_declares() -> None:
    schema = {
        **CLOSED,
        "properties": {
            "limit": {"type": "integer"},
            "labels": {"additionalProperties": {"type": "string"}},
            "codes": {"patternProperties": {"^x": {"type": "string"}}},
        },
        "required": ["id"],
    }
    value = {"limt": 1, "other": 2, "labels": {"secret": 1}, "codes": {"xsecret": 1}, "limit": "x"}
    assert problems(schema, value, names=False) == [
        "`*` is not a parameter",
        "`labels.*` must be a string",
        "`codes.*` must be a string",
        "`limit` must be an integer",
        "`id` is missing",
    ]


def test_problems_are_bounded() -> None:
    schema = {**CLOSED, "properties": {f"p{number}": {"type": "string"} for number in range(20)}}
    told = problems(schema, {f"p{number}": number for number in range(20)})
    assert len(told) == MOST_PROBLEMS
    assert told[-1] == "13 more problems"
    (long,) = problems({"properties": {"a": {"enum": [f"value number {number}" for number in range(50)]}}}, {"a": 1})
    assert len(long) == PROBLEM_CHARACTERS
    assert long.endswith("…")


def test_a_large_value_is_judged_by_its_first_problem() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}
    assert problems(schema, {"a": [1] * 100_000}) == ["`a[0]` must be a string"]


@pytest.mark.parametrize("pattern", [r"^(([a-z])+.)+(?!X)[A-Z]([a-z])+$", r"(?=(a+))\1b"])
def test_a_pattern_that_gives_up_is_a_problem(pattern: str) -> None:
    assert problems({"properties": {"a": {"pattern": pattern}}}, {"a": "a" * 5000 + "!"})


def test_what_a_validator_throws_is_a_problem() -> None:
    # Text that cannot be encoded is normally found before.
    assert problems({"properties": {"a": {"pattern": "x"}}}, {"a": "\ud800"}) == [
        "the arguments object could not be checked"
    ]


@pytest.mark.parametrize(
    ("schema", "words"),
    [({"type": "strin"}, "not valid"), ({"$ref": "https://example.invalid/schema"}, "Retrieval is disabled")],
)
def test_a_schema_that_is_none_cannot_be_compiled(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Validator(schema, subject="it").compile()


VALUE = "s3cr3t-value"


@given(
    st.recursive(
        st.sampled_from([VALUE, VALUE + "2", 0.12345]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcxyz"), inner, max_size=3),
    )
)
def test_no_value_is_ever_told(value: Any) -> None:
    item = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"const": 1}}, "required": ["c"], **CLOSED}
    schema = {"properties": {"v": {"anyOf": [item, {"type": "array", "items": item, "maxItems": 1}, {"enum": [1]}]}}}
    told = json.dumps(problems(schema, {"v": value}))
    assert "s3cr3t" not in told
    assert "0.12345" not in told


def test_a_value_as_a_whole_is_called_what_it_is() -> None:
    assert Validator({"type": "string"}, subject="the result").problems(7) == ["the result must be a string"]


def test_what_cannot_be_checked_is_told_in_our_words() -> None:
    schema = {"properties": {"a": {"type": "string", "pattern": "^(a|a)*(?=b)$"}}}
    assert problems(schema, {"a": "a" * 40}) == ["`a` could not be checked"]


def test_members_of_a_result_are_no_parameters() -> None:
    validator = Validator({"properties": {}, **CLOSED}, names=False, subject="the result")
    assert validator.problems({"zz": 1}) == ["`*` is not a known member"]
