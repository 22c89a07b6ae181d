"""What is kept in a state folder, made older by hand: no test waits for minutes to pass."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

from .places import Place

# Larger numbers are no seconds, or no milliseconds, since 1970.
SECONDS_END = 1e11
MILLISECONDS_END = 1e14


def database(place: Place) -> sqlite3.Connection:
    """The file that servers of this place share."""
    return sqlite3.connect(place.state / "server.db", timeout=30)


def rows(place: Place, query: str) -> list[tuple[Any, ...]]:
    """What is kept, as it is kept."""
    with closing(database(place)) as connection:
        return connection.execute(query).fetchall()


def age(place: Place, table: str, **by: float) -> None:
    """Make all times of a table earlier, such as by `minutes=15`."""
    with closing(database(place)) as connection, connection:
        names = [row[1] for row in connection.execute(f"pragma table_info({table})")]
        times = [name for name in names if name.endswith("_at")]
        assert times
        found = connection.execute(f"select rowid, {', '.join(times)} from {table}").fetchall()  # noqa: S608 - ours
        for rowid, *values in found:
            changes = [_earlier(value, timedelta(**by)) for value in values]
            setting = ", ".join(f"{name} = ?" for name in times)
            connection.execute(f"update {table} set {setting} where rowid = ?", (*changes, rowid))  # noqa: S608


def _earlier(value: Any, by: timedelta) -> Any:
    if value is None:
        return None
    if isinstance(value, int | float):
        second = 1 if value < SECONDS_END else 1000 if value < MILLISECONDS_END else 1_000_000
        return type(value)(value - by.total_seconds() * second)
    text = str(value)
    moment = datetime.fromisoformat(text) - by
    return moment.isoformat(sep="T" if "T" in text else " ", timespec="microseconds")
