"""What transactions wipe because nobody may read it any more, and its traces beside the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection

if TYPE_CHECKING:
    from .database import Database
    from .kept_connections import KeptConnections

_MARK: Final = "wiped"


def wiped(connection: Connection) -> None:
    """Mark the transaction of `connection` as one that wipes something."""
    connection.info[_MARK] = True


def has_wiped(connection: Connection) -> bool:
    """Whether the transaction that now ends is marked; the next one on `connection` is not."""
    return bool(connection.info.pop(_MARK, False))


class Traces:
    """Whether there may be any in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.left = False

    def remove(self, connections: KeptConnections) -> None:
        """Have them gone, unless somebody is in the way; nothing may be written by this process meanwhile.

        Raises errors of SQLAlchemy and the driver.
        """
        try:
            connection, _ = connections.take()
        except TimeoutError:
            return
        sound = False
        try:
            self.left = not self._database.let_go_of_wiped(connection)
            sound = True
        finally:
            connections.give_back(connection, sound=sound)
