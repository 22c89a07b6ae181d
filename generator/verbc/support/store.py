"""Durable state in SQL that threads and processes share: one file, its transactions, the versions of its schema."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar
from weakref import WeakSet

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    delete,
    exc,
    insert,
    inspect,
    select,
)

from .sqlite_file import BUSY, begin, is_damage, open_engine, problem, which_file

PATIENCE: Final = 10.0  # seconds that a transaction waits for those of others

Result = TypeVar("Result")

_METADATA = MetaData()
_VERSIONS = Table(
    "schema_versions",
    _METADATA,
    Column("component", Text, primary_key=True),
    Column("version", Integer, nullable=False),
)
_ALL_VERSIONS = select(_VERSIONS.c.component, _VERSIONS.c.version)
_FORGET_VERSION = delete(_VERSIONS).where(_VERSIONS.c.component == bindparam("name"))
_NOTE_VERSION = insert(_VERSIONS)

# Told of each write, "before <name>" right before its commit and "after <name>" right after; tests end the process there.
fault: Callable[[str], None] | None = None


class StoreError(Exception):
    """The store cannot be used as things are; the text says why, and what helps."""


@dataclass(frozen=True, slots=True)
class Component:
    """Tables that belong together. Step i takes them from version i to i + 1; once released it never changes."""

    name: str
    steps: tuple[Callable[[Connection], None], ...]


class Store:
    """Opened by its first use, which makes the file and brings its schema up to date; for use from any thread.

    It is opened again once the file is damaged, or is no longer the one at its path, so a new one can take its place.

    Whatever was committed outlives a process that is killed at any moment; what was not leaves no trace.
    Everything raises StoreError where the file cannot be used.
    """

    def __init__(self, path: Path, components: Sequence[Component], *, patience: float = PATIENCE) -> None:
        self._path = path
        self._components = tuple(components)
        self._patience = patience
        self._engine: Engine | None = None
        self._file: tuple[int, int] | None = None  # the one that is open
        self._closed = False
        self._left: WeakSet[Engine] = WeakSet()  # let go of, though there may be transactions under way
        self._opening = threading.RLock()  # opening may find out that there is nothing that could be opened
        # SQLite lets writers sleep and look again; those of one process queue here instead.
        self._writing = threading.Lock()

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` finds; all that it reads stands as of one moment."""
        engine = self._opened()
        with self._plain_errors(engine), self._transaction(engine, writes=False) as connection:
            return work(connection)

    def write(self, name: str, work: Callable[[Connection], Result]) -> Result:
        """What `work` gives back, once all that it wrote is on record; where it raises, nothing of it is.

        Nobody else writes between its first look and its last. `name` is what `fault` is told.
        """
        return self._write(self._opened(), name, work)

    def close(self) -> None:
        """Let go of the file, for good; transactions under way end as they would."""
        with self._opening:
            self._closed = True
            if self._engine is not None:
                self._engine.dispose()

    def _write(self, engine: Engine, name: str, work: Callable[[Connection], Result]) -> Result:
        with self._plain_errors(engine), self._turn(), self._transaction(engine, writes=True) as connection:
            result = work(connection)
            _reached(f"before {name}")
        _reached(f"after {name}")
        return result

    def _opened(self) -> Engine:
        engine, file = self._engine, which_file(self._path)
        if engine is not None and file == self._file and not self._closed:
            return engine
        with self._opening:
            if self._closed:
                raise StoreError(f"The store {self._path} is closed.")
            if self._engine is not None and self._file != which_file(self._path):
                self._let_go()
            if self._engine is None:
                self._engine = self._open()
                self._file = which_file(self._path)
            return self._engine

    def _let_go(self) -> None:
        """Have the file opened again by the next use; to be called in turn."""
        if self._engine is not None:
            self._left.add(self._engine)
            self._engine.dispose()
            self._engine = None

    def _open(self) -> Engine:
        try:
            engine = open_engine(self._path, self._patience)
        except OSError as error:
            raise StoreError(f"The store {self._path} cannot be made: {error.strerror}.") from error
        try:
            self._bring_up_to_date(engine)
        except BaseException:
            engine.dispose()
            raise
        return engine

    def _bring_up_to_date(self, engine: Engine) -> None:
        with self._plain_errors(engine), self._transaction(engine, writes=False) as connection:
            outdated = self._outdated(connection)
        if outdated:
            self._write(engine, "migrate", self._migrate)

    def _migrate(self, connection: Connection) -> None:
        _METADATA.create_all(connection)
        # Asked again, as another process may have done it meanwhile.
        for component, version in self._outdated(connection):
            for step in component.steps[version:]:
                step(connection)
            connection.execute(_FORGET_VERSION, {"name": component.name})
            connection.execute(_NOTE_VERSION, {"component": component.name, "version": len(component.steps)})

    def _outdated(self, connection: Connection) -> list[tuple[Component, int]]:
        """The components whose tables are not as they should be, with their versions."""
        found = _versions(connection)
        versions = [(component, found.get(component.name, 0)) for component in self._components]
        if any(version > len(component.steps) for component, version in versions):
            raise StoreError(
                f"The store {self._path} was written by a newer version of this server. "
                "Run that version, or choose another state folder."
            )
        return [(component, version) for component, version in versions if version < len(component.steps)]

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._writing.acquire(timeout=self._patience):
            raise StoreError(f"The store {self._path} {BUSY}.")
        try:
            yield
        finally:
            self._writing.release()

    @contextmanager
    def _transaction(self, engine: Engine, *, writes: bool) -> Iterator[Connection]:
        with engine.connect() as connection:
            try:
                with connection.begin():
                    begin(connection, writes=writes)
                    yield connection
            finally:
                if self._closed or engine in self._left:
                    connection.detach()  # so that it is closed, and not put back into a pool that is closed already

    @contextmanager
    def _plain_errors(self, engine: Engine) -> Iterator[None]:
        try:
            yield
        except (exc.DBAPIError, sqlite3.Error) as error:
            said = problem(error)
            if said is None:
                raise
            if is_damage(error):
                with self._opening:
                    if self._engine is engine:
                        self._let_go()
            raise StoreError(f"The store {self._path} {said}.") from error


def _versions(connection: Connection) -> dict[str, int]:
    if not inspect(connection).has_table(_VERSIONS.name):
        return {}
    return {row.component: row.version for row in connection.execute(_ALL_VERSIONS)}


def _reached(point: str) -> None:
    if fault is not None:
        fault(point)
