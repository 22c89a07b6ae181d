"""Stops runs, on request or for what they print: the request is on record first, if it can be, and the stop is seen to work."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Literal

from . import log
from .background import Background
from .exit_watch import ExitWatch
from .process_stop import Stopped, stop
from .run_look import RunLook, Seen
from .run_record import RunRecord
from .run_rows import Unreadable
from .run_settling import RunSettling
from .run_store import RunStore
from .store import StoreError
from .worker_threads import WorkerThreads

# How long a stop waits, once all is gone, for the exit code to be put on record, and then for the end.
_REAP_SECONDS: Final = 2.0
_SETTLE_SECONDS: Final = 10.0
_SETTLE_SECONDS_OF_GONE: Final = 1.0  # where there was nobody to stop, nobody waits for how it ended either
_SETTLE_AGAIN_SECONDS: Final = 0.05

_REASONS: Final = {
    "signalled": "It was stopped, and its processes are gone.",
    "still_alive": "Some of its processes did not end.",
    "no_such_job": "There is no run with this id.",
    "job_record_unreadable": "The record of this run cannot be read.",
    "no_pid_on_record": "It has no process on record. Should its start be under way, it is stopped right after it.",
    "kill_not_recorded": "The request could not be put on record, so nothing was stopped.",
    "process_gone": "Its process was gone already.",
    "group_gone": "It had ended, and nothing of it is left.",
    "pid_recycled": "Its process is gone, and its id belongs to another one now.",
    "permission_denied": "The system does not permit to stop what is left of it.",
    "group_ownership_unproven": "It cannot be told whether all processes that may be its own are gone.",
}
_UNRECORDED = "That it was to be stopped could not be put on record, so its end will say what was seen of it."
_LEFT_BEHIND = "It had ended before; what it had left behind was stopped, and is gone."


@dataclass(frozen=True, slots=True)
class Stop:
    """How an attempt to stop a run went."""

    code: str
    record: RunRecord | None = None
    signal: Literal["SIGTERM", "SIGKILL"] | None = None
    recorded: bool = True  # that it was to be stopped is on record, where it had not ended before

    @property
    def is_over(self) -> bool:
        """Whether nothing of the run was left."""
        return self.code in ("signalled", "process_gone", "group_gone", "pid_recycled")

    def told(self, run_id: str) -> dict[str, Any]:
        """The result of `kill`."""
        record = self.record
        left_behind = self.code == "signalled" and record is not None and _had_ended(record)
        reason = _LEFT_BEHIND if left_behind else _REASONS[self.code]
        return {
            "run_id": run_id,
            "killed": self.code == "signalled",
            "reason_code": self.code,
            "reason": reason if self.recorded or self.code == "kill_not_recorded" else f"{reason} {_UNRECORDED}",
            "signal": self.signal,
            "pid": record.leader.pid if record and record.leader else None,
            "pgid": record.pgid if record else None,
        }


class RunStopping:
    """Stops the runs of one store, each of them by one attempt at a time; `grace` is in seconds."""

    def __init__(
        self,
        runs: RunStore,
        look: RunLook,
        settling: RunSettling,
        exits: ExitWatch,
        threads: WorkerThreads,
        background: Background,
        grace: float,
    ) -> None:
        self._runs = runs
        self._look = look
        self._settling = settling
        self._exits = exits
        self._threads = threads
        self._background = background
        self._grace = grace
        self._under_way: dict[str, asyncio.Task[Stop]] = {}

    def begin(self, run_id: str, reason: Literal["kill", "log_limit"]) -> asyncio.Task[Stop]:
        """Stop a run and what it has left behind, unless that is under way. Nothing but its end ends the attempt."""
        if (task := self._under_way.get(run_id)) is None:
            task = self._background.start("stopping a run", self._stop(run_id, reason))
            self._under_way[run_id] = task
            task.add_done_callback(lambda _: self._under_way.pop(run_id, None))
        return task

    async def _stop(self, run_id: str, reason: Literal["kill", "log_limit"]) -> Stop:
        found = await self._threads.read(partial(self._look.of, run_id))
        if isinstance(found, Seen) and found.due and found.record.spawn_state == "preparing":
            await self._settled(run_id)  # what lives of it gets on record by that
        stopped = await self._threads.wait(partial(self._stopped, run_id, reason))
        if stopped.is_over and stopped.record is not None and stopped.record.end is None:
            await self._settled(run_id, _SETTLE_SECONDS if stopped.signal else _SETTLE_SECONDS_OF_GONE)
        return stopped

    async def _settled(self, run_id: str, seconds: float = _SETTLE_SECONDS) -> None:
        """Wait until the end of a run that is gone is on record, within bounds: reading goes on without it."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while (left := end - loop.time()) > 0:
            settling = self._settling.begin(run_id)
            await asyncio.wait((settling,), timeout=left)
            if settling.done() and (settling.cancelled() or settling.exception() or settling.result()):
                return
            await asyncio.sleep(_SETTLE_AGAIN_SECONDS)

    def _stopped(self, run_id: str, reason: Literal["kill", "log_limit"]) -> Stop:
        found = self._look.of(run_id)
        recorded = True
        if isinstance(found, Seen) and found.record.end is None and not found.due:
            recorded = self._requested(run_id, reason)
            # Looked at again, as it may have been started meanwhile, by somebody who did not see the request.
            found = self._look.of(run_id)
        if found is None:
            return Stop("no_such_job")
        if isinstance(found, Unreadable):
            return Stop("job_record_unreadable")
        record = found.record
        if record.spawn_state == "preparing":
            return Stop("no_pid_on_record" if recorded else "kill_not_recorded", record)
        outcome = stop(record.leader, record.pgid, self._look.marker(run_id), self._grace, record.owner)
        if outcome.gone:
            self._exits.wait_gone(run_id, _REAP_SECONDS)
        return Stop(_code(found, outcome), record, outcome.signal, recorded)

    def _requested(self, run_id: str, reason: Literal["kill", "log_limit"]) -> bool:
        """Whether a request is on record, or need not be. A run is stopped without one: it may be what fills the disk."""
        try:
            self._runs.stop_requested(run_id, reason, datetime.now(UTC))
        except StoreError as error:
            log.failure("a request to stop a run not recorded", error, run_id=run_id)
            return False
        return True


def _had_ended(record: RunRecord) -> bool:
    """Whether a run had ended before anybody wanted it to stop."""
    return record.end is not None or (record.exited_at is not None and record.stop_reason is None)


def _code(found: Seen, outcome: Stopped) -> str:
    if not outcome.gone:
        return "group_ownership_unproven" if outcome.problem == "scan_incomplete" else outcome.problem or "still_alive"
    if outcome.signal is not None:
        return "signalled"
    if found.record.end is not None:
        return "group_gone"
    recycled = found.sighting is not None and found.sighting.identity == "recycled"
    return "pid_recycled" if recycled else "process_gone"
