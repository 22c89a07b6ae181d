"""What other processes do to a registry: they are killed at its writes, or many of them write to it at the same time.

python -m support.registry_programs crash <database>    for each point of POINTS: a process that was killed there, what was on
                                                record then, and what was once the same write had been made again
python -m support.registry_programs share <database>    PROCESSES processes that each replace the same server ROUNDS times

A database is the path of a file, or an address of PostgreSQL. What is in it is thrown away.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, create_engine, text

from verbc.support import registrations
from verbc.support import store as store_module
from verbc.support.registrations import COMPONENT, Registration
from verbc.support.sqlite_file import SqliteFile
from verbc.support.store import Store

from .forks import forked, joined, tell
from .manifests import over_stdio, read

NOW: Final = datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=UTC)
NEW: Final = read(over_stdio(server_id="new"))
OLD: Final = read(over_stdio(server_id="old"))
GONE: Final = read(over_stdio(server_id="gone"))
SPECS: Final = read(over_stdio(server_id="specs"))
LATER: Final = read(over_stdio(server_id="specs", warm=True))

PROCESSES: Final = 4
ROUNDS: Final = 15


def opened(database: str) -> Store:
    """A store with the registry alone."""
    if not database.startswith("postgresql"):
        return Store(SqliteFile(Path(database)), [COMPONENT])
    from verbc.support.postgresql import Postgresql

    return Store(Postgresql(database), [COMPONENT])


def emptied(database: str) -> None:
    """Throw away what is there."""
    if not database.startswith("postgresql"):
        for name in (database, f"{database}-wal", f"{database}-shm"):
            Path(name).unlink(missing_ok=True)
        return
    engine = create_engine(database.replace("postgresql:", "postgresql+psycopg:", 1))
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS registrations, schema_versions"))
    engine.dispose()


def prepare(connection: Connection) -> None:
    """One server of the operator, one that he has removed, and one of the spec."""
    registrations.add(connection, OLD, "operator", NOW)
    registrations.add(connection, GONE, "operator", NOW)
    registrations.remove(connection, "gone", "operator", NOW)
    registrations.seed(connection, [SPECS], NOW)


WRITES: Final[Mapping[str, Callable[[Connection], object]]] = {
    "seed": lambda connection: registrations.seed(connection, [LATER, NEW], NOW),
    "add": lambda connection: registrations.add(connection, NEW, "operator", NOW),
    "add again": lambda connection: registrations.add(connection, GONE, "operator", NOW),
    "replace": lambda connection: registrations.replace(connection, OLD, "operator", NOW),
    "remove": lambda connection: registrations.remove(connection, "old", "operator", NOW),
    "confirm": lambda connection: registrations.confirm(connection, "gone", NOW),
}
# What has to be there for a write to be made.
PREPARED: Final[Mapping[str, Callable[[Connection], object]]] = {
    "confirm": lambda connection: registrations.add(connection, GONE, "operator", NOW)
}
POINTS: Final = tuple(f"{side} {name}" for name in ("migrate", *WRITES) for side in ("before", "after"))


def crash(database: str) -> None:
    """Tell of each point."""
    tell({point: _crashed(point, database) for point in POINTS})


def share(database: str) -> None:
    """Let the processes start at the same moment; each tells the generations that it has made."""
    emptied(database)
    _alone(partial(_prepared, "share", database))
    starting, told = os.pipe(), os.pipe()
    children = [forked(partial(_take_part, starting, told[1], database)) for _ in range(PROCESSES)]
    os.close(starting[1])
    os.close(told[1])
    with open(told[0], encoding="utf-8") as lines:
        made = [json.loads(line) for line in lines]
    tell({"ended": [joined(child) for child in children], "made": made})


def on_record(connection: Connection) -> dict[str, Any]:
    """Everything, in a form that can be told."""
    return {found.server_id: _plain(found) for found in registrations.every(connection)}


def _plain(found: Registration) -> list[Any]:
    digest = None if found.manifest is None else found.manifest.digest
    seeds = " ".join(found.seed_digests) or None
    return [found.digest, digest, found.generation, found.suspended, found.origin, seeds, found.problem]


def _crashed(point: str, database: str) -> dict[str, Any]:
    name = point.partition(" ")[2]
    emptied(database)
    before = _alone(partial(_prepared, name, database)) if name in WRITES else {}
    ended = joined(forked(partial(_until, point, name, database)))
    found, again = _alone(partial(_made_again, name, before, database))
    return {"ended": ended, "before": before, "found": found, "again": again}


def _prepared(name: str, database: str) -> dict[str, Any]:
    store = opened(database)
    store.write("prepare", prepare)
    store.write("prepare more", PREPARED.get(name, on_record))
    before = store.read(on_record)
    store.close()
    return before


def _made_again(name: str, before: dict[str, Any], database: str) -> list[dict[str, Any]]:
    store = opened(database)
    found = store.read(on_record)
    if found == before and name in WRITES:
        store.write(name, WRITES[name])
    again = store.read(on_record)
    store.close()
    return [found, again]


def _until(point: str, name: str, database: str) -> None:
    store_module.fault = lambda reached: os.kill(os.getpid(), signal.SIGKILL) if reached == point else None
    store = opened(database)
    if name in WRITES:
        store.write(name, WRITES[name])
    else:
        store.read(on_record)


def _take_part(starting: tuple[int, int], told: int, database: str) -> None:
    os.close(starting[1])
    store = opened(database)
    os.read(starting[0], 1)  # until nobody can write to it any more
    made = []
    for _ in range(ROUNDS):
        made.append(
            store.write("replace", lambda connection: registrations.replace(connection, OLD, None, NOW).generation)
        )
    os.write(told, f"{json.dumps(made)}\n".encode())
    store.close()


def _alone(work: Callable[[], Any]) -> Any:
    """What `work` gives in a process of its own, so that no connection is ever open in one that forks."""
    reading, writing = os.pipe()
    child = forked(lambda: os.write(writing, json.dumps(work()).encode()))
    os.close(writing)
    with open(reading, encoding="utf-8") as told:
        value = told.read()
    if joined(child):
        raise RuntimeError("A process has failed.")
    return json.loads(value)


if __name__ == "__main__":
    {"crash": crash, "share": share}[sys.argv[1]](sys.argv[2])
