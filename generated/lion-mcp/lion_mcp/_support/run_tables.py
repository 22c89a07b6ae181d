"""The tables of runs and of the keys that stand for them, and the statements about them, each made once."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    delete,
    insert,
    select,
    update,
)

from .store import Component

_METADATA = MetaData()
# Times are microseconds since 1970, what has members of its own is JSON. What ends a run is empty until then.
RUNS: Final = Table(
    "runs",
    _METADATA,
    Column("run_id", Text, primary_key=True),
    Column("verb", Text, nullable=False),
    Column("label", Text),
    Column("command", Text, nullable=False),
    Column("cwd", Text, nullable=False),
    Column("owner_pid", Integer, nullable=False),
    Column("owner_start", Text, nullable=False),
    Column("submitted_at", BigInteger, nullable=False),
    Column("spawn_state", Text, nullable=False),
    Column("leader_pid", Integer),
    Column("leader_start", Text),
    Column("pgid", Integer),
    Column("started_at", BigInteger),
    Column("stop_requested_at", BigInteger),
    Column("stop_reason", Text),
    Column("exit_code", Integer),
    Column("exited_at", BigInteger),
    Column("status", Text),
    Column("outcome", Text),
    Column("source", Text),
    Column("reason_code", Text),
    Column("reason_detail", Text),
    Column("evidence", Text),
    Column("finished_at", BigInteger),
    Column("precision", Text),
    Column("told_at", BigInteger),
    Column("late_report", Text),
    Column("details", Text, nullable=False),
    Index("runs_by_status", "status", "run_id"),
    Index("runs_by_end", "finished_at", "run_id"),
    Index("runs_by_telling", "told_at", "run_id"),
)
KEYS: Final = Table(
    "idempotency_keys",
    _METADATA,
    Column("caller", Text, primary_key=True),
    Column("verb", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("arguments", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Index("idempotency_keys_by_run", "run_id"),
)


def _make_tables(connection: Connection) -> None:
    _METADATA.create_all(connection, checkfirst=False)


# A later version of the tables is a further step, and then this one makes the tables as they were, from a copy.
COMPONENT: Final = Component("runs", (_make_tables,))

_RUN = RUNS.c.run_id == bindparam("run")
_UNENDED = RUNS.c.finished_at.is_(None)
_ENDED = RUNS.c.finished_at.is_not(None)
_NEWEST_FIRST = RUNS.c.run_id.desc()

COLUMNS: Final = tuple(column.name for column in RUNS.columns)

ADD_RUN: Final = insert(RUNS)
ADD_KEY: Final = insert(KEYS)
ONE: Final = select(RUNS).where(_RUN)
OF_KEY: Final = (
    select(RUNS, KEYS.c.arguments)
    .join_from(KEYS, RUNS, RUNS.c.run_id == KEYS.c.run_id)
    .where(KEYS.c.caller == bindparam("caller"), KEYS.c.verb == bindparam("verb"), KEYS.c.key == bindparam("key"))
)
_BEFORE = RUNS.c.run_id < bindparam("before")
NEWEST: Final = select(RUNS).where(_BEFORE).order_by(_NEWEST_FIRST).limit(bindparam("limit", type_=Integer))
NEWEST_WITH_STATUS: Final = (
    select(RUNS)
    .where(RUNS.c.status == bindparam("status"), _ENDED, _BEFORE)
    .order_by(_NEWEST_FIRST)
    .limit(bindparam("limit", type_=Integer))
)
ALL_UNENDED: Final = select(RUNS).where(_UNENDED).order_by(_NEWEST_FIRST)
# What has not ended has not been told of either, and neither are many.
UNTOLD: Final = select(RUNS).where(RUNS.c.told_at.is_(None), _ENDED).order_by(RUNS.c.run_id)
SEVERAL: Final = select(RUNS).where(RUNS.c.run_id.in_(bindparam("runs", expanding=True)))
AMONG: Final = select(RUNS.c.run_id).where(RUNS.c.run_id.in_(bindparam("runs", expanding=True)))
ENDED_BEFORE: Final = select(RUNS.c.run_id).where(RUNS.c.finished_at < bindparam("moment"))
FORGET_RUN: Final = delete(RUNS).where(_RUN)
FORGET_KEYS: Final = delete(KEYS).where(KEYS.c.run_id == bindparam("run"))
# A second word about the same thing changes nothing: each of these finds its row only as long as nothing is said yet.
START: Final = update(RUNS).where(_RUN, _UNENDED, RUNS.c.spawn_state == "preparing")
# What has exited by itself cannot be stopped any more.
REQUEST_STOP: Final = update(RUNS).where(_RUN, _UNENDED, RUNS.c.stop_requested_at.is_(None), RUNS.c.exited_at.is_(None))
EXIT: Final = update(RUNS).where(_RUN, RUNS.c.exited_at.is_(None))
END: Final = update(RUNS).where(_RUN, _UNENDED)
REPORT_LATE: Final = update(RUNS).where(_RUN, _ENDED, RUNS.c.late_report.is_(None))
TELL: Final = update(RUNS).where(_RUN, _ENDED, RUNS.c.told_at.is_(None))
DETAILS: Final = select(RUNS.c.details).where(_RUN).with_for_update()
SET_DETAILS: Final = update(RUNS).where(_RUN)
