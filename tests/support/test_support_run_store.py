"""Runs on record: each question and each change, what is found after a crash, and what many processes write at once."""

from __future__ import annotations

import itertools
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Delete, Engine, Insert, Select, Update, event
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from verbc.support import run_tables
from verbc.support.run_classification import timestamp
from verbc.support.run_record import End, Identity, RunRecord
from verbc.support.run_store import (
    COMPONENT,
    ConflictError,
    RunStore,
    TakenError,
    Unreadable,
    UnreadableError,
)
from verbc.support.sqlite_file import SqliteFile
from verbc.support.store import Store

from . import store_programs
from .databases import KINDS, PostgresqlPlace
from .store_programs import (
    DONE,
    LEADER,
    NEVER_STARTED,
    NOW,
    POINTS,
    PROCESSES,
    ROUNDS,
    RUNS,
    WRITES,
    key,
    new_run,
    opened,
    part,
    prepare,
    run_id,
)

LATER = NOW + timedelta(minutes=5)
TESTS = Path(__file__).parents[1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def runs(path: Path) -> Iterator[RunStore]:
    store = Store(SqliteFile(path), [COMPONENT])
    yield RunStore(store, RUNS)
    store.close()


def by_hand(path: Path, statement: str, *values: object) -> list[Any]:
    """Past the store."""
    connection = sqlite3.connect(path)
    try:
        found = connection.execute(statement, values).fetchall()
        connection.commit()
        return found
    finally:
        connection.close()


def found(runs: RunStore, number: int) -> RunRecord:
    run = runs.get(run_id(number))
    assert run is not None
    return run


def add(runs: RunStore, *numbers: int) -> None:
    for number in numbers:
        runs.reserve(new_run(number), None)


def finish(runs: RunStore, number: int, status: str = "completed", at: datetime = NOW) -> None:
    add(runs, number)
    assert runs.end(run_id(number), replace(DONE, status=status), at, "observed")


def ids(*numbers: int) -> list[str]:
    return [run_id(number) for number in numbers]


# From the start to the end


def test_a_reserved_run_is_on_record_as_it_was_given(runs: RunStore) -> None:
    assert runs.get(run_id(1)) is None
    run = new_run(1)
    assert runs.reserve(run, None) is run
    assert runs.get(run_id(1)) == run


def test_the_folder_of_a_run_is_where_the_runs_are(path: Path, runs: RunStore) -> None:
    add(runs, 1)
    moved = RunStore(Store(SqliteFile(path), [COMPONENT]), Path("/elsewhere"))
    assert found(moved, 1).log == Path("/elsewhere") / run_id(1) / "console.log"
    moved._store.close()


def test_an_id_is_taken_once(runs: RunStore) -> None:
    add(runs, 1)
    with pytest.raises(TakenError):
        runs.reserve(new_run(1, label="another"), key("another"))
    assert found(runs, 1).label == "nightly"
    assert runs.of_key(key("another")) is None


def test_a_start_is_recorded_once(runs: RunStore) -> None:
    add(runs, 1)
    runs.started(run_id(1), LEADER, 4711, LATER)
    runs.started(run_id(1), Identity(1, "other"), 1, NOW)
    expected = replace(new_run(1), spawn_state="started", leader=LEADER, pgid=4711, started_at=LATER)
    assert runs.get(run_id(1)) == expected


def test_a_start_that_failed_ends_the_run_and_frees_its_key(runs: RunStore) -> None:
    runs.reserve(new_run(1), key("a"))
    runs.reserve(new_run(2), key("b"))
    assert runs.spawn_failed(run_id(1), NEVER_STARTED, LATER, "observed")
    assert found(runs, 1) == replace(
        new_run(1),
        spawn_state="failed",
        end=replace(NEVER_STARTED, at=LATER),
        finished_at=LATER,
        precision="observed",
    )
    assert runs.of_key(key("a")) is None
    assert runs.of_key(key("b")) == new_run(2)
    assert runs.reserve(new_run(3), key("a")) == new_run(3)


def test_what_was_started_cannot_have_failed_to_start(runs: RunStore) -> None:
    runs.reserve(new_run(1), key("a"))
    runs.started(run_id(1), LEADER, 4711, NOW)
    before = found(runs, 1)
    assert not runs.spawn_failed(run_id(1), NEVER_STARTED, LATER, "observed")
    assert runs.of_key(key("a")) == before


def test_what_has_ended_is_not_started(runs: RunStore) -> None:
    finish(runs, 1)
    before = found(runs, 1)
    runs.started(run_id(1), LEADER, 4711, NOW)
    assert not runs.spawn_failed(run_id(1), NEVER_STARTED, LATER, "observed")
    assert found(runs, 1) == before


def test_a_stop_is_requested_once(runs: RunStore) -> None:
    add(runs, 1)
    assert runs.stop_requested(run_id(1), "log_limit", LATER)
    assert not runs.stop_requested(run_id(1), "kill", NOW)
    assert found(runs, 1) == replace(new_run(1), stop_reason="log_limit", stop_requested_at=LATER)


def test_no_stop_is_requested_of_what_has_exited(runs: RunStore) -> None:
    add(runs, 1)
    runs.exited(run_id(1), 0, NOW)
    assert not runs.stop_requested(run_id(1), "kill", LATER)


def test_no_stop_is_requested_of_what_has_ended_or_is_not_known(runs: RunStore) -> None:
    finish(runs, 1)
    assert not runs.stop_requested(run_id(1), "kill", LATER)
    assert not runs.stop_requested(run_id(2), "kill", LATER)
    assert found(runs, 1).stop_requested_at is None


@pytest.mark.parametrize("code", [0, 3, 255, -9])
def test_an_exit_is_told_once(runs: RunStore, code: int) -> None:
    add(runs, 1)
    runs.exited(run_id(1), code, LATER)
    runs.exited(run_id(1), 77, NOW)
    assert found(runs, 1) == replace(new_run(1), exit_code=code, exited_at=LATER)


@pytest.mark.parametrize(("precision", "moment"), [("observed", LATER), ("upper_bound", None)])
def test_the_first_end_wins(runs: RunStore, precision: Any, moment: datetime | None) -> None:
    add(runs, 1)
    evidence = {"kind": "proc", "finding": "no such process", "observed_at": "2026-03-04T05:06:07Z"}
    assert runs.end(run_id(1), replace(DONE, evidence=evidence), LATER, precision)
    assert not runs.end(run_id(1), NEVER_STARTED, NOW, "observed")
    assert found(runs, 1) == replace(
        new_run(1),
        end=replace(DONE, evidence=evidence, details={}, at=moment),
        finished_at=LATER,
        precision=precision,
        details={"kind": "agent", "artifacts": 2},
    )


def test_an_end_of_an_unknown_run_is_none(runs: RunStore) -> None:
    assert not runs.end(run_id(1), DONE, NOW, "observed")
    assert runs.page(10) == []


def test_a_late_report_is_kept_once_and_changes_nothing(runs: RunStore) -> None:
    finish(runs, 1)
    before = found(runs, 1)
    runs.late_report(run_id(1), {"status": "failed", "code": [1, None]})
    runs.late_report(run_id(1), {"status": "other"})
    assert found(runs, 1) == replace(before, late_report={"status": "failed", "code": [1, None]})


def test_a_report_is_not_late_before_the_end(runs: RunStore) -> None:
    add(runs, 1)
    runs.late_report(run_id(1), {"status": "failed"})
    assert found(runs, 1) == new_run(1)


def test_details_join_and_the_later_ones_win(runs: RunStore) -> None:
    add(runs, 1)
    runs.add_details(run_id(1), {"kind": "play", "notice": {"ok": True}})
    runs.add_details(run_id(1), {"notice": {"code": 3}})
    runs.add_details(run_id(2), {"notice": 1})
    assert found(runs, 1).details == {"kind": "play", "notice": {"code": 3}}
    assert runs.get(run_id(2)) is None


@pytest.mark.parametrize("details", [{"a": float("nan")}, {"a": NOW}, {"a": b"bytes"}])
def test_what_is_no_json_is_not_recorded(runs: RunStore, details: dict[str, Any]) -> None:
    add(runs, 1)
    with pytest.raises((TypeError, ValueError)):
        runs.add_details(run_id(1), details)
    with pytest.raises((TypeError, ValueError)):
        runs.end(run_id(1), replace(DONE, details=details), NOW, "observed")
    with pytest.raises((TypeError, ValueError)):
        runs.reserve(new_run(2, details=details), None)
    assert runs.page(10) == [new_run(1)]


def test_an_end_is_untold_until_that_is_on_record(runs: RunStore) -> None:
    add(runs, 1, 2)
    runs.told(run_id(1), NOW)  # it has not ended
    finish(runs, 3)
    runs.reserve(new_run(4), key("a"))
    runs.spawn_failed(run_id(4), NEVER_STARTED, NOW, "observed")
    assert runs.untold() == [found(runs, 3), found(runs, 4)]
    runs.told(run_id(3), LATER)
    runs.told(run_id(3), NOW)
    assert found(runs, 3).told_at == LATER
    assert runs.untold() == [found(runs, 4)]
    assert found(runs, 1).told_at is None


# Keys


def test_a_key_stands_for_the_first_run_as_it_is_now(runs: RunStore) -> None:
    runs.reserve(new_run(1), key("a"))
    runs.started(run_id(1), LEADER, 4711, NOW)
    assert runs.reserve(new_run(2), key("a")) == found(runs, 1)
    assert runs.of_key(key("a")) == found(runs, 1)
    assert runs.get(run_id(2)) is None


def test_a_key_stands_for_its_arguments(runs: RunStore) -> None:
    runs.reserve(new_run(1), key("a"))
    with pytest.raises(ConflictError):
        runs.reserve(new_run(2), key("a", arguments="b" * 64))
    with pytest.raises(ConflictError):
        runs.of_key(key("a", arguments="b" * 64))
    assert runs.page(10) == [new_run(1)]


@pytest.mark.parametrize("other", [{"caller": "somebody"}, {"verb": "play.submit"}, {"key": "A"}])
def test_a_key_belongs_to_one_caller_and_one_verb(runs: RunStore, other: dict[str, str]) -> None:
    runs.reserve(new_run(1), key("a"))
    assert runs.of_key(replace(key("a"), **other)) is None
    assert runs.reserve(new_run(2), replace(key("a"), **other)) == new_run(2)


# Lists


def test_a_page_has_the_newest_first(runs: RunStore) -> None:
    add(runs, 2, 5, 1)
    finish(runs, 3)
    finish(runs, 4)
    assert [run.run_id for run in runs.page(3)] == ids(5, 4, 3)
    assert [run.run_id for run in runs.page(9)] == ids(5, 4, 3, 2, 1)


def test_a_page_of_one_status_has_the_runs_that_may_have_it_by_now(runs: RunStore) -> None:
    for number in (1, 3, 5, 7):
        finish(runs, number)
    finish(runs, 4, "failed")
    add(runs, 2, 6, 8)
    assert [run.run_id for run in runs.page(9, "completed")] == ids(8, 7, 6, 5, 3, 2, 1)
    assert [run.run_id for run in runs.page(2, "completed")] == ids(8, 7, 6, 5)
    assert [run.run_id for run in runs.page(9, "failed")] == ids(8, 6, 4, 2)
    assert [run.run_id for run in runs.page(1, "running")] == ids(8, 6, 2)
    assert [run.run_id for run in runs.page(1, "Completed")] == ids(8, 6, 2)


def test_the_unended_are_those_without_an_end(runs: RunStore) -> None:
    prepare(runs)
    assert [run.run_id for run in runs.unended()] == ids(2, 1)


def test_those_that_are_known_are_told_from_many(runs: RunStore) -> None:
    add(runs, 1, 1500)
    assert runs.known(run_id(number) for number in range(2000)) == set(ids(1, 1500))
    assert runs.known([]) == set()


def test_retention_forgets_what_ended_before_and_its_keys(runs: RunStore) -> None:
    prepare(runs)
    for number, minute in ((4, 4), (5, 5), (6, 6)):
        finish(runs, number, at=NOW + timedelta(minutes=minute))
    assert sorted(runs.ended_before(LATER)) == ids(3, 4)
    runs.forget_ended_before(LATER)
    assert [run.run_id for run in runs.page(9)] == ids(6, 5, 2, 1)
    assert runs.of_key(key("3")) is None
    assert runs.of_key(key("2")) == found(runs, 2)
    assert runs.ended_before(LATER) == []


def test_retention_never_forgets_what_has_not_ended(runs: RunStore) -> None:
    add(runs, 1)
    runs.exited(run_id(1), 0, NOW)
    assert runs.ended_before(datetime(9999, 1, 1, tzinfo=UTC)) == []
    runs.forget_ended_before(datetime(9999, 1, 1, tzinfo=UTC))
    assert runs.known([run_id(1)]) == {run_id(1)}


def test_a_key_that_was_forgotten_is_free_again(runs: RunStore) -> None:
    prepare(runs)
    runs.forget_ended_before(LATER)
    assert runs.reserve(new_run(4), key("3", arguments="b" * 64)) == new_run(4)


def test_an_id_that_leads_elsewhere_is_never_named(runs: RunStore, path: Path) -> None:
    finish(runs, 1)
    add(runs, 2)
    by_hand(path, "UPDATE runs SET run_id = '../../etc/' || run_id")
    assert runs.page(10) == runs.page(10, "completed") == runs.unended() == []
    assert runs.ended_before(LATER) == []
    runs.forget_ended_before(LATER)
    assert by_hand(path, "SELECT run_id FROM runs") == [(f"../../etc/{run_id(2)}",)]


# Damage

DAMAGE = {
    "verb": b"\x00bytes",
    "label": b"text",
    "command": '["li", 1]',
    "cwd": '"/home',
    "owner_pid": "many",
    "owner_start": b"",
    "submitted_at": "yesterday",
    "spawn_state": "begun",
    "leader_pid": None,
    "leader_start": None,
    "pgid": 1.5,
    "started_at": 10**18,
    "stop_requested_at": "soon",
    "stop_reason": "whim",
    "exit_code": "zero",
    "exited_at": b"1",
    "status": None,
    "outcome": "mostly",
    "source": None,
    "reason_code": b"text",
    "reason_detail": b"text",
    "evidence": "[]",
    "finished_at": "never",
    "precision": "about",
    "told_at": "then",
    "late_report": "{",
    "details": "[" * 100_000,
}


@pytest.mark.parametrize("column", DAMAGE)
def test_a_damaged_record_is_unreadable_and_hides_no_other(runs: RunStore, path: Path, column: str) -> None:
    for number in (1, 2, 3):
        add(runs, number)
        runs.started(run_id(number), LEADER, 4711, NOW)
        runs.end(run_id(number), DONE, NOW, "observed")
    expected = [found(runs, 3), Unreadable(run_id(2)), found(runs, 1)]
    by_hand(path, f"UPDATE runs SET {column} = ? WHERE run_id = ?", DAMAGE[column], run_id(2))  # noqa: S608
    with pytest.raises(UnreadableError) as failure:
        runs.get(run_id(2))
    assert failure.value.run_id == run_id(2)
    assert runs.page(10) == expected


WORSE = [
    ("leader_pid", 0),
    ("leader_pid", -5),
    ("leader_pid", 2**31),
    ("pgid", -1),
    ("owner_pid", 0),
    ("status", ""),
    ("status", "x" * 65),
    ("source", ""),
    ("source", "x" * 65),
    ("reason_code", ""),
    ("reason_code", "x" * 101),
    ("details", '{"answer": 1e999}'),
    ("details", '{"a": NaN}'),
    ("details", '{"a": -Infinity}'),
    ("details", '{"a": "\\ud800"}'),
    ("details", '{"a": ' + "9" * 4250 + "}"),
    ("details", '{"a": ' + "[" * 60 + "]" * 60 + "}"),
    ("late_report", '{"answer": 1e999}'),
    ("evidence", "{}"),
    ("evidence", '{"kind": 1, "finding": "x", "observed_at": "2026-03-04T05:06:07Z"}'),
    ("evidence", '{"kind": "x", "finding": "x", "observed_at": "yesterday"}'),
    ("evidence", '{"kind": "x", "finding": "x", "observed_at": "2026-13-04T05:06:07Z"}'),
    ("evidence", '{"kind": "x", "finding": "x", "observed_at": "2026-03-04T05:06:07Z", "observer": null}'),
]


@pytest.mark.parametrize(("column", "value"), WORSE)
def test_a_record_that_could_not_be_told_is_unreadable(runs: RunStore, path: Path, column: str, value: object) -> None:
    add(runs, 1)
    runs.started(run_id(1), LEADER, 4711, NOW)
    runs.end(run_id(1), DONE, NOW, "observed")
    by_hand(path, f"UPDATE runs SET {column} = ?", value)  # noqa: S608
    assert runs.page(10) == [Unreadable(run_id(1))]
    assert runs.untold() == []


def test_what_is_unreadable_takes_no_place_in_a_list(runs: RunStore, path: Path) -> None:
    for number in range(1, 12):
        finish(runs, number)
    by_hand(path, "UPDATE runs SET outcome = 'bogus' WHERE run_id >= ?", run_id(9))
    assert [run.run_id for run in runs.page(2, "completed")] == ids(8, 7)
    assert [run.run_id for run in runs.page(20, "completed")] == ids(*range(8, 0, -1))
    by_hand(path, "UPDATE runs SET run_id = 'zzz' || run_id WHERE run_id >= ?", run_id(9))
    by_hand(path, "UPDATE runs SET run_id = '2026' || run_id WHERE run_id = ?", run_id(7))
    assert [run.run_id for run in runs.page(2)] == ids(8, 6)
    assert [run.run_id for run in runs.page(20)] == ids(8, 6, 5, 4, 3, 2, 1)


def test_there_is_a_damage_for_every_column() -> None:
    assert {"run_id", *DAMAGE} == set(run_tables.COLUMNS)


def test_an_unended_record_that_is_damaged_hides_no_other(runs: RunStore, path: Path) -> None:
    add(runs, 1, 2)
    by_hand(path, "UPDATE runs SET spawn_state = '?' WHERE run_id = ?", run_id(1))
    assert runs.unended() == [new_run(2)]
    assert runs.page(10, "completed") == [new_run(2)]
    assert runs.page(10) == [new_run(2), Unreadable(run_id(1))]


def test_text_that_is_no_unicode_damages_nothing_else(runs: RunStore, path: Path) -> None:
    add(runs, 1, 2)
    by_hand(
        path, "UPDATE runs SET label = CAST(x'61ff' AS TEXT), details = CAST(x'ff' AS TEXT) WHERE run_id = ?", run_id(1)
    )
    assert runs.page(10) == [new_run(2), Unreadable(run_id(1))]


def test_damaged_details_are_not_written_over(runs: RunStore, path: Path) -> None:
    runs.reserve(new_run(1), key("a"))
    by_hand(path, "UPDATE runs SET details = '['")
    for change in (
        lambda: runs.add_details(run_id(1), {"a": 1}),
        lambda: runs.end(run_id(1), DONE, NOW, "observed"),
        lambda: runs.of_key(key("a")),
        lambda: runs.reserve(new_run(2), key("a")),
    ):
        with pytest.raises(UnreadableError):
            change()
    assert by_hand(path, "SELECT details, finished_at FROM runs") == [("[", None)]


# Any record

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
ANY_TEXT = st.text(max_size=8)
MOMENTS = st.datetimes(
    datetime(1, 1, 2),
    datetime(9999, 12, 30),
    timezones=st.just(UTC) | st.just(timezone(timedelta(hours=5, minutes=30))),
)
IDENTITIES = st.builds(Identity, st.integers(1, 2**31 - 1), TEXT)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=6,
)
WORD = TEXT.filter(bool)
OBJECTS = st.dictionaries(ANY_TEXT, JSON, max_size=3)
EVIDENCE = st.builds(
    lambda more, kind, at: {**more, "kind": kind, "finding": "", "observed_at": timestamp(at), "observer": "server"},
    OBJECTS,
    TEXT,
    MOMENTS,
)
COUNTER = itertools.count()


@st.composite
def records(draw: st.DrawFn) -> RunRecord:
    end = draw(st.none() | st.builds(End, WORD, st.sampled_from(["succeeded", "failed", "cancelled", "indeterminate"]), WORD,
        st.none() | WORD, st.none() | TEXT, st.none() | EVIDENCE, at=st.none()))  # fmt: skip
    finished_at = draw(MOMENTS) if end else None
    precision = draw(st.sampled_from(["observed", "upper_bound"])) if end else None
    return new_run(
        next(COUNTER),
        verb=draw(TEXT),
        label=draw(st.none() | TEXT),
        command=tuple(draw(st.lists(ANY_TEXT, max_size=3))),
        cwd=draw(ANY_TEXT),
        owner=draw(IDENTITIES),
        submitted_at=draw(MOMENTS),
        spawn_state=draw(st.sampled_from(["preparing", "started", "failed"])),
        leader=draw(st.none() | IDENTITIES),
        pgid=draw(st.none() | st.integers(1, 2**31 - 1)),
        started_at=draw(st.none() | MOMENTS),
        stop_requested_at=draw(st.none() | MOMENTS),
        stop_reason=draw(st.sampled_from([None, "kill", "log_limit"])),
        exit_code=draw(st.none() | st.integers(-64, 255)),
        exited_at=draw(st.none() | MOMENTS),
        end=replace(end, at=finished_at) if end and precision == "observed" else end,
        finished_at=finished_at,
        precision=precision,
        told_at=draw(st.none() | MOMENTS),
        late_report=draw(st.none() | OBJECTS),
        details=draw(OBJECTS),
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(run=records())
def test_any_record_comes_back_as_it_went(runs: RunStore, run: RunRecord) -> None:
    runs.reserve(run, None)
    assert runs.get(run.run_id) == run


@pytest.mark.parametrize("text", ["a\udc80b", "a\0b"])
def test_text_that_no_database_takes_is_kept_without_what_is_wrong_with_it(runs: RunStore, text: str) -> None:
    runs.reserve(new_run(1, label=text), None)
    assert runs.end(run_id(1), End(text, "failed", text, text, text), NOW, "observed")
    run = found(runs, 1)
    assert run.label == "a?b"
    assert run.end == End("a?b", "failed", "a?b", "a?b", "a?b", at=NOW)


# Speed, and other databases


def test_every_question_is_answered_from_an_index(runs: RunStore, path: Path) -> None:
    prepare(runs)
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, many: bool) -> None:
        asked.append((statement, parameters[0] if many else parameters))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        runs.page(5)
        runs.page(5, "completed")
        runs.unended()
        runs.untold()
        runs.get(run_id(1))
        runs.of_key(key("1"))
        runs.known(ids(1, 2))
        for write in WRITES.values():
            write(runs)
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    plans = {statement: plan(path, statement, parameters) for statement, parameters in asked}
    assert len(plans) > 15
    for statement, steps in plans.items():
        assert all("USING" in step and "TEMP" not in step for step in steps), (statement, steps)
    assert [step for steps in plans.values() for step in steps if "SEARCH" not in step] == []


def plan(path: Path, statement: str, parameters: Any) -> list[str]:
    return [row[3] for row in by_hand(path, f"EXPLAIN QUERY PLAN {statement}", *parameters)]


def test_no_statement_is_special_to_one_database() -> None:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    statements = [value for value in vars(run_tables).values() if isinstance(value, Select | Insert | Update | Delete)]
    assert len(statements) > 15
    for statement in statements:
        assert str(statement.compile(dialect=dialect))
    for table in (run_tables.RUNS, run_tables.KEYS):
        assert str(CreateTable(table).compile(dialect=dialect))
        types = {str(column.type.compile(dialect=dialect)) for column in table.columns}
        assert types <= {"TEXT", "INTEGER", "BIGINT"}
        for index in table.indexes:
            assert str(CreateIndex(index).compile(dialect=dialect))


# Other processes


def program(*words: str) -> list[str]:
    return [sys.executable, "-m", store_programs.__name__, *words]


def told(*words: str) -> Any:
    done = subprocess.run(program(*words), check=True, capture_output=True, timeout=120, cwd=TESTS)
    return json.loads(done.stdout)


def snapshot(place: str, act: Callable[[RunStore], object] = RunStore.unended) -> object:
    """All that can be read of a store, once something was done with it."""
    runs = opened(place)
    act(runs)
    everything = runs.page(100), {name: runs.of_key(key(name)) for name in "1234"}
    runs._store.close()
    return everything


@pytest.fixture(scope="module", params=KINDS)
def places(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], str]]:
    """Makes new places for stores."""
    if request.param == "sqlite":
        yield lambda: str(tmp_path_factory.mktemp("place"))
        return
    made: list[PostgresqlPlace] = []

    def make() -> str:
        made.append(PostgresqlPlace(request.getfixturevalue("postgresql")))
        return made[-1].address

    yield make
    for place in made:
        place.server.drop(place.name)


@pytest.fixture(scope="module")
def crashed(places: Callable[[], str]) -> str:
    place = places()
    assert told("crash", place) == dict.fromkeys(POINTS, -signal.SIGKILL)
    return place


@pytest.mark.parametrize("name", WRITES)
def test_a_process_killed_at_a_write_leaves_all_or_nothing_of_it(
    crashed: str, places: Callable[[], str], name: str
) -> None:
    place = places()
    untouched = snapshot(place, prepare)
    done = snapshot(place, WRITES[name])
    assert untouched != done
    assert snapshot(part(crashed, f"before {name}")) == untouched
    assert snapshot(part(crashed, f"after {name}")) == done


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_process_killed_while_it_makes_the_tables_leaves_a_store_that_opens(crashed: str, side: str) -> None:
    assert snapshot(part(crashed, f"{side} migrate"), prepare) != ([], dict.fromkeys("1234"))


def test_what_was_told_to_be_on_record_survives_a_kill(places: Callable[[], str]) -> None:
    place = places()
    with subprocess.Popen(program("write", place), stdout=subprocess.PIPE, text=True, cwd=TESTS) as writer:
        assert writer.stdout is not None
        seen = [json.loads(writer.stdout.readline()) for _ in range(100)]
        writer.kill()
        seen += [json.loads(line) for line in writer.stdout]
    runs = opened(place)
    # Once it is its turn, the server has noticed the end of the other.
    runs.add_details(run_id(0), {})
    records = {run.run_id: run for run in runs.page(len(seen) + 1) if isinstance(run, RunRecord)}
    assert all(records.pop(run_id).spawn_state == "started" for run_id in seen)
    assert len(records) <= 1  # the one that was being written
    for number, run_id_ in enumerate(seen):
        assert runs.of_key(key(str(number))) == runs.get(run_id_)
    runs._store.close()


def test_processes_that_write_at_the_same_time_lose_nothing(places: Callable[[], str]) -> None:
    place = places()
    shared = told("share", place)
    assert shared["ended"] == [0] * PROCESSES
    each = shared["each"]
    seen = each[0]["seen"]
    assert len(set(seen)) == ROUNDS
    assert [process["seen"] for process in each] == [seen] * PROCESSES
    assert sorted(itertools.chain(*(process["ended"] for process in each))) == sorted(seen)
    runs = opened(place)
    for turn, name in enumerate(seen):
        run = runs.get(name)
        assert run is not None
        assert run.details == {
            "kind": "agent",
            **DONE.details,
            **{f"process {number}": turn for number in range(PROCESSES)},
        }
    assert len(runs.page(1000)) == ROUNDS
    runs._store.close()
