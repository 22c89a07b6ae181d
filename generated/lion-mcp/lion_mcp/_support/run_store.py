"""The runs of a server and the keys that stand for them: every question and every change, each one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, Row, Select, Update

from .moments import as_number
from .run_record import RUN_ID, End, Identity, Precision, RunRecord
from .run_rows import (
    Unreadable,
    UnreadableError,
    as_json,
    columns_of,
    end_columns,
    object_of,
    record_of,
)
from .run_tables import (
    ADD_KEY,
    ADD_RUN,
    ALL_UNENDED,
    AMONG,
    COLUMNS,
    COMPONENT,
    DETAILS,
    END,
    ENDED_BEFORE,
    EXIT,
    FORGET_KEYS,
    FORGET_RUN,
    NEWEST,
    NEWEST_WITH_STATUS,
    OF_KEY,
    ONE,
    REPORT_LATE,
    REQUEST_STOP,
    SET_DETAILS,
    SEVERAL,
    START,
    TELL,
    UNTOLD,
)
from .store import Store

__all__ = ["COMPONENT", "ConflictError", "Key", "RunStore", "TakenError", "Unreadable", "UnreadableError"]

_AFTER_ALL = "a"  # what sorts behind all proper ids
_AT_A_TIME = 500  # ids in one statement; databases have a limit for that


@dataclass(frozen=True, slots=True)
class Key:
    """What a caller names one run of a verb with; `arguments` is a digest of what else it sent."""

    caller: str
    verb: str
    key: str
    arguments: str


class ConflictError(Exception):
    """The key stands for a run with other arguments."""


class TakenError(Exception):
    """There is a run with this id."""


class RunStore:
    """The runs in a store; those below `runs` are their folders, each named by its run.

    Everything raises StoreError where the store cannot be used. Times must be aware of their zone.
    """

    def __init__(self, store: Store, runs: Path) -> None:
        self._store = store
        self._runs = runs

    def of_key(self, key: Key) -> RunRecord | None:
        """The run that a key stands for. Raises ConflictError and UnreadableError."""
        return self._store.read(lambda connection: self._of_key(connection, key))

    def get(self, run_id: str) -> RunRecord | None:
        """A run as it stands. Raises UnreadableError."""
        row = self._store.read(lambda connection: connection.execute(ONE, {"run": run_id}).first())
        return None if row is None else self._record(row)

    def several(self, run_ids: Iterable[str]) -> dict[str, RunRecord | Unreadable]:
        """Those of the ids that there are runs of, each with its run, all as of one moment."""
        rows = self._store.read(lambda connection: _several(connection, SEVERAL, iter(run_ids)))
        return {row.run_id: self._readable(row) for row in rows}

    def page(self, limit: int, status: str | None = None) -> list[RunRecord | Unreadable]:
        """Enough of the newest runs to fill a list of `limit`, newest first.

        With a status these are the ended runs that have it, and also every run without an end that may belong among
        them: what its status is only a look at it tells, so the caller drops those that do not fit, and cuts.
        Unreadable ones are then left out, as nothing tells what their status is.
        """
        return self._store.read(lambda connection: self._page(connection, limit, status))

    def unended(self) -> list[RunRecord]:
        """The runs without an end, newest first; nothing can be done about unreadable ones, so they are left out."""
        rows = self._store.read(lambda connection: connection.execute(ALL_UNENDED).all())
        return [run for run in map(self._readable, rows) if isinstance(run, RunRecord)]

    def untold(self) -> list[RunRecord]:
        """The runs that have ended, and nobody was told; unreadable ones are left out."""
        rows = self._store.read(lambda connection: connection.execute(UNTOLD).all())
        return [run for run in map(self._readable, rows) if isinstance(run, RunRecord)]

    def known(self, run_ids: Iterable[str]) -> set[str]:
        """Those of the ids that there are runs of."""
        rows = self._store.read(lambda connection: _several(connection, AMONG, iter(run_ids)))
        return {row.run_id for row in rows}

    def reserve(self, record: RunRecord, key: Key | None) -> RunRecord:
        """Put a run on record, with the key that stands for it; gives `record`, or the run that the key stands for.

        Raises ConflictError, TakenError, and UnreadableError for the run of the key.
        """

        def work(connection: Connection) -> RunRecord:
            found = None if key is None else self._of_key(connection, key)
            return found or _add(connection, record, key)

        return self._store.write("reserve", work)

    def started(self, run_id: str, leader: Identity, pgid: int, at: datetime) -> None:
        """The process of a run is there. Only the first word on how its start went counts."""
        values = {"leader_pid": leader.pid, "leader_start": leader.start, "pgid": pgid, "started_at": as_number(at)}
        self._change("started", START, run_id, spawn_state="started", **values)

    def spawn_failed(self, run_id: str, end: End, at: datetime, precision: Precision) -> bool:
        """Nothing was started: the run has ended, and its key is free again. True where this is the end on record."""

        def work(connection: Connection) -> bool:
            values = {"spawn_state": "failed", **end_columns(end, at, precision)}
            won = _end(connection, START, run_id, end, values)
            if won:
                connection.execute(FORGET_KEYS, {"run": run_id})
            return won

        return self._store.write("spawn failed", work)

    def stop_requested(self, run_id: str, reason: Literal["kill", "log_limit"], at: datetime) -> bool:
        """Somebody wants a run to end. True for the first one, while it has not ended."""
        return self._change("stop requested", REQUEST_STOP, run_id, stop_reason=reason, stop_requested_at=as_number(at))

    def exited(self, run_id: str, code: int, at: datetime) -> None:
        """The process of a run has exited, seen by its parent; minus the number of a signal. Told once."""
        self._change("exited", EXIT, run_id, exit_code=code, exited_at=as_number(at))

    def end(self, run_id: str, end: End, finished_at: datetime, precision: Precision) -> bool:
        """A run has ended, and its end brings details. True for the first end, which stays. Raises UnreadableError."""
        values = end_columns(end, finished_at, precision)
        return self._store.write("end", lambda connection: _end(connection, END, run_id, end, values))

    def late_report(self, run_id: str, report: Mapping[str, Any]) -> None:
        """What a run said of itself when its end was on record. Only the first report counts."""
        self._change("late report", REPORT_LATE, run_id, late_report=as_json(dict(report)))

    def told(self, run_id: str, at: datetime) -> None:
        """Whoever has to know has been told of an end. Said once."""
        self._change("told", TELL, run_id, told_at=as_number(at))

    def add_details(self, run_id: str, details: Mapping[str, Any]) -> None:
        """Put further details in, over those of the same name. Raises UnreadableError."""

        def work(connection: Connection) -> None:
            joined = _joined(connection, run_id, details)
            connection.execute(SET_DETAILS, {"run": run_id, "details": joined})

        self._store.write("details", work)

    def ended_before(self, moment: datetime) -> list[str]:
        """The ids of the runs that had ended before."""
        gone = self._store.read(lambda connection: _ended_before(connection, moment))
        return [run_id for run_id in gone if RUN_ID.fullmatch(run_id)]

    def forget_ended_before(self, moment: datetime) -> None:
        """Forget the runs that had ended before, with their keys."""
        self._store.write("forget", lambda connection: _forget(connection, moment))

    def _change(self, name: str, statement: Update, run_id: str, **values: Any) -> bool:
        values["run"] = run_id
        return self._store.write(name, lambda connection: connection.execute(statement, values).rowcount == 1)

    def _of_key(self, connection: Connection, key: Key) -> RunRecord | None:
        named = {"caller": key.caller, "verb": key.verb, "key": key.key}
        row = connection.execute(OF_KEY, named).first()
        if row is None:
            return None
        if row.arguments != key.arguments:
            raise ConflictError("The key stands for a run with other arguments.")
        return self._record(row)

    def _page(self, connection: Connection, limit: int, status: str | None) -> list[RunRecord | Unreadable]:
        if status is None:
            return self._newest(connection, NEWEST, {"limit": limit}, unreadable=True)
        asked = {"limit": limit, "status": status}
        ended = self._newest(connection, NEWEST_WITH_STATUS, asked, unreadable=False)
        oldest = ended[-1].run_id if len(ended) == limit else ""
        newer = [self._readable(row) for row in connection.execute(ALL_UNENDED) if row.run_id > oldest]
        unended = [run for run in newer if isinstance(run, RunRecord)]
        return sorted([*ended, *unended], key=lambda run: run.run_id, reverse=True)

    def _newest(
        self, connection: Connection, statement: Select[Any], asked: dict[str, Any], *, unreadable: bool
    ) -> list[RunRecord | Unreadable]:
        """As many as are asked for, if there are; those that are left out take nobody's place."""
        found: list[RunRecord | Unreadable] = []
        before, limit = _AFTER_ALL, asked["limit"]
        while len(found) < limit:
            rows = connection.execute(statement, {**asked, "before": before}).all()
            # What has no proper id cannot even be told of: its id would lead into any folder.
            runs = [self._readable(row) for row in rows if RUN_ID.fullmatch(row.run_id)]
            found += [run for run in runs if unreadable or isinstance(run, RunRecord)]
            if len(rows) < limit:
                break
            before = rows[-1].run_id
        return found[:limit]

    def _record(self, row: Row[Any]) -> RunRecord:
        # By place, as a look at one column by its name costs as much as all of them so; what follows them is dropped.
        return record_of(dict(zip(COLUMNS, row, strict=False)), self._runs)

    def _readable(self, row: Row[Any]) -> RunRecord | Unreadable:
        try:
            return self._record(row)
        except UnreadableError as error:
            return Unreadable(error.run_id)


def _several(connection: Connection, statement: Select[Any], run_ids: Iterator[str]) -> list[Row[Any]]:
    found: list[Row[Any]] = []
    while some := list(islice(run_ids, _AT_A_TIME)):
        found.extend(connection.execute(statement, {"runs": some}))
    return found


def _add(connection: Connection, record: RunRecord, key: Key | None) -> RunRecord:
    if connection.execute(ONE, {"run": record.run_id}).first() is not None:
        raise TakenError("There is a run with this id.")
    connection.execute(ADD_RUN, columns_of(record))
    if key is not None:
        values = {"caller": key.caller, "verb": key.verb, "key": key.key, "arguments": key.arguments}
        connection.execute(ADD_KEY, {**values, "run_id": record.run_id})
    return record


def _end(connection: Connection, statement: Update, run_id: str, end: End, values: dict[str, Any]) -> bool:
    joined = {"details": _joined(connection, run_id, end.details)} if end.details else {}
    return connection.execute(statement, {"run": run_id, **values, **joined}).rowcount == 1


def _joined(connection: Connection, run_id: str, details: Mapping[str, Any]) -> str:
    found = connection.scalar(DETAILS, {"run": run_id})
    try:
        present = {} if found is None else object_of(found)
    except (TypeError, ValueError, RecursionError) as error:
        raise UnreadableError(run_id) from error
    return as_json({**present, **details})


def _ended_before(connection: Connection, moment: datetime) -> list[str]:
    return list(connection.scalars(ENDED_BEFORE, {"moment": as_number(moment)}))


def _forget(connection: Connection, moment: datetime) -> None:
    gone = _ended_before(connection, moment)
    for statement in (FORGET_KEYS, FORGET_RUN):
        if gone:
            connection.execute(statement, [{"run": run_id} for run_id in gone])
