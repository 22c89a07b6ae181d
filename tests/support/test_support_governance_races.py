"""Processes that want the same at one time: of those who resume a call one runs, whatever the database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from verbc.support.audit import lines
from verbc.support.governance_tables import APPROVALS, AUDIT, BUDGETS

from .governance import DATABASES, Kept, keeping, running
from .governance_programs import CALLS, PROCESSES, ROUNDS


@pytest.fixture(scope="module", params=DATABASES)
def raced(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kept, Any]]:
    """What is kept after a race, and what was told of it."""
    with keeping(tmp_path_factory.mktemp("raced"), request) as kept:
        told = running("race", kept)
        assert told["ends"] == [0] * PROCESSES
        yield kept, told


def test_each_approval_is_used_by_one(raced: tuple[Kept, Any]) -> None:
    kept, told = raced
    used = [identifier for got in told["got"] for identifier in got["used"]]
    assert sorted(used) == sorted(told["approved"])
    calls = [row["approval_id"] for row in kept.all(AUDIT) if (row["kind"], row["subject"]) == ("call", "ann")]
    assert sorted(calls) == sorted(told["approved"])


def test_all_who_ask_for_the_same_get_the_same_approval(raced: tuple[Kept, Any]) -> None:
    kept, told = raced
    for turn in range(ROUNDS):
        assert len({got["asked"][turn] for got in told["got"]}) == 1
    assert sum(row["subject"] == "bob" for row in kept.all(APPROVALS)) == ROUNDS


def test_each_is_approved_by_one_at_most_and_rejected_by_one(raced: tuple[Kept, Any]) -> None:
    """Half of them approve and half reject, which takes back what was approved; after that nothing can be said."""
    kept, told = raced
    rows = [row for row in kept.all(APPROVALS) if row["subject"] == "joe"]
    assert len(rows) == ROUNDS
    for row in rows:
        by = [number for number, got in enumerate(told["got"]) for decided in got["decided"] if decided == row["id"]]
        (rejecting,) = [number for number in by if number % 2]
        assert len(by) <= 2
        assert (row["state"], row["decided_by"]) == ("rejected", f"operator:{rejecting}")


def test_a_budget_is_never_overdrawn(raced: tuple[Kept, Any]) -> None:
    kept, told = raced
    assert sum(got["budget"] for got in told["got"]) == CALLS
    assert [row["calls"] for row in kept.all(BUDGETS) if row["subject"] == "eve"] == [CALLS]


def test_the_record_is_in_order(raced: tuple[Kept, Any]) -> None:
    kept, _ = raced
    told = kept.read(lambda connection: lines(connection, kept.now, limit=10_000))
    assert len(told) == len({line["id"] for line in told}) > 0
    calls = [line for line in told if line["kind"] == "call"]
    assert {line["status"] for line in calls} == {"unknown"}  # their processes have ended before they did
