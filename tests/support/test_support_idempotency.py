"""Which calls are the same call: what a key follows from, and whose it is."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from verbc.support.call import Call, Caller
from verbc.support.fingerprint import digest
from verbc.support.idempotency import PARAMETER, IdempotencyKey, idempotency_key
from verbc.support.registry import from_data

from .samples import DATA, verb_data

ANN = Caller("ann", "acct_1")
PIN = {"verify": None, "scopes": {}, "pin": {"account_id": "account"}}


def call(
    arguments: dict[str, Any],
    idempotent: str | None = "derived",
    *,
    caller: Caller = ANN,
    name: str = "work.run",
    access: dict[str, Any] | None = PIN,
) -> Call:
    verb = verb_data(name, idempotent=idempotent)
    registry = from_data({**copy.deepcopy(DATA), "access": access, "verbs": [verb]})
    return Call(registry.verbs[0], arguments, caller, "c", registry, datetime.now(UTC), 0.0)


def key(*given: Any, forwarded: bool = True, **options: Any) -> IdempotencyKey:
    found = idempotency_key(call(*given, **options), forwarded=forwarded)
    assert found is not None
    return found


def test_most_verbs_have_none() -> None:
    assert idempotency_key(call({PARAMETER: "k"}, None), forwarded=True) is None


def test_a_derived_key_can_be_computed_again() -> None:
    found = key({"quote": "qt_1", "n": 1})
    assert found == IdempotencyKey(
        digest({"caller": "acct_1", "verb": "work.run", "arguments": {"quote": "qt_1", "n": 1}})
    )
    assert found.told == {}


def test_a_derived_key_is_the_same_for_the_same_call() -> None:
    same = {
        key({"a": 1, "b": {"c": [1], "d": 2}}).sent,
        key({"b": {"d": 2, "c": [1]}, "a": 1}).sent,
        key({"a": 1, "b": {"c": [1], "d": 2}, "account_id": "acct_1"}).sent,
        key({"a": 1, "b": {"c": [1], "d": 2}}, caller=Caller("bob", "acct_1", frozenset({"x"}), "k")).sent,
        key({"a": 1, "b": {"c": [1], "d": 2}}, forwarded=False).sent,
    }
    assert len(same) == 1


def test_a_derived_key_differs_for_another_call() -> None:
    keys = {
        key({"a": 1}).sent,
        key({"a": "1"}).sent,
        key({"a": True}).sent,
        key({"a": None}).sent,
        key({}).sent,
        key({"a": [1]}).sent,
        key({"a": {"account_id": "acct_1"}}).sent,
        key({"a": 1}, name="work.batch").sent,
        key({"a": 1}, caller=Caller("ann", "acct_2")).sent,
        key({"a": 1}, caller=Caller("ann")).sent,
        key({"a": 1}, caller=Caller("bob")).sent,
    }
    assert len(keys) == 11


@pytest.mark.parametrize("access", [None, {}, {"pin": None}, {"pin": {}}])
def test_what_is_not_pinned_is_an_argument(access: dict[str, Any] | None) -> None:
    assert key({"account_id": "acct_1"}, access=access) != key({}, access=access)


def test_a_key_that_is_left_out_is_made_each_time() -> None:
    keys = [key({}, "key", forwarded=forwarded) for forwarded in (True, False) for _ in range(2)]
    assert len({one.told[PARAMETER] for one in keys}) == 4
    assert len({one.sent for one in keys}) == 4
    assert all(len(one.told[PARAMETER]) == 32 for one in keys)


@pytest.mark.parametrize("arguments", [{PARAMETER: "mine-1"}, {PARAMETER: "mine-1", "a": 1}])
def test_the_callers_own_key_is_sent_where_the_service_knows_the_caller(arguments: dict[str, Any]) -> None:
    assert key(arguments, "key") == IdempotencyKey("mine-1", {PARAMETER: "mine-1"})


def test_elsewhere_a_key_belongs_to_one_caller_and_one_verb() -> None:
    mine = {PARAMETER: "1"}
    keys = [
        key(mine, "key", forwarded=False, caller=caller, name=name)
        for caller in (ANN, Caller("ann", "acct_2"), Caller("ann"))
        for name in ("work.run", "work.batch")
    ]
    assert len({one.sent for one in keys}) == 6
    assert all(one.told == mine for one in keys)
    assert key(mine, "key", forwarded=False) == key({**mine, "a": 1}, "key", forwarded=False)


@pytest.mark.parametrize("text", ["cl\u00e9", "a b", "a\r\nHost: x", "\0", " ", "\u202e"])
def test_a_key_that_no_header_can_hold_is_sent_as_its_digest(text: str) -> None:
    found = key({PARAMETER: text}, "key")
    assert found.told == {PARAMETER: text}
    assert found.sent == digest({"caller": "acct_1", "verb": "work.run", "key": text})
    assert found == key({PARAMETER: text}, "key")


def test_a_key_is_in_no_text() -> None:
    assert "mine" not in repr(key({PARAMETER: "mine"}, "key"))
