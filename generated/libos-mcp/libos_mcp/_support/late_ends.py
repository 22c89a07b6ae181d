"""Ends of calls that nobody waits for: they go on record with the next transaction, or soon by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from sqlalchemy import Connection

    Work: TypeAlias = Callable[[Connection], Any]

T = TypeVar("T")

_SECONDS: Final = 0.02


class LateEnds:
    """Ends that wait for a transaction; `write` starts one, for which it is given a name and the work."""

    def __init__(self, write: Callable[[str, Work], asyncio.Future[Any]]) -> None:
        self._write = write
        self._waiting: list[Work] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, end: Work) -> None:
        """Put an end on record before long."""
        self._waiting.append(end)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SECONDS, self.flush)

    def write(self, name: str, work: Callable[[Connection], T]) -> asyncio.Future[T]:
        """Start a transaction for `work`, with the ends that wait; they wait on when it comes to nothing."""
        ends, self._waiting = self._waiting, []

        def together(connection: Connection) -> T:
            for end in ends:
                end(connection)
            return work(connection)

        writing: asyncio.Future[T] = self._write(name, together)
        if ends:
            writing.add_done_callback(lambda written: self._unless_written(written, ends))
        return writing

    def flush(self) -> None:
        """Start a transaction for what waits, if anything does."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            ends, self._waiting = self._waiting, []
            self._write("end", lambda connection: [end(connection) for end in ends])

    def _unless_written(self, writing: asyncio.Future[Any], ends: list[Work]) -> None:
        if writing.cancelled() or writing.exception() is not None:
            self._waiting[:0] = ends
            self.flush()  # by themselves, whatever was wrong with the other work
