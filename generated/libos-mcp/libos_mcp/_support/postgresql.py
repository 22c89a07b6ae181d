"""What is special about PostgreSQL: how it is reached, how its transactions begin, what its errors mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Engine, NullPool, create_engine, exc

from .database import BUSY, Problem, StoreError

if TYPE_CHECKING:
    import psycopg

_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Writes take turns, as in a file. What has its turn sees with each statement what was committed before.
_TURN: Final = 0x7665726263  # a number that nobody else in this database takes a lock of
_WRITE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = {}"
_TAKE_TURN: Final = f"; SELECT pg_advisory_xact_lock({_TURN})"
_IN_TRANSACTION: Final = 2  # of the states that libpq knows
# A process that is stopped or cut off in the middle of a write holds up all others only for so long.
_LONGEST_PAUSE: Final = 60_000  # milliseconds
# Whoever waits for a server that is gone without a word finds out in a minute, not in the two hours of most systems.
_ALIVE: Final = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}

_UNREACHABLE: Final = "cannot be reached; see that its server runs, and that its address, user and password are right"
_OTHERWISE: Final = "does not hold what it should"
_PROBLEMS: Final = {
    "22P05": "cannot hold every text; it has to have the encoding UTF8",
    "25006": "can be read but not written now; see that its server is no standby",
    "3F000": _OTHERWISE,
    "40001": BUSY,
    "40P01": BUSY,
    "42501": "does not let its user do this; look at the rights of the user",
    "42701": _OTHERWISE,
    "42703": _OTHERWISE,
    "42P01": _OTHERWISE,
    "42P07": _OTHERWISE,
    "53100": "cannot grow, because the disk is full",
    "53200": "cannot go on, because its server is short of memory",
    "55P03": BUSY,
    "57014": BUSY,
    "58030": "cannot be read or written, because its disk fails or is full",
    "XX001": "is damaged",
    "XX002": "is damaged",
}
# Connections that ended, were ended, or could not be made.
_LOST: Final = ("08", "25P03", "57P0", "53300")


class Postgresql:
    """A database that is there, reached by an address as `psql` takes it; most things that it leaves out have defaults.

    Nothing of the address is in any message, as a password may stand at a wrong place.
    """

    name: Final = "The store in PostgreSQL"
    other: Final = "another database"
    most: Final = 10  # connections; servers have about a hundred for everybody

    def __init__(self, url: str) -> None:
        self._url = url

    def which(self) -> str:
        return self.name  # whatever else was there, it can only be exchanged without connections to it

    def open(self, patience: float) -> Engine:
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise StoreError(
                f"{self.name} needs the package psycopg; install this server with its extra “postgresql”."
            ) from None
        parameters = self._parameters(patience)
        return create_engine(
            "postgresql+psycopg://",
            creator=lambda: _connect(parameters, patience),
            poolclass=NullPool,
            pool_reset_on_return=None,  # what is closed leaves no transaction behind
            hide_parameters=True,
            use_native_hstore=False,
        )

    def begin(self, connection: Connection, *, writes: bool, patience: float) -> None:
        begin = _WRITE.format(_milliseconds(patience)) + _TAKE_TURN if writes else _READ
        _driver(connection).execute(begin, prepare=False)  # there is nothing to plan

    def is_open(self, connection: Connection) -> bool:
        return bool(_driver(connection).pgconn.transaction_status == _IN_TRANSACTION)

    def let_go_of_wiped(self, connection: Connection) -> bool:
        return True  # its server clears away by itself

    def problem(self, error: Exception) -> Problem | None:
        import psycopg

        original = error.orig if isinstance(error, exc.DBAPIError) else error
        if not isinstance(original, psycopg.Error):
            return None
        code = original.sqlstate
        if code is None:
            # Only where there is no server to say more; other mistakes of ours are of other kinds.
            return Problem(_UNREACHABLE, lost=True) if isinstance(original, psycopg.OperationalError) else None
        if code.startswith(_LOST):
            return Problem(_UNREACHABLE, lost=True)
        text = _PROBLEMS.get(code)
        return None if text is None else Problem(text)

    def _parameters(self, patience: float) -> dict[str, Any]:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        if not self._url.startswith(("postgresql://", "postgres://")):
            raise StoreError("The address of a store in PostgreSQL begins with postgresql://.")
        try:
            given = conninfo_to_dict(self._url)
        except psycopg.Error:
            raise StoreError(
                "The address of the store in PostgreSQL cannot be read; "
                "in a password, characters such as @, : and / are written as %40, %3A and %2F."
            ) from None
        seconds = max(2, math.ceil(patience))  # fewer mean twice as many
        waits = {"connect_timeout": seconds, "tcp_user_timeout": seconds * 1000}
        # Whatever the encoding of the database, texts come as text.
        return {**waits, **_ALIVE, "client_encoding": "UTF8", **given}


def _connect(parameters: dict[str, Any], patience: float) -> psycopg.Connection[Any]:
    import psycopg

    # Transactions begin by our own statement, which says of which kind they are.
    connection = psycopg.connect(**parameters, autocommit=True)
    settings = {
        "client_min_messages": "error",  # nobody reads the others
        "idle_in_transaction_session_timeout": _LONGEST_PAUSE,
        "lock_timeout": _milliseconds(patience),
    }
    try:
        connection.execute("; ".join(f"SET {name} = {value}" for name, value in settings.items()).encode())
    except BaseException:
        connection.close()
        raise
    return connection


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))  # 0 is for ever


def _driver(connection: Connection) -> Any:
    return connection.connection.dbapi_connection
