"""Budgets: reserved before a call, settled after it, given back when nothing came of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from verbc.support.backend import Evidence
from verbc.support.governance_tables import BUDGETS
from verbc.support.refusal import Refusal
from verbc.support.rulings import Ruling

from .governance import DATABASES, NOW, POLICY, Kept, a_plan, keeping, policy_of, ruling_of

OUTPUT = 65536  # bytes that a verb of the samples may give back


@pytest.fixture(params=DATABASES)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    with keeping(tmp_path, request) as kept:
        yield kept


def reading(
    calls: int | None = None, size: int | None = None, per: float = 60.0, *, verb: str = "item.read", **changes: Any
) -> Ruling:
    """A call under a budget; it may bring 100 bytes."""
    plan = a_plan(verb, **{"cost": 100, **changes})
    budget = {"calls": calls, "bytes": size, "per": per}
    subject = plan.call.caller.subject
    return ruling_of(plan, policy_of({subject: {**POLICY["ann"], "budget": budget}}))


def used(kept: Kept, subject: str = "ann") -> tuple[int, int]:
    """Calls and bytes of a subject."""
    (row,) = [row for row in kept.all(BUDGETS) if row["subject"] == subject]
    return row["calls"], row["bytes"]


def test_only_subjects_with_a_budget_have_one(kept: Kept) -> None:
    kept.begun(ruling_of(a_plan()))
    assert kept.all(BUDGETS) == []


def test_so_many_calls(kept: Kept) -> None:
    for _ in range(3):
        kept.end(kept.begun(reading(calls=3)))
    refusal = kept.refused(reading(calls=3))
    assert refusal.kind == "busy"
    assert refusal.message == "The budget of `ann` is used up until 2026-03-04T05:07:07.089Z."
    assert used(kept)[0] == 3
    kept.begun(reading(calls=4))


def test_the_most_that_a_call_can_bring_is_reserved(kept: Kept) -> None:
    kept.begun(reading(size=250))
    kept.begun(reading(size=250))
    assert used(kept) == (2, 200)
    assert kept.refused(reading(size=250)).kind == "busy"
    assert used(kept) == (2, 200)
    kept.begun(reading(size=250, cost=50))
    assert used(kept) == (3, 250)


def test_without_a_cost_it_is_what_the_verb_may_give_back(kept: Kept) -> None:
    kept.begun(reading(size=OUTPUT, cost=None))
    assert used(kept) == (1, OUTPUT)


@pytest.mark.parametrize(
    ("evidence", "outcome", "charged"),
    [
        (Evidence(response_bytes=30, status="ok"), "ok", 30),
        (Evidence(response_bytes=130, status="ok"), "ok", 130),
        (Evidence(response_bytes=0, status="invalid_response"), "invalid_response", 0),
        (Evidence(sent=True, status="transport_error"), "transport_error", 100),
        (Evidence(), "ok", 7),
        (Evidence(), "refused", 7),
        (Evidence(), "internal", 100),
        (Evidence(), "cancelled", 100),
        (Evidence(status="ok"), "ok", 100),
    ],
)
def test_what_is_charged(kept: Kept, evidence: Evidence, outcome: str, charged: int) -> None:
    kept.end(kept.begun(reading(size=1000)), evidence, outcome=outcome, result_bytes=7)
    assert used(kept) == (1, charged)


def test_nothing_is_charged_when_nothing_was_contacted(kept: Kept) -> None:
    kept.begun(reading(calls=2, size=200))
    permit = kept.begun(reading(calls=2, size=200, correlation="c1"))
    kept.end(permit, Evidence(contacted=False), outcome="refused", error=Refusal("unavailable", "No."))
    assert used(kept) == (1, 100)
    kept.begun(reading(calls=2, size=200))


def test_a_call_is_settled_once(kept: Kept) -> None:
    permit = kept.begun(reading(size=1000))
    for size in (30, 20):
        kept.end(permit, Evidence(response_bytes=size, status="ok"))
    kept.end(permit, Evidence(contacted=False))
    assert used(kept) == (1, 30)


def test_a_window_begins_with_its_first_use(kept: Kept) -> None:
    kept.begun(reading(calls=1))
    kept.later(seconds=59.9)
    assert kept.refused(reading(calls=1)).kind == "busy"
    kept.later(seconds=0.1)
    kept.begun(reading(calls=1))
    kept.later(seconds=59.9)
    assert kept.refused(reading(calls=1)).kind == "busy"
    assert used(kept) == (1, 100)


def test_what_ends_after_its_window_changes_nothing_in_the_next(kept: Kept) -> None:
    first = kept.begun(reading())
    second = kept.begun(reading(correlation="c1"))
    kept.later(seconds=60)
    kept.begun(reading(correlation="c2"))
    kept.end(first, Evidence(response_bytes=1, status="ok"))
    kept.end(second, Evidence(contacted=False))
    assert used(kept) == (1, 100)


def test_a_clock_that_was_set_back_does_not_lock_anybody_out(kept: Kept) -> None:
    kept.later(days=1000)
    kept.begun(reading(calls=2))
    kept.now = NOW
    for _ in range(2):
        kept.begun(reading(calls=2))
    assert kept.refused(reading(calls=2)).message.endswith("2026-03-04T05:07:07.089Z.")


@pytest.mark.parametrize("budget", [{"calls": 0}, {"size": 99}])
def test_what_never_fits(kept: Kept, budget: dict[str, int]) -> None:
    refusal = kept.refused(reading(**budget))  # type: ignore[arg-type]
    assert refusal.kind == "busy"
    assert refusal.message == "One such call can take more than the whole budget of `ann`."
    assert kept.all(BUDGETS) == []


def test_each_subject_has_its_own(kept: Kept) -> None:
    kept.begun(reading(calls=1))
    kept.begun(reading(calls=1, subject="bob"))
    assert (used(kept), used(kept, "bob")) == ((1, 100), (1, 100))


def test_an_approval_outlives_a_budget_that_is_used_up(kept: Kept) -> None:
    asked = reading(calls=1, verb="item.write")
    approval = kept.pending(asked)
    kept.begun(reading(calls=1))
    kept.decide(approval)
    assert kept.refused(asked).kind == "busy"
    assert kept.begun(reading(calls=2, verb="item.write")).approval_id == approval["id"]


def test_what_is_pending_charges_nothing(kept: Kept) -> None:
    kept.pending(reading(calls=1, verb="item.write"))
    assert kept.all(BUDGETS) == []
