"""One way to tell what a run is: the table of its cases, and properties that hold for any order of observations."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verbc.support.job_hooks import JobHooks
from verbc.support.job_operations import JobOperations
from verbc.support.process_identity import Sighting
from verbc.support.run_classification import (
    UNRESOLVED_AFTER,
    Reading,
    as_report,
    conclusion,
    is_unresolved,
    never_started,
    reading,
    start_failed,
    timestamp,
)
from verbc.support.run_look import Look, Seen
from verbc.support.run_record import End, Identity, Outcome, RunRecord, new_run_id
from verbc.support.run_store import COMPONENT, RunStore
from verbc.support.sqlite_file import SqliteFile
from verbc.support.store import Store

NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
OWNER, LEADER = Identity(10, "a"), Identity(20, "b")
ALIVE, GONE = Sighting(True, "confirmed"), Sighting(False, "gone")
REPORT = End("completed", "succeeded", "lifecycle", "run.completed.ok", at=NOW)


NUMBERS = count()


def record(**changes: Any) -> RunRecord:
    made = RunRecord(new_run_id(NOW), "work.submit", None, ("tool",), "/", Path("/none"), OWNER, NOW - 10 * SECOND)
    return replace(made, **changes)


def running(**changes: Any) -> RunRecord:
    return record(spawn_state="started", leader=LEADER, pgid=20, started_at=NOW - 9 * SECOND, **changes)


# What readers are told.


def test_what_has_no_record_is_unknown_and_not_terminal() -> None:
    assert reading(None) == Reading("unknown", terminal=False)


def test_a_start_under_way_is_running() -> None:
    told = reading(record(), Sighting(None, "not_recorded"))
    assert (told.status, told.terminal, told.alive, told.spawn_state) == ("running", False, None, "preparing")


@pytest.mark.parametrize("sighting", [ALIVE, Sighting(None, "unreadable"), Sighting(None, "unconfirmed"), None])
def test_a_leader_that_may_be_alive_is_running(sighting: Sighting | None) -> None:
    told = reading(running(), sighting)
    assert (told.status, told.terminal, told.possibly_orphaned) == ("running", False, False)


@pytest.mark.parametrize("identity", ["gone", "recycled"])
def test_a_leader_that_is_gone_without_an_end_on_record_is_not_terminal(identity: Any) -> None:
    told = reading(running(exit_code=0, exited_at=NOW), Sighting(False, identity))
    assert (told.status, told.terminal, told.outcome) == ("exited", False, None)
    assert (told.possibly_orphaned, told.pid_identity) == (True, identity)


def test_an_end_on_record_is_told_whatever_is_seen() -> None:
    ended = running(end=REPORT, finished_at=NOW, precision="observed")
    assert reading(ended, ALIVE) == reading(ended, GONE) == reading(ended)
    assert (reading(ended).status, reading(ended).terminal, reading(ended).outcome) == ("completed", True, "succeeded")
    assert reading(ended).terminal_source == "lifecycle"


def test_a_start_is_unresolved_after_a_long_time_and_an_end_resolves_it() -> None:
    young, old = record(submitted_at=NOW), record(submitted_at=NOW - UNRESOLVED_AFTER - SECOND)
    assert not is_unresolved(young, NOW)
    assert is_unresolved(old, NOW)
    assert not is_unresolved(replace(old, end=REPORT), NOW)
    assert not is_unresolved(running(submitted_at=old.submitted_at), NOW)
    assert not is_unresolved(young, NOW - timedelta(days=1))  # the clock was set back


# What goes on record.


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_a_report_is_the_end(outcome: Outcome) -> None:
    reported = replace(REPORT, outcome=outcome)
    ended = conclusion(running(exit_code=1, exited_at=NOW - SECOND), reported, True, NOW + SECOND)
    assert (ended.end, ended.finished_at, ended.precision, ended.late_report) == (reported, NOW, "observed", None)


def test_a_leader_that_exited_nonzero_without_report_is_failed() -> None:
    end = conclusion(running(exit_code=3, exited_at=NOW), None, True, NOW).end
    assert (end.status, end.outcome, end.source) == ("exited", "failed", "exit_code")
    assert end.reason_code == "exited_nonzero_without_report"
    assert end.reason_detail is not None
    assert "exit code 3" in end.reason_detail
    assert "do not start it again unasked" in end.reason_detail


def test_a_leader_that_a_signal_ended_is_failed() -> None:
    end = conclusion(running(exit_code=-9, exited_at=NOW), None, True, NOW).end
    assert (end.outcome, end.reason_code) == ("failed", "exited_nonzero_without_report")
    assert "SIGKILL" in str(end.reason_detail)
    assert "signal 99" in str(conclusion(running(exit_code=-99, exited_at=NOW), None, True, NOW).end.reason_detail)


def test_without_hooks_the_exit_code_is_the_outcome() -> None:
    done = conclusion(running(exit_code=0, exited_at=NOW), None, False, NOW)
    failed = conclusion(running(exit_code=2, exited_at=NOW), None, False, NOW)
    assert (done.end.outcome, done.end.source, done.end.reason_code) == ("succeeded", "exit_code", None)
    assert (failed.end.outcome, failed.end.reason_code) == ("failed", "exited_nonzero")
    assert (done.finished_at, done.precision) == (NOW, "observed")


def test_exit_0_without_a_report_stays_indeterminate() -> None:
    end = conclusion(running(exit_code=0, exited_at=NOW), None, True, NOW).end
    assert (end.status, end.outcome, end.reason_code) == ("exited", "indeterminate", "process_gone_without_outcome")
    assert "do not start it again unasked" in str(end.reason_detail)


@pytest.mark.parametrize("reports", [True, False])
def test_a_run_whose_end_nobody_saw_is_indeterminate(reports: bool) -> None:
    ended = conclusion(running(), None, reports, NOW)
    assert (ended.end.outcome, ended.end.reason_code) == ("indeterminate", "process_gone_without_outcome")
    assert ended.end.source == "process_gone"
    assert (ended.finished_at, ended.precision) == (NOW, "upper_bound")
    assert ended.end.evidence is not None
    assert {"kind", "finding", "observed_at", "observer"} == ended.end.evidence.keys()


STOPPED = {"stop_requested_at": NOW - SECOND}


@pytest.mark.parametrize("code", [None, 0, -15, 143])
def test_a_run_that_was_killed_is_cancelled(code: int | None) -> None:
    killed = running(**STOPPED, stop_reason="kill", exit_code=code, exited_at=code and NOW)
    end = conclusion(killed, None, True, NOW).end
    assert (end.status, end.outcome, end.source, end.reason_code) == ("killed", "cancelled", "kill", "killed")


def test_a_run_over_the_limit_of_its_log_is_failed() -> None:
    end = conclusion(running(**STOPPED, stop_reason="log_limit"), None, False, NOW).end
    assert (end.status, end.outcome, end.source) == ("failed", "failed", "log_limit")
    assert end.reason_code == "log_limit_exceeded"


@pytest.mark.parametrize(
    ("reason", "outcome", "stands"),
    [
        ("kill", "succeeded", True),
        ("kill", "cancelled", True),
        ("kill", "failed", False),
        ("kill", "indeterminate", False),
        ("log_limit", "succeeded", True),
        ("log_limit", "cancelled", False),
        ("log_limit", "failed", False),
    ],
)
def test_the_report_of_a_run_that_was_stopped(reason: Any, outcome: Outcome, stands: bool) -> None:
    reported = replace(REPORT, outcome=outcome)
    ended = conclusion(running(**STOPPED, stop_reason=reason), reported, True, NOW)
    assert (ended.end == reported) is stands
    assert ended.late_report == (None if stands else as_report(reported))


def test_a_start_that_never_happened() -> None:
    ended = never_started(record(), NOW)
    assert (ended.end.status, ended.end.outcome, ended.end.source) == ("failed", "failed", "spawn_failure")
    assert ended.end.reason_code == start_failed("No.", NOW).reason_code == "spawn_failed"


def test_a_clock_that_was_set_back_lets_nothing_end_before_it_began() -> None:
    begun = running(exit_code=0, exited_at=NOW - timedelta(hours=1))
    assert conclusion(begun, None, False, NOW - timedelta(hours=1)).finished_at == begun.started_at
    waiting = never_started(record(), NOW - timedelta(hours=1))
    assert waiting.finished_at == record().submitted_at


def test_times_are_told_in_utc() -> None:
    assert timestamp(datetime.fromisoformat("2026-05-01T14:00:00.123456+02:00")) == "2026-05-01T12:00:00.123Z"


# Any order of observations.

ENDS = st.builds(
    End,
    status=st.sampled_from(["completed", "failed", "timed_out"]),
    outcome=st.sampled_from(get_args(Outcome)),
    source=st.just("lifecycle"),
    reason_code=st.none() | st.just("because"),
    at=st.none() | st.just(NOW),
)
OBSERVATIONS = st.one_of(
    st.just(("started",)),
    st.tuples(st.just("exited"), st.sampled_from([0, 1, -9])),
    st.tuples(st.just("stop"), st.sampled_from(["kill", "log_limit"])),
    st.tuples(st.just("settled"), st.none() | ENDS, st.booleans()),
    st.tuples(st.just("late"), ENDS),
)
SIGHTINGS = st.sampled_from(
    [ALIVE, GONE, Sighting(False, "recycled"), Sighting(None, "unreadable"), Sighting(None, "unconfirmed")]
)


class Readers:
    """The real operations over runs as a test says that they are seen."""

    def __init__(self) -> None:
        self.found: list[Look] = []
        self.operations = JobOperations(self._keeper, JobHooks("runs", None))

    async def _keeper(self) -> Any:
        return self

    async def look(self, run_id: str, characters: int) -> tuple[Look, None]:
        return self.found[0], None

    async def page(self, limit: int, status: str | None) -> tuple[list[Look], bool]:
        return self.found, False

    async def each(self, run_ids: Sequence[str], *, patient: bool) -> list[Look]:
        return self.found

    def changes(self) -> Any:
        class Changes:
            def __enter__(self) -> asyncio.Event:
                return asyncio.Event()

            def __exit__(self, *_: object) -> None: ...

        return Changes()

    async def read(self, seen: Seen) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """What status, list and wait say of one run."""
        self.found, run_id = [seen], seen.record.run_id
        call: Any = SimpleNamespace(last_end=0.0)
        status = await self.operations.status(call, run_id=run_id, detail=False)
        listed = await self.operations.list(call, limit=1, status=None)
        waited = await self.operations.wait(call, run_ids=[run_id], max_wait=0, poll_interval=1)
        return status, listed["jobs"][0], waited


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    store = Store(SqliteFile(tmp_path_factory.mktemp("state") / "runs.db"), [COMPONENT])
    yield RunStore(store, Path("/none"))
    store.close()


def observe(runs: RunStore, run_id: str, what: Any) -> None:
    """Let one thing become known, as the backend would."""
    before = runs.get(run_id)
    assert before is not None
    match what:
        case ("started",):
            runs.started(run_id, LEADER, 20, NOW)
        case ("exited", code):
            runs.exited(run_id, code, NOW)
        case ("stop", reason):
            runs.stop_requested(run_id, reason, NOW)
        case ("settled", reported, reports):
            ended = conclusion(before, reported, reports, NOW)
            won = runs.end(run_id, ended.end, ended.finished_at, ended.precision)
            assert won is (before.end is None)
        case ("late", end):
            runs.late_report(run_id, as_report(end))


@settings(deadline=None)
@given(steps=st.lists(st.tuples(OBSERVATIONS, SIGHTINGS), max_size=8))
def test_the_first_end_on_record_stays_and_all_readers_agree(runs: RunStore, steps: list[tuple[Any, Sighting]]) -> None:
    made = record(run_id=f"20260501T120000-{next(NUMBERS):06x}")
    runs.reserve(made, None)
    first: End | None = None
    with asyncio.Runner() as runner:
        for what, sighting in steps:
            observe(runs, made.run_id, what)
            now = runs.get(made.run_id)
            assert now is not None
            first = first or now.end
            assert now.end == first
            status, row, waited = runner.run(Readers().read(Seen(now, sighting)))
            shared = row.keys() & status.keys()
            assert {name: row[name] for name in shared} == {name: status[name] for name in shared}
            assert waited["runs"] == [row]
            assert status["terminal"] is waited["all_terminal"] is (first is not None)
            assert status["outcome"] == (first.outcome if first else None)
            groups = [*waited["pending"], *waited["stopped_without_end"], *waited["unresolved_spawn"]]
            assert groups == ([] if first else [made.run_id])
            assert (made.run_id in waited["stopped_without_end"]) is status["possibly_orphaned"]


@given(
    stop=st.none() | st.sampled_from(["kill", "log_limit"]),
    code=st.none() | st.integers(-64, 255),
    reported=st.none() | ENDS,
    reports=st.booleans(),
)
def test_indeterminate_is_never_made_anything_else(
    stop: Any, code: int | None, reported: End | None, reports: bool
) -> None:
    known = running(stop_reason=stop, stop_requested_at=stop and NOW, exit_code=code, exited_at=NOW if code else None)
    end = conclusion(known, reported, reports, NOW).end
    nobody_knows = reported is None and stop is None and (code is None or (code == 0 and reports))
    assert (end.reason_code == "process_gone_without_outcome") is nobody_knows
    if nobody_knows or (reported is not None and stop is None and reported.outcome == "indeterminate"):
        assert end.outcome == "indeterminate"
