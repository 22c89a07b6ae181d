"""The places that calls take while they run: as many at one time as the verbs of a pool may have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from .bounded_work import within
from .call import Call
from .quoting import quoted
from .refusal import Refusal
from .registry import Registry

T = TypeVar("T")


class Slots:
    """The places of all pools of a server."""

    def __init__(self, registry: Registry) -> None:
        self._pools = {
            limit.pool: asyncio.Semaphore(limit.concurrency)
            for limit in (verb.limits for verb in registry.verbs)
            if limit.concurrency is not None
        }

    async def run(self, call: Call, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` gives, which begins once there is a place for it, and is cut short at the call's deadline.

        Raises Refusal `busy` when no place became free, `unavailable` at the deadline, and whatever the work raises.
        """
        if call.verb.limits.concurrency is None:
            return await in_time(call, work())
        slots = self._pools[call.verb.limits.pool]
        await take_place(slots, call.last_start, call.verb.name)
        # The place is free when the work has really ended, which may be after its call was answered.
        return await in_time(call, work(), slots.release)


async def in_time(call: Call, work: Awaitable[T], when_ended: Callable[[], None] | None = None) -> T:
    """What `work` gives. Raises Refusal `unavailable` at the call's deadline; then `work` is cancelled."""
    try:
        return await within(call.deadline, work, when_ended)
    except TimeoutError:
        if asyncio.get_running_loop().time() < call.deadline:
            raise
        sentence = f"{quoted(call.verb.name)} did not end within {call.verb.limits.patience}."
        raise Refusal("unavailable", sentence) from None


async def take_place(places: asyncio.Semaphore, deadline: float, name: str) -> None:
    """Wait for a place for what is called `name`. Raises Refusal `busy` when none became free until the deadline."""
    if not places.locked():
        await places.acquire()  # at once; a timer would cost more than the wait
        return
    try:
        async with asyncio.timeout_at(deadline):
            await places.acquire()
    except TimeoutError:
        raise Refusal("busy", f"No place became free for {quoted(name)}; try again later.") from None
