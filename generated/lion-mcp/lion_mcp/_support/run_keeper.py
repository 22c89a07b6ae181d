"""Keeps the runs of one state folder: everything that a backend does with them, each as one answer off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from .background import Background
from .exit_watch import ExitWatch
from .job_hooks import Ask, JobHooks
from .job_refusals import refusals
from .launch import StartError
from .log_tail import Tail, tail
from .run_asking import RunAsking
from .run_ends import RunEnds
from .run_look import Look, RunLook, Seen
from .run_place import Place
from .run_record import RunRecord
from .run_retention import RunRetention
from .run_rows import Unreadable
from .run_settling import RunSettling
from .run_start import Order, RunStart
from .run_stopping import RunStopping, Stop
from .run_store import Key
from .run_telling import RunTelling
from .run_watch import RunWatch
from .worker_threads import WorkerThreads

T = TypeVar("T")

# How long a reader waits for ends that are not on record yet, before it tells what there is.
PATIENCE: Final = 0.25
# How long a start waits until it is clear whether the one before it, under the same key, has ever happened.
START_PATIENCE: Final = 10.0
TIDY_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of background runs."""

    log: int  # bytes
    keep: float  # seconds after its end
    grace: float  # seconds between asking a run to stop and forcing it


class RunKeeper:
    """Made in the event loop that it serves. `variable` marks the processes of runs. All that it does raises Refusal."""

    def __init__(
        self, place: Place, limits: Limits, variable: str, hooks: JobHooks, ask: Ask, threads: WorkerThreads
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._store = place.store
        self._runs = runs = place.runs
        self._threads = threads
        self._background = background = Background()
        self._waiting: set[asyncio.Event] = set()
        self._exits = ExitWatch(runs.exited, self._gone)
        self._look = look = RunLook(runs, variable)
        self._start = RunStart(runs, self._exits)
        self._folders = place.folders
        ends = RunEnds(runs, look, hooks.report)
        telling = RunTelling(runs, hooks, threads, background)
        self._settling = RunSettling(ends, RunAsking(hooks, ask), telling, threads, background, self._changed)
        self._stopping = RunStopping(runs, look, self._settling, self._exits, threads, background, limits.grace)
        self._watch = RunWatch(
            runs,
            look,
            self._settling,
            self._stopping,
            telling,
            threads,
            background,
            most=limits.log,
            grace=limits.grace,
        )
        self._retention = RunRetention(runs, place.folders, limits.keep)
        self._tidy_at = self._loop.time()
        self._closed = False
        self._watch.wake()

    def folder(self, run_id: str) -> Path:
        """Where the files of a run belong."""
        return self._folders / run_id

    async def standing(self, key: Key) -> Seen | None:
        """The run that a key stands for; one that was never started is nothing to stand for."""
        record = await self._read(partial(self._runs.of_key, key))
        if record is None:
            return None
        found = await self._read(partial(self._look.at, record))
        lost = found.due and record.spawn_state == "preparing"
        if lost and await self._settling.patiently([record.run_id], START_PATIENCE):
            record = await self._read(partial(self._runs.of_key, key))
            return None if record is None else await self._read(partial(self._look.at, record))
        return found

    async def start(self, order: Order) -> Seen:
        """Start a run, to the end even when the caller gives up; or the run that its key stands for."""
        with refusals(order.record.run_id):
            record = await self._threads.write_to_the_end(partial(self._started, order))
        return await self._read(partial(self._look.at, record))

    async def look(self, run_id: str, characters: int) -> tuple[Look, Tail | None]:
        """A run, and the end of its log: if the run has ended, the log was read after that."""
        work = partial(self._found, run_id, characters)
        found = await self._read(work)
        return await self._again(work, found, [found[0]])

    async def page(self, limit: int, status: str | None) -> tuple[list[Seen | Unreadable], bool]:
        """The newest runs, and whether there are more."""
        work = partial(self._look.page, limit, status)
        found = await self._read(work)
        return await self._again(work, found, found[0])

    async def each(self, run_ids: Sequence[str], *, patient: bool) -> list[Look]:
        """Several runs, in one look; ends that are not on record yet are seen to."""
        work = partial(self._each, run_ids)
        found = await self._read(work)
        return await self._again(work, found, found, PATIENCE if patient else 0.0)

    async def late(self, record: RunRecord) -> bool:
        """Ask for a report that came after the end; true when there is one now."""
        asking = self._background.start("asking for a late report", self._settling.late(record))
        done, _ = await asyncio.wait((asking,), timeout=PATIENCE)
        return bool(done) and not asking.cancelled() and asking.exception() is None and asking.result()

    async def stop(self, run_id: str) -> Stop:
        """Stop a run; that goes on when the caller gives up."""
        with refusals():
            return await asyncio.shield(self._stopping.begin(run_id, "kill"))

    @contextmanager
    def changes(self) -> Iterator[asyncio.Event]:
        """An event that is set whenever the end of a run is put on record here."""
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            yield event
        finally:
            self._waiting.discard(event)

    async def close(self) -> None:
        """Leave the runs alone, and let go of everything else."""
        self._closed = True
        self._exits.hurry()
        await self._background.close()
        await self._threads.close()
        self._store.close()

    async def _read(self, work: Callable[[], T]) -> T:
        self._tidy_now_and_then()
        with refusals():
            return await self._threads.read(work)

    async def _again(self, work: Callable[[], T], found: T, looks: Sequence[Look], seconds: float = PATIENCE) -> T:
        """What was found, or what is found after a little patience with runs that have ends to be put on record."""
        unended = [look for look in looks if isinstance(look, Seen) and look.record.end is None]
        if unended:
            self._watch.wake()
        due = [look.record.run_id for look in unended if look.due]
        return await self._read(work) if await self._settling.patiently(due, seconds) else found

    def _found(self, run_id: str, characters: int) -> tuple[Look, Tail | None]:
        found = self._look.of(run_id)
        with suppress(OSError):
            return found, tail(found.record.log, characters) if isinstance(found, Seen) else None
        return found, None

    def _each(self, run_ids: Sequence[str]) -> list[Look]:
        found = self._look.several(dict.fromkeys(run_ids))
        return [found.get(run_id) for run_id in run_ids]

    def _started(self, order: Order) -> RunRecord:
        # Told from here, so that it is seen to even when nobody waits for this any more.
        try:
            record = self._start.start(order)
        except StartError:
            self._call(self._watch.wake)  # it has an end that is to be told
            raise
        self._call(self._look_after, record)
        return record

    def _look_after(self, record: RunRecord) -> None:
        self._watch.wake()
        if record.end is None and record.stop_reason is not None:
            self._stopping.begin(record.run_id, record.stop_reason)

    def _gone(self, run_id: str) -> None:
        self._call(self._settling.begin, run_id)

    def _call(self, function: Callable[..., object], *arguments: object) -> None:
        """Have something done in the event loop, from any thread; when this is closed, the next server does it."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._do, function, *arguments)

    def _do(self, function: Callable[..., object], *arguments: object) -> None:
        if not self._closed:
            function(*arguments)

    def _changed(self) -> None:
        for event in self._waiting:
            event.set()

    def _tidy_now_and_then(self) -> None:
        if self._loop.time() >= self._tidy_at:
            self._tidy_at = self._loop.time() + TIDY_SECONDS
            self._background.start("removing old runs", self._threads.write(self._retention.tidy))
