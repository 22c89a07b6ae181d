"""What a policy file holds: what is left out gets its default, and everything that is not known is refused by its place."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbc.access import SubjectPolicy
from verbc.access_registry import _subject
from verbc.support.policy import Policy
from verbc.support.policy_entries import PolicyEntryError, read_entries

DIGEST = hashlib.sha256(b"k").hexdigest()
EMPTY: dict[str, Any] = {"allow": [], "ask": [], "deny": [], "budget": None}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def subject(**rows: Any) -> dict[str, Any]:
    return {"subjects": {"ada": rows}}


def problem(document: Any) -> str:
    with pytest.raises(PolicyEntryError) as error:
        read_entries(document)
    return str(error.value)


def test_what_is_left_out_is_not_granted() -> None:
    found = read_entries({"subjects": {"ada": {}}})
    assert found.subjects == {"ada": EMPTY}
    assert (found.operator_keys, found.previews) == (frozenset(), False)
    assert read_entries({"subjects": {}}).subjects == {}


def test_everything_that_can_be_said() -> None:
    found = read_entries(
        {
            "subjects": {
                "writer": {
                    "allow": ["read mcp_server:*", "execute mcp_stdio:" + "0" * 64],
                    "ask": [
                        "write mcp:*",
                        {"right": "execute mcp:time:*", "approver": "client"},
                        {"right": "read a:b"},
                    ],
                    "deny": ["write mcp:time:set"],
                    "budget": {"calls": 1000, "bytes": "64MiB", "per": "1d"},
                }
            },
            "operator_keys": [DIGEST],
            "audit": {"previews": True},
        }
    )
    assert found.subjects["writer"] == {
        "allow": ["read mcp_server:*", "execute mcp_stdio:" + "0" * 64],
        "ask": [
            {"right": "write mcp:*", "approver": "operator"},
            {"right": "execute mcp:time:*", "approver": "client"},
            {"right": "read a:b", "approver": "operator"},
        ],
        "deny": ["write mcp:time:set"],
        "budget": {"calls": 1000, "bytes": 64 << 20, "per": 86400.0},
    }
    assert found.operator_keys == {DIGEST}
    assert found.previews is True
    assert Policy.of(found.subjects).budget_of("writer") is not None


@pytest.mark.parametrize(
    ("written", "amount"),
    [("1", 1), (1, 1), (1_000_000, 1_000_000), ("2KiB", 2048), ("3MiB", 3 << 20), ("1GiB", 1 << 30)],
)
def test_bytes_are_amounts_of_the_language(written: Any, amount: int) -> None:
    assert read_entries(subject(budget={"bytes": written, "per": "1s"})).subjects["ada"]["budget"]["bytes"] == amount


@pytest.mark.parametrize(
    ("written", "seconds"), [("100ms", 0.1), ("90s", 90), ("5m", 300), ("12h", 43200), ("2d", 172800)]
)
def test_times_are_amounts_of_the_language(written: str, seconds: float) -> None:
    assert read_entries(subject(budget={"per": written})).subjects["ada"]["budget"]["per"] == pytest.approx(seconds)


def test_a_starter_policy_can_stand_in_a_file() -> None:
    rows = {
        "allow": ["read a:*"],
        "ask": ["write a:*", {"right": "admin a:*", "approver": "client"}],
        "deny": ["read a:b"],
    }
    budget = {"calls": 3, "bytes": "1MiB", "per": "1h"}
    compiled = _subject(SubjectPolicy.model_validate({**rows, "budget": budget}))
    assert read_entries(subject(**rows, budget=budget)).subjects["ada"] == compiled


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ([], "a list must be a map"),
        ({"subjects": {}, "operator_keys": "k" * 43}, "`operator_keys`: text of 43 characters must be a list"),
        ({"subjects": {}, "k" * 43: []}, "there is no text of 43 characters here"),
        (None, "`null` must be a map"),
        ({}, "it has no `subjects`; name those who may do something"),
        ({"subjects": {}, "subject": {}}, "there is no `subject` here; there are `subjects`, `operator_keys`, `audit`"),
        ({"subjects": None}, "`subjects`: `null` must be a map"),
        ({"subjects": {"": {}}}, "subject ``: a subject is a text that can be printed"),
        ({"subjects": {"a\u202eb": {}}}, "subject `a\\u202eb`: a subject is a text"),
        ({"subjects": {"ada": None}}, "subject `ada`: `null` must be a map"),
        (subject(allows=[]), "subject `ada`: there is no `allows` here"),
        (subject(allow="read a:b"), "subject `ada`, `allow`: `read a:b` must be a list"),
        (subject(deny=["read a:b", "read"]), "subject `ada`, `deny`, entry 2: `read` must be a right such as"),
        (subject(ask=[7]), "subject `ada`, `ask`, entry 1: `7` must be a map"),
        (subject(ask=[{"right": "*"}]), "subject `ada`, `ask`, entry 1: `*` must be a right such as"),
        (subject(ask=[{"approver": "client"}]), "subject `ada`, `ask`, entry 1: it needs a `right`"),
        (subject(ask=[{"right": "read a:b", "approver": "me"}]), "an `approver` that is `operator` or `client`"),
        (subject(ask=[{"right": "read a:b", "approver": ["client"]}]), "an `approver` that is `operator` or `client`"),
        (subject(ask=[{"right": "read a:b", "by": "me"}]), "subject `ada`, `ask`, entry 1: there is no `by` here"),
        (subject(budget={"calls": 1}), "subject `ada`, `budget`: it has no `per`"),
        (subject(budget={"calls": -1, "per": "1d"}), "`budget`, `calls`: `-1` must be a whole number"),
        (subject(budget={"calls": True, "per": "1d"}), "`calls`: `true` must be a whole number"),
        (subject(budget={"calls": "7", "per": "1d"}), "`calls`: `7` must be a whole number"),
        (subject(budget={"calls": 1.5, "per": "1d"}), "`calls`: `1.5` must be a whole number"),
        (subject(budget={"bytes": "64MB", "per": "1d"}), "`bytes`: `64MB` must be an amount such as 64MiB"),
        (subject(budget={"bytes": 0, "per": "1d"}), "`bytes`: `0` must be an amount"),
        (subject(budget={"bytes": True, "per": "1d"}), "`bytes`: `true` must be an amount"),
        (subject(budget={"per": 60}), "`per`: `60` must be an amount such as 1d"),
        (subject(budget={"per": "1w"}), "`per`: `1w` must be an amount such as 1d"),
        (subject(budget={"per": "1.5d"}), "`per`: `1.5d` must be an amount such as 1d"),
        (subject(budget={"per": "1d", "call": 3}), "`budget`: there is no `call` here"),
        (
            {"subjects": {}, "operator_keys": [DIGEST.upper()]},
            "`operator_keys`, entry 1: it must be the SHA-256 of a key",
        ),
        ({"subjects": {}, "operator_keys": DIGEST}, "`operator_keys`: "),
        ({"subjects": {}, "audit": {"preview": True}}, "`audit`: there is no `preview` here; there are `previews`"),
        ({"subjects": {}, "audit": {"previews": "yes"}}, "`audit`, `previews`: `yes` must be true or false"),
        ({"subjects": {}, "audit": {"previews": 1}}, "`audit`, `previews`: `1` must be true or false"),
    ],
)
def test_what_is_wrong_is_told_by_its_place(document: Any, told: str) -> None:
    assert told in problem(document)


@pytest.mark.parametrize(
    "grant",
    [
        "read mcp:*",
        "write process:spawn",
        "execute mcp:time:*",
        "admin job:a:b",
        "read mcp:time:now",
        "read a:!?/%",
        "read a:b:*",
    ],
)
def test_a_grant_is_a_right_or_ends_in_a_star(grant: str) -> None:
    for name in ("allow", "ask", "deny"):
        assert read_entries(subject(**{name: [grant]})).subjects["ada"][name] != []


@pytest.mark.parametrize(
    "grant",
    [
        "*",
        "read *",
        "* mcp:*",
        "read *:*",
        "read mcp",
        "read mcp:",
        "read mcp:time*",
        "read mcp:*:now",
        "read mcp:**",
        "read mcp:* ",
        "read  mcp:*",
        "see mcp:*",
        "read MCP:*",
        "read mcp:a b",
        "read mcp:a\n",
        "",
        7,
        None,
        ["read mcp:*"],
    ],
)
def test_whatever_else_is_no_grant(grant: Any) -> None:
    for name in ("allow", "deny"):
        assert "entry 1: " in problem(subject(**{name: [grant]}))


@pytest.mark.parametrize(
    "grant",
    [
        "write mcp:calendar",
        "read mcp:a:b:c",
        "read mcp:a:b:*",
        "read mcp:a\u200b:*",
        "read mcp:\uff41:*",
        "read mcp_server:a:b",
        "read mcp_server:a:*",
        "execute mcp_stdio:xyz",
        "execute mcp_stdio:" + "A" * 64,
        "execute mcp_stdio:" + "0" * 63,
        "write process:spwan",
        "read job:a\u200bb",
        "read mcp:" + "a" * 97 + ":*",
    ],
)
def test_a_grant_that_could_never_count_is_none(grant: str) -> None:
    for name in ("allow", "ask", "deny"):
        told = problem(subject(**{name: [grant]}))
        assert f"`{name}`, entry 1: " in told
        assert " must " in told
        assert told.isprintable()


@pytest.mark.parametrize(
    "grant",
    [
        "read mcp:a.b+c@d-e_f:*",
        "write mcp:a:" + "b" * 96,
        "admin mcp_server:*",
        "read mcp_server:a",
        "execute mcp_stdio:*",
        "write process:*",
        "execute verb:",
    ],
)
def test_whatever_could_count_is_one(grant: str) -> None:
    if grant.endswith(":"):
        assert "must be a right" in problem(subject(deny=[grant]))
    else:
        assert read_entries(subject(deny=[grant])).subjects["ada"]["deny"] == [grant]


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        ({"per": "999999999999999d", "calls": 1}, "`per`: `999999999999999d` must be at most 3650d"),
        ({"per": "3651d"}, "`per`: `3651d` must be at most 3650d"),
        ({"per": "1d", "bytes": "8388609GiB"}, "`bytes`: `8388609GiB` must be at most 9007199254740992"),
        ({"per": "1d", "calls": 2**53 + 1}, "`calls`: `9007199254740993` must be at most 9007199254740992"),
    ],
)
def test_a_budget_is_within_what_can_be_counted(budget: dict[str, Any], told: str) -> None:
    assert told in problem(subject(budget=budget))


def test_the_largest_budget() -> None:
    found = read_entries(subject(budget={"per": "3650d", "bytes": "8388608GiB", "calls": 2**53})).subjects["ada"]
    assert found["budget"] == {"per": 315_360_000.0, "bytes": 2**53, "calls": 2**53}


def test_a_key_in_place_of_its_digest_is_not_shown() -> None:
    assert "hunter2" not in problem({"subjects": {}, "operator_keys": ["hunter2"]})


@given(JSON)
def test_whatever_it_is_it_is_read_or_refused(document: Any) -> None:
    for value in (document, {"subjects": document}, {"subjects": {"ada": document}}):
        told = ""
        try:
            Policy.of(read_entries(value).subjects)
        except PolicyEntryError as error:
            told = str(error)
        assert told.isprintable()
