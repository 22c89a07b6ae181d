"""What a store asks of the database that it lies in."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

BUSY: Final = "is kept busy by others for too long; try again"


class StoreError(Exception):
    """The store cannot be used as things are; the text says why, and what helps."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What an error says about a database."""

    text: str  # the rest of a sentence about it
    lost: bool = False  # the connections to it are of no use any more


class Database(Protocol):
    """A database, not opened yet; for use from any thread."""

    @property
    def name(self) -> str:
        """What a sentence about it begins with; nothing in it is secret."""

    @property
    def other(self) -> str:
        """What to choose instead."""

    @property
    def most(self) -> int | None:
        """How many connections there may be at one time; None: as many as are wanted."""

    def which(self) -> Hashable | None:
        """What tells the one that is there from any other one, asked at each use; None: there is none."""

    def open(self, patience: float) -> Engine:
        """An engine that pools nothing, whose connections wait `patience` seconds for the locks of others.

        Raises StoreError.
        """

    def begin(self, connection: Connection, *, writes: bool, patience: float) -> None:
        """Begin the transaction that `connection` believes to be in. Raises errors of the driver.

        One that reads sees all as of one moment; nobody else writes during one that writes, which waits `patience`
        seconds at most for its turn.
        """

    def is_open(self, connection: Connection) -> bool:
        """Whether the transaction of `connection` still goes on, and can be committed."""

    def let_go_of_wiped(self, connection: Connection) -> bool:
        """Whether what was wiped from tables is nowhere else either, as far as the database can see to that at once.

        `connection` is in no transaction. Waits for nobody; raises errors of the driver.
        """

    def problem(self, error: Exception) -> Problem | None:
        """What an error of SQLAlchemy or the driver says about the database; None where the mistake is ours."""
