"""Places that only so many have at one time, and who comes next: not the first that came, but the most urgent."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import TypeAlias

Rank: TypeAlias = tuple[float, ...]  # the least one is the most urgent


class Turns:
    """So many `places`, for use in one event loop."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: list[tuple[Rank, int, asyncio.Future[None]]] = []
        self._numbers = count()

    @asynccontextmanager
    async def at(self, rank: Rank) -> AsyncIterator[None]:
        """A place, once there is one for this rank; among equals the first that came has it first."""
        await self._place(rank)
        try:
            yield
        finally:
            self._leave()

    async def _place(self, rank: Rank) -> None:
        if self._free > 0:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (rank, next(self._numbers), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()  # the place came, and nobody is there to take it
            raise

    def _leave(self) -> None:
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():  # else whoever waited has given up
                turn.set_result(None)
                return
        self._free += 1
