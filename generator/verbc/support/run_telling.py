"""Tells the hooks of ends that are on record, and notes that they were told, so that no end is passed over."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from .background import Background
from .job_hooks import JobHooks
from .process_identity import own_identity
from .run_look import lives
from .run_record import RunRecord
from .run_store import RunStore
from .worker_threads import WorkerThreads

AT_A_TIME: Final = 4


class RunTelling:
    """Tells of the runs of one store. Where a server ends in between, or two do it, an end is told more than once."""

    def __init__(self, runs: RunStore, hooks: JobHooks, threads: WorkerThreads, background: Background) -> None:
        self._runs = runs
        self._hooks = hooks
        self._threads = threads
        self._background = background
        self._places = asyncio.Semaphore(AT_A_TIME)
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._answers: dict[str, dict[str, Any]] = {}  # of hooks that were told, until that is on record

    def begin(self, run_id: str) -> None:
        """Tell of an end, unless that is under way."""
        if run_id not in self._under_way:
            task = self._background.start("telling of an end", self._tell(run_id))
            self._under_way[run_id] = task
            task.add_done_callback(lambda _: self._under_way.pop(run_id, None))

    def left_over(self, untold: Iterable[RunRecord], known: set[str]) -> tuple[list[str], set[str]]:
        """Those that nobody seems to tell of, and all that are untold; `known` are those that were so at the last look.

        Who records an end also tells of it, at once; most often that is the server that started the run. Blocks.
        """
        ours, now = own_identity(), {record.run_id: record for record in untold}
        left = [record for record in now.values() if record.owner == ours or lives(record.owner) is not True]
        return [record.run_id for record in left if record.run_id in known], set(now)

    async def _tell(self, run_id: str) -> None:
        async with self._places:
            record = await self._threads.read(partial(self._runs.get, run_id))
            if record is None or record.end is None or record.told_at is not None:
                return
            if run_id not in self._answers:
                self._answers[run_id] = await self._hooks.settled(record)
            if details := self._answers[run_id]:
                await self._threads.write(partial(self._runs.add_details, run_id, details))
            await self._threads.write(partial(self._runs.told, run_id, datetime.now(UTC)))
            del self._answers[run_id]
