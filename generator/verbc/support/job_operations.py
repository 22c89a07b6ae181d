"""The operations on background runs, as the generated functions call them: status, output, list, wait and kill."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from .call import Call
from .job_hooks import JobHooks
from .run_classification import is_unresolved
from .run_look import Look, Seen
from .run_view import output, row, run

if TYPE_CHECKING:
    from .run_keeper import RunKeeper

LOG_CHARACTERS: Final = 4000

_Json = dict[str, Any]


class JobOperations:
    """What can be done with the runs of one backend. `keeper` gives them; it is asked when they are needed."""

    def __init__(self, keeper: Callable[[], Awaitable[RunKeeper]], hooks: JobHooks) -> None:
        self._keeper = keeper
        self._hooks = hooks

    async def status(self, call: Call, *, run_id: str, detail: bool) -> _Json:
        """Where a run stands."""
        keeper = await self._keeper()
        found, log = await keeper.look(run_id, LOG_CHARACTERS)
        if isinstance(found, Seen) and self._may_report(found) and await keeper.late(found.record):
            found, log = await keeper.look(run_id, LOG_CHARACTERS)
        return run(run_id, found, log, await self._details(found), detail=detail)

    async def output(self, call: Call, *, run_id: str, tail_chars: int) -> _Json:
        """What a run printed."""
        keeper = await self._keeper()
        found, log = await keeper.look(run_id, tail_chars)
        return output(run_id, found, log, await self._details(found))

    async def list(self, call: Call, *, limit: int, status: str | None) -> _Json:
        """The newest runs."""
        keeper = await self._keeper()
        page, has_more = await keeper.page(limit, status)
        rows = [row(found.record.run_id if isinstance(found, Seen) else found.run_id, found) for found in page]
        return {"jobs": rows, "has_more": has_more}

    async def wait(self, call: Call, *, run_ids: Sequence[str], max_wait: float, poll_interval: float) -> _Json:
        """Wait until runs have ended, or time is up."""
        keeper, loop = await self._keeper(), asyncio.get_running_loop()
        end = min(loop.time() + max_wait, call.last_end)
        with keeper.changes() as changed:
            found = dict(zip(run_ids, await keeper.each(run_ids, patient=True), strict=True))
            while (waiting := _Groups(run_ids, found).worth_waiting_for) and (left := end - loop.time()) > 0:
                await _until(changed, min(left, poll_interval))
                changed.clear()
                found.update(zip(waiting, await keeper.each(waiting, patient=False), strict=True))
        waited = {"max_wait": max_wait, "poll_interval": poll_interval}
        return {"runs": [row(run_id, found[run_id]) for run_id in run_ids], **_Groups(run_ids, found).told, **waited}

    async def kill(self, call: Call, *, run_id: str) -> _Json:
        """Stop a run and what it has started."""
        keeper = await self._keeper()
        return (await keeper.stop(run_id)).told(run_id)

    async def _details(self, found: Look) -> Mapping[str, Any]:
        return await self._hooks.details(found.record) if isinstance(found, Seen) else {}

    def _may_report(self, found: Seen) -> bool:
        """Whether a run that was settled without a report could have made one since."""
        record = found.record
        unreported = record.end is not None and record.end.source in ("process_gone", "exit_code", "kill", "log_limit")
        return unreported and record.late_report is None and self._hooks.report


class _Groups:
    """Runs that are waited for, by how they stand."""

    def __init__(self, run_ids: Sequence[str], found: Mapping[str, Look]) -> None:
        seen = {run_id: look for run_id in run_ids if isinstance(look := found[run_id], Seen)}
        unended = {run_id: look for run_id, look in seen.items() if not look.reading.terminal}
        now = datetime.now(UTC)
        self._all_terminal = len(seen) == len(found) and not unended
        self._stopped = [run_id for run_id, look in unended.items() if look.reading.possibly_orphaned]
        self._unresolved = [run_id for run_id, look in unended.items() if is_unresolved(look.record, now)]
        others = {*self._stopped, *self._unresolved}
        self._pending = [run_id for run_id in unended if run_id not in others]

    @property
    def worth_waiting_for(self) -> Sequence[str]:
        return [*self._pending, *self._stopped]

    @property
    def told(self) -> _Json:
        return {
            "all_terminal": self._all_terminal,
            "timed_out": bool(self._pending),
            "pending": self._pending,
            "stopped_without_end": self._stopped,
            "unresolved_spawn": self._unresolved,
        }


async def _until(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
