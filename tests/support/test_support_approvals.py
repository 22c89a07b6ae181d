"""Approvals: what they are bound to, how long they count, and that each is used once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from verbc.support.approvals import ApprovalError, any_over, decide, find, pending, recent, sweep
from verbc.support.backend import Evidence, Plan
from verbc.support.fingerprint import digest
from verbc.support.governance_tables import APPROVALS
from verbc.support.permits import begin
from verbc.support.refusal import Refusal
from verbc.support.rights import Right
from verbc.support.rulings import Ruling

from .governance import (
    CONTENT,
    DATABASES,
    POLICY,
    REGISTRY,
    Kept,
    a_plan,
    by_client,
    keeping,
    policy_of,
    rows,
    ruling_of,
)

TARGET = {"server_id": "calendar", "registration_generation": 3}


@pytest.fixture(params=DATABASES)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    with keeping(tmp_path, request) as kept:
        yield kept


def asked(identifier: str = "1", policy: Mapping[str, Any] = POLICY, **changes: Any) -> Ruling:
    return ruling_of(a_plan("item.write", identifier, target=TARGET, **changes), policy_of(policy))


def test_what_is_pending_tells_all_that_it_is_bound_to(kept: Kept) -> None:
    approval = kept.pending(asked())
    verb = REGISTRY.verb("item.write")
    assert verb is not None
    assert approval == {
        "id": approval["id"],
        "subject": "ann",
        "rights": ["write item:1"],
        "verb": "item.write",
        "contract_digest": verb.digest,
        "target": TARGET,
        "arguments_sha256": digest({"content": CONTENT, "id": "1"}),
        "expires_at": "2026-03-04T05:21:07.089Z",
    }
    assert approval["id"].startswith("appr_")
    assert len(approval["id"]) >= len("appr_") + 16


def test_asking_again_is_the_same_approval(kept: Kept) -> None:
    first = kept.pending(asked())
    kept.later(minutes=14)
    assert kept.pending(asked()) == first
    assert len(kept.all(APPROVALS)) == 1


def test_one_use(kept: Kept) -> None:
    first = kept.pending(asked())
    kept.decide(first)
    assert kept.begun(asked()).approval_id == first["id"]
    assert kept.pending(asked())["id"] != first["id"]


@pytest.mark.parametrize(
    "other",
    [
        asked("2"),
        asked(subject="bob", policy={"bob": POLICY["ann"]}),
        ruling_of(a_plan("item.write", target={**TARGET, "registration_generation": 4})),
        ruling_of(a_plan("item.write", target=TARGET, arguments={"id": "1"})),
        asked(policy={"ann": rows(["read item:*"], ask=[by_client("write item:*")])}),
        asked(rights=(Right(("write item", "2")),)),
    ],
    ids=["arguments", "subject", "target", "arguments of the plan", "approver", "rights"],
)
def test_it_is_for_that_very_call(kept: Kept, other: Ruling) -> None:
    approval = kept.pending(asked())
    kept.decide(approval)
    assert kept.pending(other)["id"] != approval["id"]
    assert kept.begun(asked()).approval_id == approval["id"]


def test_a_verb_whose_contract_has_changed_is_another_one(kept: Kept) -> None:
    kept.decide(kept.pending(asked()))
    call = asked().plan.call
    changed = replace(call, verb=replace(call.verb, digest=digest("changed")))
    assert kept.pending(ruling_of(Plan(changed, target=TARGET)))["contract_digest"] == digest("changed")


def test_the_order_of_keys_does_not_count(kept: Kept) -> None:
    kept.decide(kept.pending(asked(arguments={"a": 1, "b": [{"c": 1, "d": 2}]})))
    kept.begun(asked(arguments={"b": [{"d": 2, "c": 1}], "a": 1}))


def test_a_rejection_holds_for_ten_minutes(kept: Kept) -> None:
    kept.decide(kept.pending(asked()), approved=False)
    kept.later(minutes=9)
    refusal = kept.refused(asked())
    assert (refusal.kind, refusal.message) == ("denied", "`ann` may not do this.")
    assert kept.pending(asked("2"))
    kept.later(minutes=1)
    assert kept.pending(asked())


def test_what_is_approved_can_be_taken_back_until_it_is_used(kept: Kept) -> None:
    approval = kept.pending(asked())
    kept.decide(approval)
    kept.later(minutes=5)
    taken_back = kept.decide(approval, approved=False, by="operator:2")
    assert (taken_back.state, taken_back.decided_by, taken_back.arguments) == ("rejected", "operator:2", None)
    assert [row["arguments"] for row in kept.all(APPROVALS)] == [None]
    assert kept.refused(asked()).kind == "denied"
    kept.later(minutes=9)
    assert kept.refused(asked()).kind == "denied"
    with pytest.raises(ApprovalError, match="is rejected already"):
        kept.decide(approval)


def test_what_is_used_cannot_be_taken_back(kept: Kept) -> None:
    approval = kept.pending(asked())
    kept.decide(approval)
    kept.begun(asked())
    with pytest.raises(ApprovalError, match="is used already"):
        kept.decide(approval, approved=False)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("target", "{"),
        ("target", "[]"),
        ("rights", "["),
        ("rights", "[1]"),
        ("rights", "{}"),
        ("arguments", "{"),
        ("created_at", 2**62),
        ("expires_at", 2**62),
        ("state", "perhaps"),
    ],
)
@pytest.mark.parametrize("decided", [False, True])
def test_one_that_is_damaged_counts_for_nothing(kept: Kept, column: str, value: Any, decided: bool) -> None:
    other = kept.pending(asked("2"))
    approval = kept.pending(asked())
    if decided:
        kept.decide(approval)
    damaging = APPROVALS.update().where(APPROVALS.c.id == approval["id"]).values({column: value})
    kept.write(lambda connection: connection.execute(damaging))
    shown = kept.read(lambda connection: recent(connection, kept.now, 9))
    assert {found.id: found.state for found in shown} == {other["id"]: "pending", approval["id"]: "unreadable"}
    for approved in (True, False):
        with pytest.raises(ApprovalError, match="cannot be read"):
            kept.decide(approval, approved=approved)
    if decided and column == "arguments":
        return  # they are wiped by the use, and bound by their digest
    assert kept.pending(asked())["id"] not in (approval["id"], other["id"])
    assert kept.pending(asked("2")) == other


def test_it_waits_for_fifteen_minutes(kept: Kept) -> None:
    first = kept.pending(asked())
    kept.later(minutes=15)
    with pytest.raises(ApprovalError, match=r"^The approval `appr_[0-9a-f]+` is expired\.$"):
        kept.decide(first)
    assert kept.pending(asked())["id"] != first["id"]


@pytest.mark.parametrize(("minutes", "runs"), [(9.99, True), (10, False)])
def test_it_is_good_for_ten_minutes(kept: Kept, minutes: float, runs: bool) -> None:
    kept.decide(kept.pending(asked()))
    kept.later(minutes=minutes)
    assert isinstance(kept.begin(asked()), Refusal) is not runs


def test_what_is_decided_stays_so(kept: Kept) -> None:
    approval = kept.pending(asked())
    kept.decide(approval)
    with pytest.raises(ApprovalError, match="is approved already"):
        kept.decide(approval)
    kept.begun(asked())
    with pytest.raises(ApprovalError, match="is used already"):
        kept.decide(approval)
    other = kept.pending(asked("2"))
    kept.decide(other, approved=False)
    with pytest.raises(ApprovalError, match="is rejected already"):
        kept.decide(other)


def arguments_of(kept: Kept, approval: Mapping[str, Any]) -> str | None:
    return kept.read(lambda connection: find(connection, approval["id"], kept.now)).arguments


def stored(kept: Kept) -> str:
    return json.dumps([row["arguments"] for row in kept.all(APPROVALS)])


def test_complete_arguments_are_kept_until_it_is_used(kept: Kept) -> None:
    approval = kept.pending(asked())
    assert json.loads(arguments_of(kept, approval) or "") == {"id": "1", "content": CONTENT}
    kept.decide(approval)
    assert arguments_of(kept, approval) is not None
    kept.begun(asked())
    assert arguments_of(kept, approval) is None
    assert CONTENT not in stored(kept)


def test_arguments_are_wiped_by_a_rejection(kept: Kept) -> None:
    kept.decide(kept.pending(asked()), approved=False)
    assert CONTENT not in stored(kept)


@pytest.mark.parametrize("approved", [True, False])
def test_arguments_of_what_has_expired_are_not_shown_and_wiped_by_a_sweep(kept: Kept, approved: bool) -> None:
    approval = kept.pending(asked())
    if approved:
        kept.decide(approval)
    kept.later(minutes=15)
    found = kept.read(lambda connection: find(connection, approval["id"], kept.now))
    assert (found.state, found.arguments) == ("expired", None)
    assert CONTENT in stored(kept)
    kept.write(lambda connection: sweep(connection, kept.now))
    assert CONTENT not in stored(kept)
    assert [row["state"] for row in kept.all(APPROVALS)] == ["expired"]


def test_arguments_of_what_has_expired_are_wiped_by_the_next_question(kept: Kept) -> None:
    kept.pending(asked())
    kept.later(minutes=15)
    kept.pending(asked("2", arguments={"another": 1}))
    assert CONTENT not in stored(kept)


def wipes(kept: Kept, work: Callable[[Connection], Any]) -> bool:
    """Whether the store knows that this has wiped something."""
    kept.store.remove_traces()
    assert not kept.store.has_traces
    kept.write(work)
    return kept.store.has_traces


def test_whatever_wipes_arguments_says_so_to_the_store(kept: Kept) -> None:
    def ask(connection: Connection) -> None:
        begin(connection, asked(), 30, kept.now)

    def decided(approval: Mapping[str, Any], *, approved: bool) -> Callable[[Connection], Any]:
        return lambda connection: decide(connection, approval["id"], approved, "operator:1", kept.now)

    def swept(connection: Connection) -> None:
        sweep(connection, kept.now)

    assert not wipes(kept, ask)
    assert not wipes(kept, swept)
    assert not wipes(kept, decided(kept.pending(asked()), approved=True))
    assert wipes(kept, ask)
    assert wipes(kept, decided(kept.pending(asked("2")), approved=False))
    for work in (swept, ask):
        kept.pending(asked("3"))
        kept.later(minutes=15)
        assert kept.read(lambda connection: any_over(connection, kept.now))
        assert wipes(kept, work)
        assert not kept.read(lambda connection: any_over(connection, kept.now))


def test_settled_ones_are_forgotten_in_the_end(kept: Kept) -> None:
    kept.decide(kept.pending(asked()), approved=False)
    kept.later(days=89)
    waiting = kept.pending(asked())
    kept.write(lambda connection: sweep(connection, kept.now))
    assert len(kept.all(APPROVALS)) == 2
    kept.later(minutes=14, days=1)
    kept.write(lambda connection: sweep(connection, kept.now))
    assert [row["id"] for row in kept.all(APPROVALS)] == [waiting["id"]]


def test_only_so_many_wait(kept: Kept) -> None:
    for number in range(100):
        kept.pending(asked(str(number)))
    refusal = kept.refused(asked("100"))
    assert (refusal.kind, refusal.message) == ("busy", "Too many calls of `ann` wait to be approved.")
    assert kept.pending(asked("7"))
    assert kept.pending(asked(subject="bob", policy={"bob": POLICY["ann"]}))
    kept.later(minutes=15)
    assert kept.pending(asked("100"))


# When nothing was contacted


def test_it_is_given_back_when_nothing_was_contacted(kept: Kept) -> None:
    approval = kept.pending(asked())
    kept.decide(approval)
    kept.end(kept.begun(asked()), Evidence(contacted=False), outcome="refused")
    found = kept.read(lambda connection: find(connection, approval["id"], kept.now))
    assert (found.state, found.used_at) == ("approved", None)
    assert json.loads(found.arguments or "") == {"id": "1", "content": CONTENT}
    assert kept.begun(asked()).approval_id == approval["id"]


def test_it_stays_used_when_something_was_contacted(kept: Kept) -> None:
    kept.decide(kept.pending(asked()))
    kept.end(kept.begun(asked()), Evidence(contacted=True, status="transport_error"))
    assert kept.pending(asked())


def test_it_is_not_given_back_once_its_time_is_over(kept: Kept) -> None:
    kept.decide(kept.pending(asked()))
    permit = kept.begun(asked())
    kept.later(minutes=10)
    kept.end(permit, Evidence(contacted=False))
    assert [row["state"] for row in kept.all(APPROVALS)] == ["used"]
    assert CONTENT not in stored(kept)


def test_a_call_that_has_ended_gives_nothing_back(kept: Kept) -> None:
    kept.decide(kept.pending(asked()))
    permit = kept.begun(asked())
    kept.end(permit)
    kept.end(permit, Evidence(contacted=False))
    assert kept.pending(asked())


def test_one_that_is_given_back_counts_beside_one_that_waits(kept: Kept) -> None:
    first = kept.pending(asked())
    kept.decide(first)
    permit = kept.begun(asked())
    second = kept.pending(asked())
    kept.end(permit, Evidence(contacted=False))
    assert kept.begun(asked()).approval_id == first["id"]
    assert kept.pending(asked())["id"] == second["id"]


# Looking them up


def test_an_id_can_be_shortened(kept: Kept) -> None:
    approval = kept.pending(asked())
    for length in (6, 12, len(approval["id"])):
        assert kept.read(lambda connection: find(connection, approval["id"][:length], kept.now)).id == approval["id"]  # noqa: B023


@pytest.mark.parametrize("text", ["", "appr_", "appr", "x" * 20, "appr_%%%%", "APPR_0123456", "appr_0\x00"])
def test_what_is_no_id(kept: Kept, text: str) -> None:
    kept.pending(asked())
    with pytest.raises(ApprovalError, match="is no id of an approval, nor the first 6 or more characters of one"):
        kept.read(lambda connection: find(connection, text, kept.now))


def test_an_id_that_is_not_there(kept: Kept) -> None:
    with pytest.raises(ApprovalError, match=r"^There is no approval `appr_0123456789`\.$"):
        kept.read(lambda connection: find(connection, "appr_0123456789", kept.now))


def test_an_id_that_is_too_short_for_several(kept: Kept) -> None:
    # Of seventeen ids two begin with the same digit.
    starts = [kept.pending(asked(str(number)))["id"][:6] for number in range(17)]
    twice = next(start for start in starts if starts.count(start) > 1)
    with pytest.raises(ApprovalError, match="Several approvals begin with"):
        kept.read(lambda connection: find(connection, twice, kept.now))


def test_those_that_wait_are_listed_the_oldest_first(kept: Kept) -> None:
    approvals = []
    for number in range(3):
        approvals.append(kept.pending(asked(str(number)))["id"])
        kept.later(minutes=1)
    kept.decide({"id": approvals[1]})
    assert [found.id for found in kept.read(lambda connection: pending(connection, kept.now))] == [
        approvals[0],
        approvals[2],
    ]
    kept.later(minutes=12.5)
    assert [found.id for found in kept.read(lambda connection: pending(connection, kept.now))] == [approvals[2]]
    listed = kept.read(lambda connection: recent(connection, kept.now, 2))
    assert [(found.id, found.state) for found in listed] == [(approvals[1], "expired"), (approvals[2], "pending")]


def test_one_tells_who_decided_and_when(kept: Kept) -> None:
    approval = kept.pending(asked())
    kept.later(minutes=1)
    decided = kept.decide(approval, by="operator:ab12")
    assert (decided.state, decided.decided_by, decided.decided_at) == ("approved", "operator:ab12", kept.now)
    assert decided.approver == "operator"
