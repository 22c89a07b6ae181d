"""What is special about SQLite: how its file is made and opened, how its transactions begin, what its errors mean."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc

BUSY: Final = "is kept busy by others for too long; try again"
_DAMAGED = "is damaged; move it away, with what lies beside it under its name, and a new one is made"
_PERMISSIONS = "cannot be opened for writing; look at its permissions"
_PROBLEMS: Final = {
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_FULL: "cannot grow, because the disk is full",
    sqlite3.SQLITE_IOERR: "cannot be read or written, because its disk fails or is full",
    sqlite3.SQLITE_READONLY: _PERMISSIONS,
    sqlite3.SQLITE_CANTOPEN: _PERMISSIONS,
    sqlite3.SQLITE_PERM: _PERMISSIONS,
}
_POLL = 0.01  # seconds
_MAKING = threading.Lock()


def problem(error: exc.DBAPIError | sqlite3.Error) -> str | None:
    """What an error says about the file, as the rest of a sentence about it; None where the mistake is ours."""
    code = _code(error)
    return None if code is None else _PROBLEMS.get(code, "does not hold what it should")


def is_damage(error: exc.DBAPIError | sqlite3.Error) -> bool:
    """Whether an error says that the file holds no database any more."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def which_file(path: Path) -> tuple[int, int] | None:
    """What tells the file at a path from any other one; None: there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def open_engine(path: Path, patience: float) -> Engine:
    """An engine over the file, which is made if it is not there; waits `patience` seconds for the locks of others.

    Raises OSError, or the errors of SQLAlchemy.
    """
    _make(path)
    # There are as many connections as threads want one; those that are kept are enough for ordinary use.
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args={"timeout": patience},
        pool_size=8,
        max_overflow=-1,
        hide_parameters=True,
    )
    event.listen(engine, "connect", lambda connection, _record: _prepare(connection, patience))
    return engine


def begin(connection: Connection, *, writes: bool) -> None:
    """Begin the transaction that `connection` believes to be in. Raises sqlite3.OperationalError."""
    # Past SQLAlchemy, whose own way, an event, makes every short read cost half as much again.
    driver: Any = connection.connection.dbapi_connection
    # A write that began as a read would fail if another write came between, and waiting could not help it.
    driver.execute("BEGIN IMMEDIATE" if writes else "BEGIN")


def _code(error: exc.DBAPIError | sqlite3.Error) -> int | None:
    """Which kind of problem an error is about; None where the mistake is ours."""
    original = error.orig if isinstance(error, exc.DBAPIError) else error
    if type(original) not in (sqlite3.OperationalError, sqlite3.DatabaseError):
        return None
    return int(getattr(original, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF


def _make(path: Path) -> None:
    # SQLite gives its own files beside it the same permissions. One at a time, because closing a file gives up every
    # lock that the process has on it: no connection to it may be open before it is closed here.
    with _MAKING:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            mode = path.stat().st_mode
            if stat.S_ISREG(mode) and stat.S_IMODE(mode) != 0o600:
                path.chmod(0o600)


def _prepare(connection: sqlite3.Connection, patience: float) -> None:
    # One damaged text makes one record unreadable, not every read that comes across it.
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    _write_ahead(connection, time.monotonic() + patience)
    # No sync at each commit: what a killed process has written is with the system already. Only a power cut can take
    # the last commits back, as a whole, and it ends the processes that they are about as well.
    connection.execute("PRAGMA synchronous = NORMAL")


def _write_ahead(connection: sqlite3.Connection, end: float) -> None:
    """Have changes written to a log of their own, so that readers and a writer do not wait for each other."""
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # Of two that switch a new file at the same time, SQLite turns one away without waiting.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(_POLL)
