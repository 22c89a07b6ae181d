"""Lines over pipes: whole, bounded, in order."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from verbc.support.pipes import Lines, LineTooLongError, Output, has_hung_up

from .programs import finish


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for descriptor in (reading, writing):
        try:
            os.close(descriptor)
        except OSError:
            continue  # the test closed it


async def read_all(lines: Lines) -> list[bytes | str]:
    found: list[bytes | str] = []
    while True:
        try:
            line = await lines.next()
        except LineTooLongError:
            found.append("too long")
            continue
        if line is None:
            return found
        found.append(line)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"", []),
        (b"one\ntwo\n", [b"one", b"two"]),
        (b"one\n\ntwo", [b"one", b"", b"two"]),
        (b"12345678\n", [b"12345678"]),
        (b"123456789\n", ["too long"]),
        (b"x" * 50_000 + b"\nnext\n", ["too long", b"next"]),
        (b"x" * 50_000, ["too long"]),
        (b"a\n" + b"x" * 9 + b"\n" + b"y" * 9 + b"\nb\n", [b"a", "too long", "too long", b"b"]),
    ],
)
def test_lines_are_cut_and_bounded(pipe: tuple[int, int], sent: bytes, expected: list[bytes | str]) -> None:
    os.write(pipe[1], sent)
    os.close(pipe[1])

    async def scenario() -> list[bytes | str]:
        return await read_all(Lines(pipe[0], 8))

    assert finish(scenario()) == expected


def test_closing_ends_a_wait_and_drops_what_is_left(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"one\ntwo\n")

    async def scenario() -> None:
        lines = Lines(pipe[0], 8)
        assert await lines.next() == b"one"
        lines.close()
        assert await lines.next() is None
        lines = Lines(pipe[0], 8)
        waiting = asyncio.create_task(lines.next())
        await asyncio.sleep(0)
        lines.close()
        assert await waiting is None

    finish(scenario())


def test_a_cancelled_write_tears_no_line(pipe: tuple[int, int]) -> None:
    big = b"a" * 300_000 + b"\n"

    async def scenario() -> bytes:
        output = Output(pipe[1])
        await output.write(big)  # more than the pipe holds; the rest is kept
        waiting = asyncio.create_task(output.write(b"never taken\n"))
        await asyncio.sleep(0)
        waiting.cancel()
        last = asyncio.create_task(output.write(b"last\n"))
        received = b""
        os.set_blocking(pipe[0], False)
        while not received.endswith(b"last\n"):
            await asyncio.sleep(0)
            try:
                received += os.read(pipe[0], 65536)
            except BlockingIOError:
                continue
        await last
        return received

    assert finish(scenario()) == big + b"last\n"


def test_nobody_reading_is_an_error_for_every_writer(pipe: tuple[int, int]) -> None:
    async def scenario() -> None:
        output = Output(pipe[1])
        await output.write(b"a" * 300_000 + b"\n")
        waiting = asyncio.create_task(output.write(b"b\n"))
        await asyncio.sleep(0)
        os.close(pipe[0])
        for writing in (waiting, output.write(b"c\n")):
            with pytest.raises(BrokenPipeError):
                await writing
        await output.drain(1)

    asyncio.run(scenario())


def test_a_side_that_is_closed_has_hung_up(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"unread")
    assert not has_hung_up(pipe[0])
    os.close(pipe[1])
    assert has_hung_up(pipe[0])
