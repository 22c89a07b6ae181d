"""Databases of both kinds as the tests of stores need them: new ones, and a way to them that leads past the store."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from sqlalchemy import Connection

from tests.postgresql import Server
from verbc.support.database import Database
from verbc.support.postgresql import Postgresql
from verbc.support.sqlite_file import SqliteFile
from verbc.support.store import Store

KINDS: Final = ("sqlite", "postgresql")


class Place(Protocol):
    """A new database; its `address` is what the programs of `store_programs` take."""

    @property
    def address(self) -> str: ...

    def database(self) -> Database:
        """As a store takes it."""

    def by_hand(self, *statements: str) -> list[Any]:
        """What the last statement finds, past the store."""

    def tables(self) -> set[str]:
        """The names of all tables."""


class SqlitePlace:
    """A file that is not there yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def address(self) -> str:
        return str(self.path)

    def database(self) -> Database:
        return SqliteFile(self.path)

    def by_hand(self, *statements: str) -> list[Any]:
        with closing(sqlite3.connect(self.path)) as connection:
            found = [connection.execute(statement).fetchall() for statement in statements][-1]
            connection.commit()
        return found

    def tables(self) -> set[str]:
        return {name for (name,) in self.by_hand("SELECT name FROM sqlite_schema WHERE type = 'table'")}


class PostgresqlPlace:
    """A database without tables."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.name = server.make_database()

    @property
    def address(self) -> str:
        return self.server.url(self.name)

    def database(self) -> Database:
        return Postgresql(self.address)

    def by_hand(self, *statements: str) -> list[Any]:
        return [self.server.order(statement, self.name) for statement in statements][-1]

    def tables(self) -> set[str]:
        return {name for (name,) in self.by_hand("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}

    def connected(self) -> list[int]:
        """The processes of the server that serve others than this one."""
        found = self.by_hand(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "
            "AND datname = current_database() AND pid <> pg_backend_pid()"
        )
        return [pid for (pid,) in found]

    def turn_out(self) -> None:
        """End all connections, and see that they are gone."""
        self.by_hand(*(f"SELECT pg_terminate_backend({pid}, 10000)" for pid in self.connected()))


@contextmanager
def busy(place: Place) -> Iterator[None]:
    """Somebody else is in the middle of a write."""
    other, writing, enough = Store(place.database(), []), threading.Event(), threading.Event()

    def work(_connection: Connection) -> None:
        writing.set()
        assert enough.wait(60)

    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(other.write, "busy", work)
        try:
            assert writing.wait(60)
            yield
        finally:
            enough.set()
            written.result()
            other.close()
