"""Looks after runs until all is said and done: settles what is gone, stops what should not go on, tells what is untold."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from . import log
from .background import Background
from .log_tail import length
from .run_look import RunLook
from .run_record import RunRecord
from .run_settling import RunSettling
from .run_stopping import RunStopping, Stop
from .run_store import RunStore
from .run_telling import RunTelling
from .worker_threads import WorkerThreads

SECONDS: Final = 2.0
# How long after its grace a stop that has not worked is taken for one that nobody sees to any more.
_FORGOTTEN_AFTER: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class _Findings:
    """The runs that something is to be done about."""

    more: bool  # whether there are any without an end, or ends that nobody was told
    due: list[str]
    overlong: list[str]  # their logs are
    forgotten: list[str]  # they were to be stopped, and are not
    untold: list[str]  # they have ended, and nobody tells of it


class RunWatch:
    """The watch over one store; it rests while there is nothing to look after. `most` is the length of a log, in bytes."""

    def __init__(
        self,
        runs: RunStore,
        look: RunLook,
        settling: RunSettling,
        stopping: RunStopping,
        telling: RunTelling,
        threads: WorkerThreads,
        background: Background,
        *,
        most: int,
        grace: float,
    ) -> None:
        self._runs = runs
        self._look = look
        self._settling = settling
        self._stopping = stopping
        self._telling = telling
        self._untold: set[str] = set()  # as of the last look
        self._unstopped: set[str] = set()  # those that could not be stopped, which is said once of each
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
            self._stop(run_id, "log_limit")
        for run_id in findings.forgotten:
            self._stop(run_id, "kill")
        for run_id in findings.untold:
            self._telling.begin(run_id)
        return findings.more

    def _stop(self, run_id: str, reason: Literal["kill", "log_limit"]) -> None:
        task = self._stopping.begin(run_id, reason)
        task.add_done_callback(lambda ended: self._note(run_id, ended))

    def _note(self, run_id: str, stopping: asyncio.Task[Stop]) -> None:
        """Say what could not be done; what went wrong in it is said already."""
        if stopping.cancelled() or stopping.exception() is not None or stopping.result().is_over:
            self._unstopped.discard(run_id)
        elif run_id not in self._unstopped:
            self._unstopped.add(run_id)
            log.event("error", "a run could not be stopped", run_id=run_id, reason_code=stopping.result().code)

    def _find(self) -> _Findings:
        found = self._look.unended()
        going = [seen.record for seen in found if not seen.due and seen.record.spawn_state == "started"]
        overlong = [record.run_id for record in going if self._is_overlong(record)]
        untold, self._untold = self._telling.left_over(self._runs.untold(), self._untold)
        return _Findings(
            more=bool(found or self._untold),
            untold=untold,
            due=[seen.record.run_id for seen in found if seen.due],
            overlong=overlong,
            forgotten=[
                record.run_id for record in going if record.run_id not in overlong and self._is_forgotten(record)
            ],
        )

    def _is_overlong(self, record: RunRecord) -> bool:
        return record.leader is not None and length(record.log, record.leader.pid) > self._most

    def _is_forgotten(self, record: RunRecord) -> bool:
        """Whether a stop was asked for so long ago that whoever saw to it must have gone."""
        asked = record.stop_requested_at
        return asked is not None and datetime.now(UTC) - asked > self._grace + _FORGOTTEN_AFTER
