"""What is special about SQLite: how its file is made and opened, how its transactions begin, what its errors mean."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, exc

from .database import BUSY, Problem, StoreError
from .quoting import shown_path

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
_DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_POLL = 0.01  # seconds
_NEARLY_ALL: Final = 0.9
_MAKING = threading.Lock()


class SqliteFile:
    """A file, which is made if it is not there, in a folder that is."""

    other: Final = "another state folder"
    most: Final = None

    def __init__(self, path: Path) -> None:
        self.name = f"The store {shown_path(path)}"
        self._path = str(path)
        self._patience = 0.0

    def which(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def open(self, patience: float) -> Engine:
        try:
            _make(self._path)
        except OSError as error:
            raise StoreError(f"{self.name} cannot be made: {error.strerror}.") from error
        self._patience = patience
        engine = create_engine(
            URL.create("sqlite", database=self._path),
            connect_args={"timeout": patience, "check_same_thread": False},
            poolclass=NullPool,
            pool_reset_on_return=None,  # what is closed leaves no transaction behind
            hide_parameters=True,
        )
        event.listen(engine, "connect", lambda connection, _record: _prepare(connection, patience))
        return engine

    def begin(self, connection: Connection, *, writes: bool, patience: float) -> None:
        if writes and patience < self._patience * _NEARLY_ALL:  # else it is not worth what it takes to say so
            with _waiting(_driver(connection), patience) as driver:
                driver.execute("BEGIN IMMEDIATE")
            return
        # Past SQLAlchemy, whose own way, an event, makes every short read cost half as much again. A write that began
        # as a read would fail if another write came between, and waiting could not help it.
        _driver(connection).execute("BEGIN IMMEDIATE" if writes else "BEGIN")

    def is_open(self, connection: Connection) -> bool:
        return bool(_driver(connection).in_transaction)

    def let_go_of_wiped(self, connection: Connection) -> bool:
        # The log of changes still has the pages as they were.
        with _waiting(_driver(connection), 0) as driver:
            busy, *_ = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy

    def problem(self, error: Exception) -> Problem | None:
        original = error.orig if isinstance(error, exc.DBAPIError) else error
        if type(original) not in (sqlite3.OperationalError, sqlite3.DatabaseError):
            return None
        code = int(getattr(original, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF
        return Problem(_PROBLEMS.get(code, "does not hold what it should"), lost=code in _DAMAGE)


def _driver(connection: Connection) -> Any:
    return connection.connection.dbapi_connection


@contextmanager
def _waiting(driver: Any, seconds: float) -> Iterator[Any]:
    """The connection, which meanwhile waits so long for the locks of others."""
    usual = driver.execute("PRAGMA busy_timeout").fetchone()[0]
    driver.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")
    try:
        yield driver
    finally:
        driver.execute(f"PRAGMA busy_timeout = {usual}")


def _make(path: str) -> None:
    # SQLite gives its own files beside it the same permissions. One at a time, because closing a file gives up every
    # lock that the process has on it: no connection to it may be open before it is closed here.
    with _MAKING:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            mode = os.stat(path).st_mode
            if stat.S_ISREG(mode) and stat.S_IMODE(mode) != 0o600:
                os.chmod(path, 0o600)


def _prepare(connection: sqlite3.Connection, patience: float) -> None:
    # One damaged text makes one record unreadable, not every read that comes across it.
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    _write_ahead(connection, time.monotonic() + patience)
    # No sync at each commit: what a killed process has written is with the system already. Only a power cut can take
    # the last commits back, as a whole, and it ends the processes that they are about as well.
    connection.execute("PRAGMA synchronous = NORMAL")
    # What is deleted or wiped is overwritten, as far as the tables go.
    connection.execute("PRAGMA secure_delete = ON")


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
