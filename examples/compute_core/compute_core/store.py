"""The SQLite file that all processes of a service share, and transactions on it."""

import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .tables import TABLES, VERSION

PATIENCE = 10.0  # seconds that a transaction waits for those of other processes
_POLL = 0.01  # seconds


class StoreError(Exception):
    """The file cannot be used; the text says why."""


class Store:
    """One file, made on first use for its owner's eyes only; for use from any thread.

    What is committed is on the disk, so a request whose reply was sent is still known after a power cut.
    """

    def __init__(self, path: Path) -> None:
        """Raises StoreError, OSError or sqlite3.Error when there is no using the file."""
        self._path = path
        self._idle: deque[sqlite3.Connection] = deque()
        # SQLite lets waiting writers sleep and look again; those of one process queue here instead.
        self._writing = threading.Lock()
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        with self.write() as db:
            _prepare(db)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A transaction for reading: all that it sees stands as of one moment."""
        with self._transaction("BEGIN") as db:
            yield db

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction for writing: nobody else writes before it ends; an exception leaves no trace of it."""
        with self._writing, self._transaction("BEGIN IMMEDIATE") as db:
            yield db

    def close(self) -> None:
        """Let go of the file; no transaction may be under way."""
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        db = self._connection()
        try:
            db.execute(begin)
            yield db
            db.execute("COMMIT")
        except BaseException:
            # Closing rolls back, and no later transaction meets a connection in an unknown state.
            db.close()
            raise
        self._idle.append(db)

    def _connection(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return _connect(self._path)


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    db.row_factory = sqlite3.Row
    try:
        _write_ahead(db, time.monotonic() + PATIENCE)
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        db.close()
        raise
    return db


def _write_ahead(db: sqlite3.Connection, end: float) -> None:
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # Of two that switch a new file at once, SQLite turns one away without waiting.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(_POLL)


def _prepare(db: sqlite3.Connection) -> None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version == 0:
        for table in TABLES:
            db.execute(table)
        db.execute(f"PRAGMA user_version = {VERSION}")
    elif version != VERSION:
        raise StoreError(f"The file has tables of version {version}; this program knows version {VERSION}.")
