"""Work under a deadline: what it gives and raises, and that nothing it does can hold up whoever waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import anyio
import pytest

from verbc.support import bounded_work
from verbc.support.bounded_work import EscapeError, within
from verbc.support.refusal import Refusal

from .programs import finish, move_clock


def later(seconds: float = 30) -> float:
    return asyncio.get_running_loop().time() + seconds


async def waiting() -> None:
    await asyncio.Event().wait()


def test_work_gives_its_result_and_its_end_is_told() -> None:
    ended: list[str] = []

    async def work() -> int:
        await asyncio.sleep(0)
        return 7

    async def scenario() -> int:
        result = await within(later(), work(), lambda: ended.append("ended"))
        await asyncio.sleep(0)
        return result

    assert finish(scenario()) == 7
    assert ended == ["ended"]


@pytest.mark.parametrize("error", [ValueError, TimeoutError, asyncio.CancelledError, BaseException])
def test_what_work_raises_is_raised(error: type[BaseException]) -> None:
    async def work() -> None:
        raise error

    async def scenario() -> None:
        with pytest.raises(error):
            await within(later(), work())

    finish(scenario())


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_order_to_stop_the_process_reaches_only_whoever_waits(error: type[BaseException]) -> None:
    async def work() -> None:
        raise error

    async def scenario() -> None:
        with pytest.raises(EscapeError) as escape:
            await within(later(), work())
        assert type(escape.value.__cause__) is error

    finish(scenario())


def test_at_the_deadline_work_is_cancelled_and_may_put_its_things_in_order() -> None:
    ended: list[str] = []

    async def work() -> None:
        move_clock(31)
        try:
            await waiting()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            ended.append("in order")
            raise

    async def scenario() -> None:
        with pytest.raises(TimeoutError):
            await within(later(), work())

    finish(scenario())
    assert ended == ["in order"]


def test_a_refusal_on_the_way_out_says_more_than_the_deadline() -> None:
    async def work() -> None:
        move_clock(31)
        try:
            await waiting()
        except asyncio.CancelledError:
            raise Refusal("conflict", "It was half done.") from None

    async def scenario() -> None:
        with pytest.raises(Refusal, match="half done"):
            await within(later(), work())

    finish(scenario())


class Stubborn:
    """Work that no cancellation ends."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.enough = asyncio.Event()
        self.ended: list[str] = []
        self.over = asyncio.Event()

    async def work(self) -> None:
        self.started.set()
        while not self.enough.is_set():
            with suppress(asyncio.CancelledError):
                await self.enough.wait()

    def end(self) -> None:
        self.ended.append("ended")
        self.over.set()


def with_stubborn(scenario: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_work, "GRACE_SECONDS", 0)

    async def whole() -> None:
        stubborn = Stubborn()
        await scenario(stubborn)
        assert stubborn.ended == []  # its place is not free before it has ended
        stubborn.enough.set()
        await stubborn.over.wait()
        await asyncio.sleep(0)

    work: Coroutine[Any, Any, None] = whole()
    finish(work)


def test_work_that_swallows_its_cancellation_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(stubborn: Stubborn) -> None:
        with pytest.raises(TimeoutError):
            await within(later(0), stubborn.work(), stubborn.end)

    with_stubborn(scenario, monkeypatch)


def test_whoever_waits_for_stubborn_work_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(stubborn: Stubborn) -> None:
        task = asyncio.create_task(within(later(), stubborn.work(), stubborn.end))
        await stubborn.started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with_stubborn(scenario, monkeypatch)


def test_a_cancellation_that_comes_again_and_again_reaches_the_work_once() -> None:
    """Such as that of a scope of anyio, where the SDK runs what it is asked for."""
    started = asyncio.Event()
    noted: list[str] = []

    async def work() -> None:
        started.set()
        try:
            await waiting()
        finally:
            for _ in range(100):
                await asyncio.sleep(0)
            noted.append("in order")

    async def bounded() -> None:
        try:
            await within(later(), work())
        finally:
            noted.append("over")

    async def scenario() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(bounded)
            await started.wait()
            group.cancel_scope.cancel()

    finish(scenario())
    assert noted == ["in order", "over"]


def test_work_that_somebody_else_cancels_before_it_begins_holds_up_nobody() -> None:
    ended: list[str] = []

    async def scenario() -> None:
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(within(later(), never, lambda: ended.append("ended")))
        await asyncio.sleep(0)
        (work,) = asyncio.all_tasks() - {task, asyncio.current_task()}
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    finish(scenario())
    assert ended == ["ended"]


def test_a_deadline_that_is_over_leaves_no_timer_behind() -> None:
    async def work() -> int:
        return 7

    async def scenario() -> None:
        for seconds in (-1, 30):
            with suppress(TimeoutError):
                await within(later(seconds), work())
        timers = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
        assert all(timer.cancelled() for timer in timers)

    finish(scenario())
