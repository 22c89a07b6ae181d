"""Work under a deadline that it cannot break: whoever swallows the cancellation is left behind, and harms nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

T = TypeVar("T")

# How long work that was cancelled may take to put its things in order.
GRACE_SECONDS = 1.0


class EscapeError(Exception):
    """Work raised what asyncio would take for an order to stop the whole process; the cause says what it was."""


async def within(deadline: float, work: Awaitable[T], when_ended: Callable[[], None] | None = None) -> T:
    """The result of `work`, or what it raises.

    `when_ended` is called once the work is really over, which may be later than this is.

    Raises:
        TimeoutError: the deadline, a time of the running loop, came first. The work was cancelled, and had its grace.
    """
    loop = asyncio.get_running_loop()
    enough = loop.create_future()
    task = loop.create_task(_contained(work, enough))
    task.add_done_callback(lambda ended: _settle(ended, enough, when_ended))
    timer = loop.call_at(deadline, _set, enough)
    try:
        await enough
    except asyncio.CancelledError:
        await _end(task)
        raise
    finally:
        timer.cancel()
    if task.done():
        return task.result()
    await _end(task)
    # What was refused on the way out says more than the deadline does.
    if task.done() and not task.cancelled() and (error := task.exception()) is not None:
        raise error
    raise TimeoutError


async def wait_through(future: asyncio.Future[Any], seconds: float | None = None, *, hasty: bool = False) -> bool:
    """Wait until `future` is done, at most `seconds`, also through cancellations unless `hasty`; true: there was one."""
    loop = asyncio.get_running_loop()
    end = None if seconds is None else loop.time() + seconds
    cancelled = False
    while not future.done() and (end is None or loop.time() < end) and not (cancelled and hasty):
        try:
            await asyncio.wait((future,), timeout=None if end is None else end - loop.time())
        except asyncio.CancelledError:
            cancelled = True
    return cancelled


async def _contained(work: Awaitable[T], enough: asyncio.Future[None]) -> T:
    try:
        return await work
    except (KeyboardInterrupt, SystemExit, GeneratorExit) as error:
        raise EscapeError from error
    finally:
        _set(enough)  # a turn of the loop before the task can tell that it is done


async def _end(task: asyncio.Task[Any]) -> None:
    task.cancel()
    # The SDK's own cancellations come again and again until their task is gone, and would cut the grace short.
    with anyio.CancelScope(shield=True):
        await asyncio.wait((task,), timeout=GRACE_SECONDS)


def _set(enough: asyncio.Future[None]) -> None:
    if not enough.done():
        enough.set_result(None)


def _settle(task: asyncio.Task[Any], enough: asyncio.Future[None], when_ended: Callable[[], None] | None) -> None:
    _set(enough)  # a task that somebody cancelled before it began has not done so
    if not task.cancelled():
        task.exception()  # looked at, so that nothing is said of it when it is forgotten
    if when_ended is not None:
        when_ended()
