"""Looks after runs while there are some without an end: settles what is gone, and stops what should not go on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from . import log
from .background import Background
from .run_look import RunLook
from .run_record import RunRecord
from .run_settling import RunSettling
from .run_stopping import RunStopping
from .worker_threads import WorkerThreads

SECONDS: Final = 2.0
# How long after its grace a stop that has not worked is taken for one that nobody sees to any more.
_FORGOTTEN_AFTER: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class _Findings:
    """The runs that something is to be done about."""

    unended: bool  # whether there are any without an end
    due: list[str]
    overlong: list[str]  # their logs are
    forgotten: list[str]  # they were to be stopped, and are not


class RunWatch:
    """The watch over one store; it rests while there is nothing to look after. `most` is the length of a log, in bytes."""

    def __init__(
        self,
        look: RunLook,
        settling: RunSettling,
        stopping: RunStopping,
        threads: WorkerThreads,
        background: Background,
        *,
        most: int,
        grace: float,
    ) -> None:
        self._look = look
        self._settling = settling
        self._stopping = stopping
        self._threads = threads
        self._background = background
        self._most = most
        self._grace = timedelta(seconds=grace)
        self._watching = False
        self._woken = False
        self._failing = False

    def wake(self) -> None:
        """There are runs without an end, or may be."""
        self._woken = True
        if not self._watching:
            self._watching = True
            self._background.start("the watch over runs", self._watch())

    async def _watch(self) -> None:
        try:
            while self._woken:
                self._woken = False
                again = await self._round()
                self._woken = self._woken or again
                if self._woken:
                    await asyncio.sleep(SECONDS)
        finally:
            self._watching = False

    async def _round(self) -> bool:
        """Do what is to be done now; whether there is reason for another round."""
        try:
            findings = await self._threads.read(self._find)
        except Exception as error:
            if not self._failing:  # once is enough, however long that lasts
                log.failure("a look at runs failed", error)
            self._failing = True
            return True
        self._failing = False
        for run_id in findings.due:
            self._settling.begin(run_id)
        for run_id in findings.overlong:
            self._stopping.begin(run_id, "log_limit")
        for run_id in findings.forgotten:
            self._stopping.begin(run_id, "kill")
        return findings.unended

    def _find(self) -> _Findings:
        found = self._look.unended()
        going = [seen.record for seen in found if not seen.due and seen.record.spawn_state == "started"]
        overlong = [record.run_id for record in going if self._is_overlong(record)]
        return _Findings(
            unended=bool(found),
            due=[seen.record.run_id for seen in found if seen.due],
            overlong=overlong,
            forgotten=[
                record.run_id for record in going if record.run_id not in overlong and self._is_forgotten(record)
            ],
        )

    def _is_overlong(self, record: RunRecord) -> bool:
        try:
            return record.log.stat().st_size > self._most
        except OSError:
            return False

    def _is_forgotten(self, record: RunRecord) -> bool:
        """Whether a stop was asked for so long ago that whoever saw to it must have gone."""
        asked = record.stop_requested_at
        return asked is not None and datetime.now(UTC) - asked > self._grace + _FORGOTTEN_AFTER
