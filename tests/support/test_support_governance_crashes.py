"""Processes that are killed at a write: an approval is used or it is not, and everything else agrees with that."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from verbc.support.audit import lines
from verbc.support.governance_tables import APPROVALS, BUDGETS
from verbc.support.permits import Permit

from .governance import CONTENT, DATABASES, Kept, keeping, running
from .governance_programs import COST, DEEDS, SIDES, USED, asking


@pytest.fixture(scope="module", params=DATABASES)
def crashed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    """What is left when a process was killed before, and one after, each of the writes."""
    with keeping(tmp_path_factory.mktemp("crashed"), request) as kept:
        ends = running("crash", kept)
        assert ends == {f"{deed} {side}": -signal.SIGKILL for deed in DEEDS for side in SIDES}
        yield kept


def approval(kept: Kept, subject: str) -> tuple[str, bool] | None:
    """The state of the one approval of a subject, and whether its arguments are kept."""
    found = [row for row in kept.all(APPROVALS) if row["subject"] == subject]
    assert len(found) <= 1
    return (found[0]["state"], found[0]["arguments"] is not None) if found else None


def budget(kept: Kept, subject: str) -> tuple[int, int] | None:
    found = [row for row in kept.all(BUDGETS) if row["subject"] == subject]
    return (found[0]["calls"], found[0]["bytes"]) if found else None


def record(kept: Kept, subject: str) -> list[str]:
    """The kinds of rows of a subject, each with how it went."""
    told = kept.read(lambda connection: lines(connection, kept.now, subject=subject, limit=100))
    return [f"{line['kind']} {line['outcome'] or line['status']}" for line in told]


ASKED = "decision pending"
GIVEN = "approval approved"
STARTED = "decision allow"
LEFT: dict[str, tuple[Any, Any, list[str]]] = {
    "sweep before": (("pending", True), None, [ASKED]),
    "sweep after": (("expired", False), None, [ASKED]),
    "ask before": (None, None, []),
    "ask after": (("pending", True), None, [ASKED]),
    "approve before": (("pending", True), None, [ASKED]),
    "approve after": (("approved", True), None, [ASKED, GIVEN]),
    "reject before": (("pending", True), None, [ASKED]),
    "reject after": (("rejected", False), None, [ASKED, "approval rejected"]),
    "use before": (("approved", True), None, [ASKED, GIVEN]),
    "use after": (("used", False), (1, COST), [ASKED, GIVEN, STARTED, "call unknown"]),
    "end before": (("used", False), (1, COST), [ASKED, GIVEN, STARTED, "call unknown"]),
    "end after": (("used", False), (1, USED), [ASKED, GIVEN, STARTED, "call ok"]),
    "give back before": (("used", False), (1, COST), [ASKED, GIVEN, STARTED, "call unknown"]),
    "give back after": (("approved", True), (0, 0), [ASKED, GIVEN, STARTED, "call not_started"]),
    "refuse before": (None, None, []),
    "refuse after": (None, None, ["decision refused"]),
}


@pytest.mark.parametrize("subject", LEFT)
def test_what_a_kill_leaves(crashed: Kept, subject: str) -> None:
    left = (approval(crashed, subject), budget(crashed, subject), record(crashed, subject))
    assert left == LEFT[subject]


def test_every_write_is_among_them() -> None:
    assert LEFT.keys() == {f"{deed} {side}" for deed in DEEDS for side in SIDES}


def test_nothing_of_what_was_sent_outlives_its_approval(crashed: Kept) -> None:
    for row in crashed.all(APPROVALS):
        kept = json.dumps(row)
        assert (CONTENT in kept) is (row["state"] in ("pending", "approved"))


def test_an_approval_counts_once_whenever_the_kill_came(crashed: Kept, tmp_path: Path) -> None:
    for subject in ("use before", "give back after"):
        assert isinstance(crashed.begin(asking(subject)), Permit)
    for subject in ("use before", "use after", "end before", "end after", "give back before", "give back after"):
        assert crashed.pending(asking(subject))
