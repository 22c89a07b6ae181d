"""Pinned parameters: at whatever depth one is given, it is the caller's own, and nothing that was sent is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbc.support.call import LOCAL, Caller
from verbc.support.pin import Pin
from verbc.support.registry import from_data

from .samples import DATA

ADA = Caller("ada", "acct_1", credentials="k")
NO_ACCOUNT = Caller("ada", credentials="k")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "job": {
            "type": "object",
            "properties": {
                "account_id": {"type": "string"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
            },
        },
        "account_id": {"type": "string"},
    },
    "$defs": {"Item": {"type": "object", "properties": {"properties": {"enum": [{"properties": ["x", 1]}]}}}},
}
PIN = {"account_id": "account"}

NAMES = st.sampled_from(["account_id", "accountId", "job", "s3cret-name"])
LEAVES = st.sampled_from(["acct_1", "acct_2", "s3cret", "ACCT_1", "acct_1 ", "", None, True, 0, 1.5])
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))
ARGUMENTS = st.dictionaries(NAMES, VALUES, max_size=4)


def refused(arguments: dict[str, Any], caller: Caller = ADA, *, names: bool = False) -> str | None:
    """What is said to these arguments; None when they are taken."""
    refusal = Pin(PIN, names=names).refusal(arguments, caller, SCHEMA)
    if refusal is None:
        return None
    assert (refusal.kind, refusal.detail) == ("denied", None)
    return refusal.message


def members(value: Any, name: str) -> list[Any]:
    """The values of all members of this name, found the obvious way."""
    if isinstance(value, dict):
        own = [member for key, member in value.items() if key == name]
        return own + [found for member in value.values() for found in members(member, name)]
    return [found for item in value for found in members(item, name)] if isinstance(value, list) else []


@given(ARGUMENTS, st.booleans())
def test_every_member_of_the_name_is_the_callers_own(arguments: dict[str, Any], names: bool) -> None:
    found = members(arguments, "account_id")
    own = all(type(value) is str and value == "acct_1" for value in found)
    assert (refused(arguments, names=names) is None) is own
    assert (refused(arguments, NO_ACCOUNT, names=names) is None) is (not found)


@given(ARGUMENTS)
def test_nothing_that_was_sent_is_told(arguments: dict[str, Any]) -> None:
    for caller in (ADA, NO_ACCOUNT):
        message = refused(arguments, caller) or ""
        assert "s3cret" not in message
        assert "accountId" not in message
        assert "acct_" not in message


@given(ARGUMENTS)
def test_looking_changes_nothing(arguments: dict[str, Any]) -> None:
    before = json.dumps(arguments)
    refused(arguments)
    assert json.dumps(arguments) == before


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"account_id": "acct_2"}, "account_id"),
        ({"job": {"account_id": "acct_2"}}, "job.account_id"),
        ({"job": {"labels": {"account_id": "acct_2"}}}, "job.labels.account_id"),
        ({"job": {"items": [{}, {"account_id": None}]}}, "job.items[1].account_id"),
        ({"job": {"labels": {"mine": {"account_id": "acct_2"}}}}, "job.labels.*.account_id"),
        ({"job": {"items": [[{"x": {"properties": {"account_id": 1}}}]]}}, "job.items[0][0].*.properties.account_id"),
    ],
)
def test_the_place_is_told_in_declared_names(arguments: dict[str, Any], place: str) -> None:
    assert refused(arguments) == f"`{place}` has to be the account of whoever calls, or left out."
    without = refused(arguments, NO_ACCOUNT)
    assert without == f"`{place}` cannot be given: whoever calls has no account."


def test_where_names_may_be_told_they_are_told_so_that_they_can_be_shown() -> None:
    message = refused({"job": {"`\x1b" + "x" * 99: {"account_id": 1}}}, names=True)
    assert message is not None
    assert message.startswith("`…")
    assert message.endswith("….account_id` has to be the account of whoever calls, or left out.")
    assert refused({"job": {"a`\u202e": {"account_id": 1}}}, names=True) == (
        "`job.a'\\u202e.account_id` has to be the account of whoever calls, or left out."
    )


def test_of_a_long_place_the_end_is_told() -> None:
    arguments: dict[str, Any] = {"account_id": "acct_2"}
    for _ in range(60):
        arguments = {"labels": [arguments]}
    message = refused(arguments)
    assert message is not None
    assert message.startswith("`…")
    assert "labels[0].account_id`" in message
    assert len(message) < 130


def test_the_outermost_place_is_told_first() -> None:
    assert "`account_id` " in (refused({"job": {"account_id": 1}, "account_id": 2}) or "")


@pytest.mark.parametrize("value", [{"account_id": "acct_1"}, ["acct_1"], {"id": "acct_1"}])
def test_more_than_a_text_is_not_the_callers_own(value: Any) -> None:
    assert refused({"account_id": value}) is not None


def test_a_parameter_may_be_pinned_to_the_subject() -> None:
    pin = Pin({"user": "subject", "account_id": "account"}, names=True)
    assert pin.refusal({"user": "ada", "account_id": "acct_1"}, ADA, {}) is None
    assert pin.refusal({"user": "local"}, LOCAL, {}) is None
    refusal = pin.refusal({"a": [{"user": "acct_1"}]}, ADA, {})
    assert refusal is not None
    assert refusal.message == "`a[0].user` has to be the subject of whoever calls, or left out."


@pytest.mark.parametrize("access", [None, {"verify": None, "scopes": {}, "pin": {}}])
def test_without_a_pin_everything_is_taken(access: dict[str, Any] | None) -> None:
    pin = Pin.of(from_data({**DATA, "access": access}))
    assert pin.refusal({"account_id": "acct_2"}, NO_ACCOUNT, SCHEMA) is None


@pytest.mark.parametrize(("feedback", "told"), [("names", "x"), ("shapes", "*")])
def test_the_registry_says_what_is_pinned_and_what_may_be_told(feedback: str, told: str) -> None:
    access = {"verify": None, "scopes": {}, "pin": PIN}
    pin = Pin.of(from_data({**DATA, "access": access, "feedback": feedback}))
    refusal = pin.refusal({"x": {"account_id": "acct_2"}}, ADA, {})
    assert refusal is not None
    assert refusal.message.startswith(f"`{told}.account_id` ")
