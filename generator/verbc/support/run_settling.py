"""Puts ends on record: each run once, in the background, a few at a time, and asked about by the hooks first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from . import log
from .background import Background
from .job_hooks import Ask, HookError, JobHooks
from .run_ends import RunEnds
from .run_record import End, RunRecord
from .run_store import RunStore
from .worker_threads import WorkerThreads

AT_A_TIME: Final = 4
# A hook that fails is asked so many times, with at least this time between, before a run is settled without it.
ATTEMPTS: Final = 3
BETWEEN_ATTEMPTS: Final = 1.0  # seconds


class RunSettling:
    """Settles the runs of one store. `changed` is called whenever an end was put on record here."""

    def __init__(
        self,
        runs: RunStore,
        ends: RunEnds,
        hooks: JobHooks,
        ask: Ask,
        threads: WorkerThreads,
        background: Background,
        changed: Callable[[], None],
    ) -> None:
        self._runs = runs
        self._ends = ends
        self._hooks = hooks
        self._ask = ask
        self._threads = threads
        self._background = background
        self._changed = changed
        self._under_way: dict[str, asyncio.Task[bool]] = {}
        self._places = asyncio.Semaphore(AT_A_TIME)
        self._telling = asyncio.Semaphore(AT_A_TIME)
        self._failures: dict[str, tuple[int, float]] = {}  # how often the hooks failed, and when last

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
        """Ask once more about a run that ended without a report; true when one has come by now, and is on record."""
        try:
            reported = await self._hooks.ended(record, None)
        except HookError as error:
            log.failure("a hook failed", error, run_id=record.run_id)
            return False
        if reported is not None:
            await self._threads.write(partial(self._ends.report_late, record.run_id, reported))
        return reported is not None

    async def _settle(self, run_id: str) -> bool:
        async with self._places:
            finding = await self._threads.write(partial(self._ends.find, run_id))
            if finding.record is None:
                return finding.settled
            try:
                reported = None if finding.never_ran else await self._reported(finding.record)
            except HookError:
                return False
            won = await self._threads.write(partial(self._ends.put_on_record, finding, reported))
        self._failures.pop(run_id, None)
        self._changed()
        if won:
            self._background.start("telling of an end", self._tell(run_id))
        return True

    async def _reported(self, record: RunRecord) -> End | None:
        """What the hooks tell. Raises HookError when they are to be asked again later."""
        now = asyncio.get_running_loop().time()
        times, last = self._failures.get(record.run_id, (0, 0.0))
        if times and now < last + BETWEEN_ATTEMPTS:
            raise HookError
        try:
            return await self._hooks.ended(record, self._ask)
        except HookError as error:
            log.failure("a hook failed", error, run_id=record.run_id, attempt=times + 1)
            if times + 1 < ATTEMPTS:
                self._failures[record.run_id] = times + 1, asyncio.get_running_loop().time()
                raise
        return None

    async def _tell(self, run_id: str) -> None:
        async with self._telling:
            record = await self._threads.read(partial(self._runs.get, run_id))
            if record is not None and (details := await self._hooks.settled(record)):
                await self._threads.write(partial(self._runs.add_details, run_id, details))
