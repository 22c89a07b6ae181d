"""Durable state in SQL that threads and processes share: its transactions, and the versions of its schema."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, TypeVar

from sqlalchemy import (
    Column,
    Connection,
    Integer,
    MetaData,
    RootTransaction,
    Table,
    Text,
    bindparam,
    delete,
    insert,
    inspect,
    select,
)

from .database import BUSY, Database, StoreError
from .kept_connections import KeptConnections
from .wiping import Traces, has_wiped

__all__ = ["PATIENCE", "Component", "Store", "StoreError"]

PATIENCE: Final = 10.0  # seconds that a transaction waits for those of others

_PAUSES: Final = (0.0, 0.05, 0.2)  # seconds before each attempt at traces

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


@dataclass(frozen=True, slots=True)
class Component:
    """Tables that belong together. Step i takes them from version i to i + 1; once released it never changes."""

    name: str
    steps: tuple[Callable[[Connection], None], ...]


class Store:
    """Opened by its first use, which brings the schema of its database up to date; for use from any thread.

    It is opened again once the database is damaged, out of reach, or no longer the one that was there, so a new one
    can take its place.

    Whatever was committed outlives a process that is killed at any moment; what was not leaves no trace.
    Everything raises StoreError where the database cannot be used. Of a write that raises it while it commits, a
    server that is then out of reach may have kept all.
    """

    def __init__(self, database: Database, components: Sequence[Component], *, patience: float = PATIENCE) -> None:
        self._database = database
        self._components = tuple(components)
        self._patience = patience
        self._connections: KeptConnections | None = None
        self._there: Hashable | None = None  # what they lead to
        self._closed = False
        self._traces = Traces(database)
        self._opening = threading.RLock()  # opening may find out that there is nothing that could be opened
        # Writers of one process queue here: SQLite lets them sleep and look again, PostgreSQL has a connection of each.
        self._writing = threading.Lock()

    def read(self, work: Callable[[Connection], Result]) -> Result:
        """What `work` finds; all that it reads stands as of one moment, and is read to its end in there."""
        with self._transaction(self._opened) as connection:
            return work(connection)

    def write(self, name: str, work: Callable[[Connection], Result], asked_at: float | None = None) -> Result:
        """What `work` gives back, once all that it wrote is on record; where it raises, nothing of it is.

        Nobody else writes between its first look and its last. `name` is what `fault` is told. Patience counts from
        `asked_at` on, a time of the monotonic clock; by default from now.
        """
        until = (time.monotonic() if asked_at is None else asked_at) + self._patience
        if not self._writing.acquire(timeout=_left(until)):
            raise self._error(BUSY)
        try:
            result = self._written(self._opened, name, work, until)
        finally:
            self._writing.release()
        _reached(f"after {name}")
        return result

    @property
    def has_traces(self) -> bool:
        """Whether something was wiped that may still be found beside the tables."""
        return self._traces.left

    def remove_traces(self) -> None:
        """Have the database forget what was wiped; others that use it at that moment can be in the way."""
        for pause in _PAUSES:
            time.sleep(pause)
            with self._writing:
                connections = self._opened()
                with self._plain_errors(connections):
                    self._traces.remove(connections)
            if not self.has_traces:
                return

    def close(self) -> None:
        """Let go of the database, for good; transactions under way end as they would."""
        if self.has_traces:
            with suppress(StoreError):
                self.remove_traces()
        with self._opening:
            self._closed = True
            if self._connections is not None:
                self._connections.close()

    def _written(
        self, opened: Callable[[], KeptConnections], name: str, work: Callable[[Connection], Result], until: float
    ) -> Result:
        with self._transaction(opened, until) as connection:
            result = work(connection)
            _reached(f"before {name}")
            wiped = has_wiped(connection)
        self._traces.left = self._traces.left or wiped
        return result

    def _opened(self) -> KeptConnections:
        connections, there = self._connections, self._database.which()
        if connections is not None and there is not None and there == self._there and not self._closed:
            return connections
        with self._opening:
            if self._closed:
                raise self._error("is closed")
            if self._connections is not None and (self._there is None or self._there != self._database.which()):
                self._let_go(self._connections)
            if self._connections is None:
                self._connections = self._open()
                self._there = self._database.which()
            return self._connections

    def _let_go(self, connections: KeptConnections) -> None:
        """Have the database opened again by the next use, if these are the connections to it."""
        connections.close()
        with self._opening:
            if self._connections is connections:
                self._connections = None

    def _open(self) -> KeptConnections:
        with self._plain_errors():
            connections = KeptConnections(self._database.open(self._patience), self._database.most, self._patience)
        try:
            self._bring_up_to_date(connections)
        except BaseException:
            connections.close()
            raise
        return connections

    def _bring_up_to_date(self, connections: KeptConnections) -> None:
        with self._transaction(lambda: connections) as connection:
            outdated = self._outdated(connection)
        if outdated:
            # Not in turn, as whoever has it may wait for this.
            self._written(lambda: connections, "migrate", self._migrate, time.monotonic() + self._patience)
            _reached("after migrate")

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
            raise self._error(
                f"was written by a newer version of this server. Run that version, or choose {self._database.other}"
            )
        return [(component, version) for component, version in versions if version < len(component.steps)]

    @contextmanager
    def _transaction(self, opened: Callable[[], KeptConnections], until: float | None = None) -> Iterator[Connection]:
        """One that writes where it has an `until`, a time of the monotonic clock up to which it waits for its turn."""
        connections, connection, transaction = self._begun(opened, until)
        sound = False
        try:
            with self._plain_errors(connections), transaction:
                yield connection
                if not self._database.is_open(connection):
                    raise RuntimeError("A transaction went on after it had failed.")
            sound = True
        finally:
            # Whoever holds an error may hold an open cursor as well, and with it an old view.
            connections.give_back(connection, sound=sound)

    def _begun(
        self, opened: Callable[[], KeptConnections], until: float | None
    ) -> tuple[KeptConnections, Connection, RootTransaction]:
        """A connection in a new transaction."""
        while True:
            connections = opened()
            with self._plain_errors(connections):
                try:
                    connection, kept = connections.take()
                except TimeoutError:
                    raise self._error(BUSY) from None
                try:
                    return connections, connection, self._begin(connection, until)
                except BaseException as error:
                    connections.give_back(connection, sound=False)
                    # Nothing has happened yet, so nobody has to hear of what was lost while it lay idle.
                    if not kept or not self._is_lost(error):
                        raise
            self._let_go(connections)

    def _begin(self, connection: Connection, until: float | None) -> RootTransaction:
        transaction = connection.begin()
        try:
            patience = self._patience if until is None else _left(until)
            self._database.begin(connection, writes=until is not None, patience=patience)
        except BaseException:
            transaction.rollback()
            raise
        return transaction

    def _is_lost(self, error: BaseException) -> bool:
        problem = self._database.problem(error) if isinstance(error, Exception) else None
        return problem is not None and problem.lost

    @contextmanager
    def _plain_errors(self, connections: KeptConnections | None = None) -> Iterator[None]:
        try:
            yield
        except StoreError:
            raise
        except Exception as error:
            problem = self._database.problem(error)
            if problem is None:
                raise
            if problem.lost and connections is not None:
                self._let_go(connections)
            raise self._error(problem.text) from error

    def _error(self, text: str) -> StoreError:
        return StoreError(f"{self._database.name} {text}.")


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())


def _versions(connection: Connection) -> dict[str, int]:
    if not inspect(connection).has_table(_VERSIONS.name):
        return {}
    return {row.component: row.version for row in connection.execute(_ALL_VERSIONS)}


def _reached(point: str) -> None:
    if fault is not None:
        fault(point)
