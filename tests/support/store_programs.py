"""What other processes do to a store: they are killed at its writes, or many of them write to it at the same time.

python -m support.store_programs crash <place>     a store for each point of POINTS, whose process was killed there
python -m support.store_programs share <place>     PROCESSES processes on one new store, and what each of them saw
python -m support.store_programs write <place>     writes one run after another, and says each one that is on record

A place is a folder, or the address of a database of PostgreSQL.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import psycopg

from verbc.support import store as store_module
from verbc.support.postgresql import Postgresql
from verbc.support.run_record import End, Identity, RunRecord
from verbc.support.run_store import COMPONENT, Key, RunStore
from verbc.support.sqlite_file import SqliteFile
from verbc.support.store import Store

from .forks import forked, joined, tell

NOW: Final = datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=UTC)
RUNS: Final = Path("/nowhere/runs")
LEADER: Final = Identity(4711, "boot:12")
DONE: Final = End("completed", "succeeded", "report", "run.completed.ok", details={"artifacts": 2})
NEVER_STARTED: Final = End("failed", "failed", "spawn_failure", "spawn_failed", "There is no such program.")

PROCESSES = 4
ROUNDS = 25


def run_id(number: int) -> str:
    """Sorts by number."""
    return f"20260304T{number:06d}-abcdef"


def new_run(number: int, **changes: Any) -> RunRecord:
    values: dict[str, Any] = {
        "run_id": run_id(number),
        "verb": "agent.submit",
        "label": "nightly",
        "command": ("li", "agent", "--yolo", "--", "say hello"),
        "cwd": "/home/somebody",
        "folder": RUNS / run_id(number),
        "owner": Identity(99, "boot:1"),
        "submitted_at": NOW,
        "details": {"kind": "agent"},
    }
    return RunRecord(**{**values, **changes})


def key(name: str, **changes: str) -> Key:
    return Key(**{"caller": "local", "verb": "agent.submit", "key": name, "arguments": "a" * 64, **changes})


def opened(place: str) -> RunStore:
    database = Postgresql(place) if _is_address(place) else SqliteFile(Path(place) / "store.sqlite")
    return RunStore(Store(database, [COMPONENT]), RUNS)


def part(place: str, name: str) -> str:
    """A place of its own within a place."""
    return f"{place}&options={quote(f'-csearch_path={_schema(name)}')}" if _is_address(place) else f"{place}/{name}"


def prepare(runs: RunStore) -> None:
    """Run 1 waits for its start, 2 runs, 3 has ended; each has a key with its number."""
    for number in (1, 2, 3):
        runs.reserve(new_run(number), key(str(number)))
    for number in (2, 3):
        runs.started(run_id(number), LEADER, LEADER.pid, NOW)
    runs.end(run_id(3), DONE, NOW, "observed")


WRITES: Final[Mapping[str, Callable[[RunStore], object]]] = {
    "reserve": lambda runs: runs.reserve(new_run(4), key("4")),
    "started": lambda runs: runs.started(run_id(1), LEADER, LEADER.pid, NOW),
    "spawn failed": lambda runs: runs.spawn_failed(run_id(1), NEVER_STARTED, NOW, "observed"),
    "stop requested": lambda runs: runs.stop_requested(run_id(2), "kill", NOW),
    "exited": lambda runs: runs.exited(run_id(2), -15, NOW),
    "end": lambda runs: runs.end(run_id(2), DONE, NOW, "upper_bound"),
    "late report": lambda runs: runs.late_report(run_id(3), {"status": "failed"}),
    "details": lambda runs: runs.add_details(run_id(2), {"notice": "sent"}),
    "told": lambda runs: runs.told(run_id(3), NOW),
    "forget": lambda runs: runs.forget_ended_before(NOW + timedelta(days=1)),
}
POINTS: Final = tuple(f"{side} {name}" for name in ("migrate", *WRITES) for side in ("before", "after"))


def crash(place: str) -> None:
    """Tell how the process of each point ended."""
    tell({point: joined(forked(partial(_until, point, place))) for point in POINTS})


def share(place: str) -> None:
    """Let the processes start at the same moment, and tell how they ended, and what each has seen."""
    starting, told = os.pipe(), os.pipe()
    children = [forked(partial(_take_part, starting, told[1], number, place)) for number in range(PROCESSES)]
    os.close(starting[1])
    os.close(told[1])
    with open(told[0], encoding="utf-8") as lines:
        each = [json.loads(line) for line in lines]
    tell({"ended": [joined(child) for child in children], "each": each})


def write(place: str) -> None:
    """Write for ever, and tell each run that is on record."""
    runs = opened(place)
    for number in range(999_999):
        runs.reserve(new_run(number), key(str(number)))
        runs.started(run_id(number), LEADER, LEADER.pid, NOW)
        tell(run_id(number))


def _is_address(place: str) -> bool:
    return place.startswith("postgresql:")


def _schema(name: str) -> str:
    return name.replace(" ", "_")


def _make_part(place: str, name: str) -> None:
    if not _is_address(place):
        Path(part(place, name)).mkdir(mode=0o700)
        return
    with psycopg.connect(place) as connection:
        connection.execute(f"CREATE SCHEMA {_schema(name)}".encode())


def _until(point: str, place: str) -> None:
    _make_part(place, point)
    runs = opened(part(place, point))
    name = point.partition(" ")[2]
    if name in WRITES:
        prepare(runs)
    store_module.fault = lambda reached: os.kill(os.getpid(), signal.SIGKILL) if reached == point else None
    WRITES.get(name, RunStore.unended)(runs)


def _take_part(starting: tuple[int, int], told: int, number: int, place: str) -> None:
    runs = opened(place)
    os.close(starting[1])
    os.read(starting[0], 1)  # until nobody can write to it any more
    seen, ended = [], []
    for turn in range(ROUNDS):
        run = runs.reserve(new_run(PROCESSES * turn + number), key(str(turn)))
        seen.append(run.run_id)
        runs.add_details(run.run_id, {f"process {number}": turn})
        if runs.end(run.run_id, DONE, NOW, "observed"):
            ended.append(run.run_id)
    os.write(told, f"{json.dumps({'seen': seen, 'ended': ended})}\n".encode())


if __name__ == "__main__":
    {"crash": crash, "share": share, "write": write}[sys.argv[1]](sys.argv[2])
