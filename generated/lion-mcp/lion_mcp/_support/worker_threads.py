"""The threads of a backend that blocks: reads never queue behind writes, and neither behind what waits for processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from .bounded_work import wait_through

T = TypeVar("T")

_READERS = 8
_WRITERS = 8
_WAITERS = 16


class WorkerThreads:
    """Three groups of threads, each made as it is needed. `name` is for whoever looks at the process."""

    def __init__(self, name: str) -> None:
        self._readers = ThreadPoolExecutor(_READERS, f"{name}-read")
        self._writers = ThreadPoolExecutor(_WRITERS, f"{name}-write")
        self._waiters = ThreadPoolExecutor(_WAITERS, f"{name}-wait")

    async def read(self, work: Callable[[], T]) -> T:
        """What `work` finds out; it may take milliseconds."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, work)

    def start(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Begin `work`, which may wait for a disk, and for other writers. It is cancelled only if it has not begun."""
        return asyncio.get_running_loop().run_in_executor(self._writers, work)

    async def write(self, work: Callable[[], T]) -> T:
        """What `work` gives back once it is done."""
        return await self.start(work)

    async def write_to_the_end(self, work: Callable[[], T]) -> T:
        """Like `write`; a cancellation has effect only when the work is done."""
        writing = self.start(work)
        if await wait_through(writing):
            writing.exception()  # looked at, so that nothing is said of it when it is forgotten
            raise asyncio.CancelledError
        return writing.result()

    async def wait(self, work: Callable[[], T]) -> T:
        """What `work` gives back; it may take many seconds."""
        return await asyncio.get_running_loop().run_in_executor(self._waiters, work)

    async def close(self) -> None:
        """Take no more work, and wait for what is under way."""
        groups = (self._readers, self._writers, self._waiters)
        for threads in groups:
            threads.shutdown(wait=False, cancel_futures=True)
        for threads in groups:
            await asyncio.to_thread(threads.shutdown)
