"""What strict reading finds, and what it leaves alone."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbc.support.strict_json import DEPTH, Unacceptable, limited, parse


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"id": 7, "a": 1, "a": 1}', "has an object with the same key twice"),
        ('{"id": 7, "b": {"\\u0061": 1, "a": 1}}', "has an object with the same key twice"),
        ('{"id": 7, "a": NaN}', "holds a number that is not finite"),
        ('{"id": 7, "a": [-Infinity]}', "holds a number that is not finite"),
        ('{"id": 7, "a": 1e999}', "holds a number that is not finite"),
        ('{"id": 7, "a": "\\ud800"}', "holds text that is not valid Unicode"),
        ('{"id": 7, "\\udfff": 1}', "holds text that is not valid Unicode"),
        (f'{{"id": 7, "a": {nested(DEPTH)}}}', "is nested too deeply"),
        (f'{{"id": 7, "a": 1{"0" * 5000}}}', "holds a number that is too long"),
        (f'{{"id": 7, "a": 1{"0" * 4290}}}', "holds a number that is too long"),
    ],
)
def test_a_text_that_parses_is_refused_with_its_value(text: str, reason: str) -> None:
    with pytest.raises(Unacceptable) as caught:
        parse(text)
    assert caught.value.reason == reason
    assert caught.value.value["id"] == 7


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("{'a': 1}", "is not JSON"),
        ("\ufeff{}", "is not JSON"),
        ('{"a": 1} {}', "is not JSON"),
        ('"a\tb"', "is not JSON"),
        (b"\xff", "is not UTF-8"),
        (b'"\xed\xa0\x80"', "is not UTF-8"),
        (nested(100_000), "is nested too deeply"),
        ('{"a":' * 100_000, "is nested too deeply"),
    ],
)
def test_a_text_that_does_not_parse_is_refused_without_a_value(text: str | bytes, reason: str) -> None:
    with pytest.raises(Unacceptable) as caught:
        parse(text)
    assert (caught.value.reason, caught.value.value) == (reason, None)


def test_integral_numbers_become_integers() -> None:
    value = parse('{"a": 1.0, "b": [1e2, -0.0, 0.5], "c": 10000000000000000000000000001}')
    assert value == {"a": 1, "b": [100, 0, 0.5], "c": 10**28 + 1}
    assert [type(item) for item in (value["a"], *value["b"])] == [int, int, int, float]


def test_the_deepest_that_is_taken() -> None:
    assert parse(nested(DEPTH)) is not None
    assert parse(nested(DEPTH + 1), DEPTH + 1) is not None
    with pytest.raises(Unacceptable):
        parse(nested(DEPTH + 1))


def test_what_needs_no_change_is_not_copied() -> None:
    value = {"a": [1, {"b": "c"}], "d": {"e": 1.0}}
    kept = limited(value)
    assert kept["a"] is value["a"]
    assert kept is not value
    assert value["d"] == {"e": 1.0}
    assert isinstance(kept["d"]["e"], int)
    assert limited(value["a"]) is value["a"]


def test_a_value_that_is_deeper_than_the_stack_is_refused() -> None:
    value: dict[str, Any] = {}
    for _ in range(sys.getrecursionlimit() * 2):
        value = {"a": value}
    with pytest.raises(Unacceptable, match="nested too deeply"):
        limited(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(Unacceptable, match="nested too deeply"):
        limited(value)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({1: 2}, "has a key that is not a string"),
        ([{1, 2}], "holds something that is not JSON"),
        ([b"a"], "holds something that is not JSON"),
        ([object()], "holds something that is not JSON"),
        ([float("nan")], "holds a number that is not finite"),
        ({"\ud800": 1}, "holds text that is not valid Unicode"),
    ],
)
def test_what_is_not_json_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(Unacceptable) as caught:
        limited(value)
    assert caught.value.reason == reason


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_values_within_the_limits_stay_equal(value: Any) -> None:
    assert limited(value) == value
