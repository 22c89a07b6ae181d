"""Connections to one database that are kept open between transactions, for any thread."""

from __future__ import annotations

import threading

from sqlalchemy import Connection, Engine

_KEPT = 8  # enough for ordinary use where there may be any number of them


class KeptConnections:
    """Whoever takes one gives it back. There are `most` at one time; None: as many as are wanted."""

    def __init__(self, engine: Engine, most: int | None, patience: float) -> None:
        self._engine = engine
        self._places = None if most is None else threading.BoundedSemaphore(most)
        self._kept_at_most = most or _KEPT
        self._patience = patience
        self._kept: list[Connection] = []
        self._lock = threading.Lock()
        self._closed = False

    def take(self) -> tuple[Connection, bool]:
        """A connection for the caller alone, and whether it was kept, so may have been lost meanwhile.

        Raises TimeoutError when others had all of them for too long, and the errors of SQLAlchemy.
        """
        if self._places is not None and not self._places.acquire(timeout=self._patience):
            raise TimeoutError
        try:
            return self._kept.pop(), True  # the last one, so that what is not needed rests
        except IndexError:
            pass
        try:
            return self._engine.connect(), False
        except BaseException:
            self._free()
            raise

    def give_back(self, connection: Connection, *, sound: bool) -> None:
        """To be kept if it is `sound`, else to be closed."""
        with self._lock:
            kept = sound and not self._closed and len(self._kept) < self._kept_at_most
            if kept:
                self._kept.append(connection)
        try:
            if not kept:
                connection.close()
        finally:
            self._free()

    def close(self) -> None:
        """Close those that nobody has now; the others are closed when they are given back."""
        with self._lock:
            self._closed = True
            kept, self._kept = self._kept, []
        for connection in kept:
            connection.close()

    def _free(self) -> None:
        if self._places is not None:
            self._places.release()
