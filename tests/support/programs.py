"""What tests of child processes stand on: the stub command line, its life as events, and a clock that can be moved."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import pytest

STUB = (sys.executable, "-I", str(Path(__file__).parent.parent / "data" / "stub_cli.py"))
FOR_EVER = 1_000_000.0  # seconds

Result = TypeVar("Result")


def finish(work: Coroutine[Any, Any, Result]) -> Result:
    """Run `work` in a loop of its own and see that it leaves no task and no file open; a hang fails after a minute."""

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise AssertionError("the test hangs")

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    try:
        return asyncio.run(_clean(work))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


async def _clean(work: Coroutine[Any, Any, Result]) -> Result:
    before = open_files()
    result = await work
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert open_files() == before
    return result


def open_files() -> set[str]:
    """The file descriptors of this process, without the one that the look itself takes."""
    return {name for name in os.listdir("/dev/fd") if os.path.exists(f"/dev/fd/{name}")}


def move_clock(seconds: float) -> None:
    """Let the running loop believe that `seconds` have passed."""
    loop = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + seconds  # type: ignore[method-assign]


def note_starts(started: list[int]) -> None:
    """Have the id of every process that the running loop starts from here on put into `started`."""
    loop = asyncio.get_running_loop()
    start = loop.subprocess_exec

    async def noted(*args: Any, **options: Any) -> Any:
        transport, protocol = await start(*args, **options)
        started.append(transport.get_pid())
        return transport, protocol

    loop.subprocess_exec = noted  # type: ignore[method-assign]


def assert_reaped(pid: int) -> None:
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


class Life:
    """One run of a stub: alive from its first word on, ended when no process of it is left."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self.pid = 0

    async def begin(self) -> None:
        self.pid = int(await self._reader.readline())

    async def end(self) -> None:
        assert await self._reader.read() == b""


class Watch:
    """Where stubs report that they live: `async with Watch() as watch: … port=watch.port … await watch.life()`."""

    def __init__(self) -> None:
        self._lives: asyncio.Queue[Life] = asyncio.Queue()
        self._writers: list[asyncio.StreamWriter] = []
        self.port = 0

    async def __aenter__(self) -> Watch:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()
        for writer in self._writers:
            writer.close()
            await writer.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        self._lives.put_nowait(Life(reader))

    async def life(self) -> Life:
        """The next stub that reports."""
        life = await self._lives.get()
        await life.begin()
        return life
