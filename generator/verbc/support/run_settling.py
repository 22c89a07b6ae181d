"""Puts ends on record: each run once, in the background, and asked about by the hooks first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from .background import Background
from .job_hooks import HookError
from .run_asking import RunAsking
from .run_ends import RunEnds
from .run_record import RunRecord
from .run_telling import RunTelling
from .worker_threads import WorkerThreads

# How many are looked at in one go. What takes longer than a look takes no place here.
LOOKS_AT_A_TIME: Final = 8


class RunSettling:
    """Settles the runs of one store. `changed` is called whenever an end was put on record here."""

    def __init__(
        self,
        ends: RunEnds,
        asking: RunAsking,
        telling: RunTelling,
        threads: WorkerThreads,
        background: Background,
        changed: Callable[[], None],
    ) -> None:
        self._ends = ends
        self._asking = asking
        self._telling = telling
        self._threads = threads
        self._background = background
        self._changed = changed
        self._under_way: dict[str, asyncio.Task[bool]] = {}
        self._places = asyncio.Semaphore(LOOKS_AT_A_TIME)

    def begin(self, run_id: str) -> asyncio.Task[bool]:
        """Settle a run, unless that is under way; the result says whether its end is on record, or it has no record."""
        if (task := self._under_way.get(run_id)) is None:
            task = self._background.start("settling a run", self._settle(run_id))
            self._under_way[run_id] = task
            task.add_done_callback(lambda _: self._under_way.pop(run_id, None))
        return task

    async def patiently(self, run_ids: Iterable[str], seconds: float) -> bool:
        """Begin with these, and wait a little; true when there is something new to look at."""
        tasks = [self.begin(run_id) for run_id in run_ids]
        if not tasks:
            return False
        done, _ = await asyncio.wait(tasks, timeout=seconds)
        return bool(done)

    async def late(self, record: RunRecord) -> bool:
        """Look once more for the report of a run that ended without; true when one has come by now, and is on record."""
        reported = await self._asking.quickly(record)
        if reported is not None:
            await self._threads.write(partial(self._ends.report_late, record.run_id, reported))
        return reported is not None

    async def _settle(self, run_id: str) -> bool:
        async with self._places:
            finding = await self._threads.write(partial(self._ends.find, run_id))
        if finding.record is None:
            return finding.settled
        try:
            reported = None if finding.never_ran else await self._asking.reported(finding.record)
        except HookError:
            return False
        won = await self._threads.write(partial(self._ends.put_on_record, finding, reported))
        self._asking.forget(run_id)
        self._changed()
        if won:
            self._telling.begin(run_id)
        return True
