"""Policies: deny wins over ask, ask over allow, what nothing grants is denied, and no value acts as a pattern."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbc.support.policy import Budget, Decision, Policy
from verbc.support.rights import Right

ACTIONS = st.sampled_from(["read", "write", "execute", "admin"])
KINDS = st.sampled_from(["mcp", "mcp_server", "process", "mcp_stdio"])
IDS = st.sampled_from(["a", "b", "*", "a:b", "a:*"])
GRANTS = st.builds(lambda action, kind, rest: f"{action} {kind}:{rest}", ACTIONS, KINDS, IDS)
ASKED = st.builds(lambda right, approver: asked(right, approver), GRANTS, st.sampled_from(["operator", "client"]))
VALUES = st.sampled_from(["a", "b", "*", "a:b", ":", ""]) | st.text(max_size=5)
RIGHTS = st.builds(lambda action, kind, *rest: Right((f"{action} {kind}", *rest)), ACTIONS, KINDS, VALUES) | st.builds(
    lambda action, server, tool: Right((f"{action} mcp", server, tool)), ACTIONS, VALUES, VALUES
)
ROWS = st.builds(
    lambda allow, ask, deny: rows(allow, ask, deny),
    st.lists(GRANTS, max_size=4),
    st.lists(ASKED, max_size=4),
    st.lists(GRANTS, max_size=3),
)
RANK = {"deny": 0, "ask": 1, "allow": 2}


def asked(right: str, approver: str = "operator") -> dict[str, str]:
    return {"right": right, "approver": approver}


def rows(allow: Any = (), ask: Any = (), deny: Any = (), budget: Any = None) -> dict[str, Any]:
    return {"allow": [*allow], "ask": [*ask], "deny": [*deny], "budget": budget}


def right(template: str, **arguments: str) -> Right:
    return Right.of(template, arguments)


def decide(policy: Mapping[str, Any], what: Right, *, suspended: bool = False) -> Decision:
    return Policy.of({"ada": policy}).decide("ada", what, suspended=suspended)


def test_what_nothing_grants_is_denied() -> None:
    assert decide(rows(), right("read mcp:time:now")) == Decision("deny", None)
    assert decide(rows(["read mcp:time:*"]), right("write mcp:time:now")) == Decision("deny", None)


def test_somebody_without_rows_may_do_nothing() -> None:
    policy = Policy.of({"ada": rows(["read mcp:*"])})
    assert policy.decide("bob", right("read mcp:time:now")) == Decision("deny", None)
    assert policy.decide("", right("read mcp:time:now")) == Decision("deny", None)


def test_the_decision_names_the_grant() -> None:
    allow, ask, deny = ["read mcp:*"], [asked("read mcp:time:*")], ["read mcp:time:now"]
    now = right("read mcp:time:now")
    assert decide(rows(allow), now) == Decision("allow", "read mcp:*")
    assert decide(rows(allow, ask), now) == Decision("ask", "read mcp:time:*")
    assert decide(rows(allow, ask, deny), now) == Decision("deny", "read mcp:time:now")


def test_an_operator_is_asked_before_a_client() -> None:
    broad, exact = asked("write mcp:*", "client"), asked("write mcp:time:set")
    now = right("write mcp:time:set")
    for order in ([broad, exact], [exact, broad]):
        assert decide(rows(ask=order), now) == Decision("ask", "write mcp:time:set", "operator")
    assert decide(rows(ask=[broad]), now) == Decision("ask", "write mcp:*", "client")


@pytest.mark.parametrize(
    ("grant", "what", "effect"),
    [
        ("read mcp:*", "read mcp:time:now", "deny"),
        ("read mcp:time:now", "read mcp:time:now", "deny"),
        ("execute mcp_server:*", "execute mcp_server:time", "allow"),
        ("write process:spawn", "write process:spawn", "allow"),
        ("execute mcp_stdio:*", "execute mcp_stdio:0", "allow"),
    ],
)
def test_what_is_suspended_is_what_tools_need(grant: str, what: str, effect: str) -> None:
    assert decide(rows([grant]), right(what), suspended=True).effect == effect
    assert decide(rows([grant]), right(what)).effect == "allow"


def test_a_deny_is_never_suspended() -> None:
    found = decide(rows(["read mcp:*"], deny=["read mcp:time:*"]), right("read mcp:time:now"), suspended=True)
    assert found == Decision("deny", "read mcp:time:*")


def test_a_budget_is_of_one_subject() -> None:
    policy = Policy.of({"ada": rows(budget={"calls": 3, "bytes": None, "per": 60}), "bob": rows()})
    assert policy.budget_of("ada") == Budget(3, None, 60.0)
    assert policy.budget_of("bob") is None
    assert policy.budget_of("eve") is None


@given(ROWS, GRANTS, RIGHTS, st.booleans())
def test_a_deny_always_wins(some: dict[str, Any], grant: str, what: Right, suspended: bool) -> None:
    alone = decide(rows(deny=[grant]), what)
    more = decide({**some, "deny": [*some["deny"], grant]}, what, suspended=suspended)
    if alone.grant is not None:
        assert more.effect == "deny"


@given(ROWS, GRANTS, RIGHTS, st.booleans())
def test_one_more_deny_never_allows_more(some: dict[str, Any], grant: str, what: Right, suspended: bool) -> None:
    before = decide(some, what, suspended=suspended)
    after = decide({**some, "deny": [*some["deny"], grant]}, what, suspended=suspended)
    assert RANK[after.effect] <= RANK[before.effect]
    assert after.effect in ("deny", before.effect)


@given(ROWS, ASKED, RIGHTS)
def test_asking_never_gives_way_to_allowing(some: dict[str, Any], row: dict[str, str], what: Right) -> None:
    if decide(rows(ask=[row]), what).effect == "ask":
        assert decide({**some, "ask": [*some["ask"], row]}, what).effect in ("ask", "deny")


@given(ROWS, RIGHTS, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_rows_is_irrelevant(some: dict[str, Any], what: Right, suspended: bool, random: Any) -> None:
    mixed = {name: random.sample(some[name], len(some[name])) for name in ("allow", "ask", "deny")}
    mixed["budget"] = None
    assert decide(mixed, what, suspended=suspended) == decide(some, what, suspended=suspended)


@given(ROWS, RIGHTS)
def test_suspension_never_allows_more(some: dict[str, Any], what: Right) -> None:
    suspended, usual = decide(some, what, suspended=True), decide(some, what)
    assert RANK[suspended.effect] <= RANK[usual.effect]
    if what.parts[0].endswith(" mcp"):
        assert suspended.effect == "deny"
    else:
        assert suspended == usual


@given(ACTIONS, VALUES, VALUES)
def test_values_in_a_right_are_no_patterns(action: str, server: str, tool: str) -> None:
    asked_for = Right((f"{action} mcp", server, tool))
    for grant in (f"{action} mcp:a:b", f"{action} mcp:a:b:c"):
        given_ids = grant.split(":", 2)[1:]
        assert (decide(rows([grant]), asked_for).effect == "allow") is ([server, tool] == given_ids)
    assert (decide(rows([f"{action} mcp:a:*"]), asked_for).effect == "allow") is (server == "a")
