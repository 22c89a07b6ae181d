"""Asking the hooks how runs ended: a quick look costs nobody else anything, the command line is asked a few times at once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from . import log
from .job_hooks import Ask, HookError, JobHooks
from .run_record import End, RunRecord
from .turns import Rank, Turns

AT_A_TIME: Final = 4
# A hook that fails is asked so many times, with at least this time between, before a run is settled without it.
ATTEMPTS: Final = 3
BETWEEN_ATTEMPTS: Final = 1.0  # seconds
# Whoever stops a run waits for its end. What it says of that beyond its report is not worth more than this.
STOPPED_SECONDS: Final = 8.0


@dataclass(frozen=True, slots=True)
class _Failures:
    """How often the hooks failed for a run, and when last."""

    times: int = 0
    last: float = 0.0


class RunAsking:
    """Knows which runs the hooks have failed for. `ask` is the command line, for the hooks."""

    def __init__(self, hooks: JobHooks, ask: Ask) -> None:
        self._hooks = hooks
        self._ask = ask
        self._others = Turns(AT_A_TIME)
        self._stopped = Turns(AT_A_TIME)
        self._failures: dict[str, _Failures] = {}

    async def reported(self, record: RunRecord) -> End | None:
        """What the hooks tell of an end. Raises HookError when they are to be asked again later."""
        failures = self._failures.get(record.run_id, _Failures())
        if failures.times and asyncio.get_running_loop().time() < failures.last + BETWEEN_ATTEMPTS:
            raise HookError
        if (told := await self.quickly(record)) is not None:
            return told
        if record.stop_reason is not None:
            return await self._of_stopped(record)
        async with self._others.at(_rank(record, failures.times)):
            return await self._counted(record, failures.times + 1)

    async def quickly(self, record: RunRecord) -> End | None:
        """What the hooks tell without asking anybody; a failure is logged, and says nothing."""
        try:
            return await self._hooks.ended(record, None)
        except HookError as error:
            log.failure("a hook failed", error, run_id=record.run_id)
            return None

    def forget(self, run_id: str) -> None:
        """The run has its end."""
        self._failures.pop(run_id, None)

    async def _of_stopped(self, record: RunRecord) -> End | None:
        """A run that was told to stop is asked about once, and never behind others."""
        try:
            async with asyncio.timeout(STOPPED_SECONDS), self._stopped.at(()):
                return await self._hooks.ended(record, self._ask)
        except (HookError, TimeoutError) as error:
            log.failure("a hook failed", error, run_id=record.run_id)
            return None

    async def _counted(self, record: RunRecord, attempt: int) -> End | None:
        try:
            return await self._hooks.ended(record, self._ask)
        except HookError as error:
            log.failure("a hook failed", error, run_id=record.run_id, attempt=attempt)
            if attempt < ATTEMPTS:
                self._failures[record.run_id] = _Failures(attempt, asyncio.get_running_loop().time())
                raise
        return None


def _rank(record: RunRecord, times: int) -> Rank:
    """Those first that failed least often, then what was seen to end, the last one first: somebody may wait for it."""
    return times, -record.exited_at.timestamp() if record.exited_at else 0.0
