"""Lines over a pair of descriptors, on the event loop itself: no threads, no waiting, nothing kept beyond a limit."""

from __future__ import annotations

import asyncio
import os
import queue
import select
import stat
import threading
from contextlib import suppress

_CHUNK = 65536
_HANG_UP = select.POLLHUP | getattr(select, "POLLRDHUP", 0)


class LineTooLongError(Exception):
    """A line was longer than it may be; it was read to its end and dropped."""


def is_pollable(descriptor: int) -> bool:
    """Whether the event loop can wait for a descriptor: pipes and sockets, but not files and terminals."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def has_hung_up(descriptor: int) -> bool:
    """Whether the other side of a pipe or socket sends nothing any more, though there may be unread bytes."""
    poll = select.poll()
    poll.register(descriptor, getattr(select, "POLLRDHUP", 0))
    return any(events & _HANG_UP for _, events in poll.poll(0))


class Lines:
    """Lines as they come in, each of at most `limit` bytes."""

    def __init__(self, descriptor: int, limit: int) -> None:
        self._source = _PolledSource(descriptor) if is_pollable(descriptor) else _ThreadedSource(descriptor)
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0
        self._dropping = False
        self._ended = False

    async def next(self) -> bytes | None:
        """The next line without its end, or None after the last one. Raises LineTooLongError."""
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end >= 0:
                return self._taken(end, end + 1)
            if self._ended:
                return self._taken(len(self._buffer), len(self._buffer)) if self._buffer or self._dropping else None
            self._searched = len(self._buffer)
            if self._searched > self._limit:
                self._dropping = True
                self._buffer.clear()
                self._searched = 0
            chunk = await self._source.read()
            self._ended = not chunk
            self._buffer += chunk

    def close(self) -> None:
        """End the lines, and whoever waits for one; those that are not taken yet are dropped."""
        self._ended = True
        self._dropping = False
        self._buffer.clear()
        self._searched = 0
        self._source.close()

    def _taken(self, end: int, following: int) -> bytes:
        line = bytes(self._buffer[:end])
        del self._buffer[:following]
        self._searched = 0
        too_long = self._dropping or len(line) > self._limit
        self._dropping = False
        if too_long:
            raise LineTooLongError
        return line


class _PolledSource:
    """Reads from a pipe or socket."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._waiting: asyncio.Future[None] | None = None
        self._closed = False

    async def read(self) -> bytes:
        """Some bytes, or none at the end."""
        with suppress(BlockingIOError):
            chunk = self._read()
            await asyncio.sleep(0)  # a flood of input must not keep everything else from running
            return chunk
        while not self._closed:
            await self._readable()
            with suppress(BlockingIOError):
                return self._read()
        return b""

    def close(self) -> None:
        self._closed = True
        if self._waiting is not None:
            _settle(self._waiting)

    def _read(self) -> bytes:
        try:
            return b"" if self._closed else os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            raise
        except OSError:
            return b""

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        loop.add_reader(self._descriptor, _settle, self._waiting)
        try:
            await self._waiting
        finally:
            loop.remove_reader(self._descriptor)
            self._waiting = None


class _ThreadedSource:
    """Reads from a file or terminal, which the event loop cannot wait for, in a thread that ends with the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._wanted: queue.SimpleQueue[tuple[asyncio.AbstractEventLoop, asyncio.Future[bytes]]] = queue.SimpleQueue()
        self._waiting: asyncio.Future[bytes] | None = None
        threading.Thread(target=self._work, daemon=True).start()

    async def read(self) -> bytes:
        """Some bytes, or none at the end."""
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        self._wanted.put((loop, self._waiting))
        return await self._waiting

    def close(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(b"")

    def _work(self) -> None:
        while True:
            loop, future = self._wanted.get()
            try:
                chunk = os.read(self._descriptor, _CHUNK)
            except OSError:
                chunk = b""
            with suppress(RuntimeError):  # the loop is gone, and with it whoever wanted this
                loop.call_soon_threadsafe(_deliver, future, chunk)


class Output:
    """Writes lines whole and in order. A line is taken when there is little left to send of earlier ones."""

    _PLENTY = 65536

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._polled = is_pollable(descriptor)
        if self._polled:
            os.set_blocking(descriptor, False)
        self._buffer = bytearray()
        self._turn = asyncio.Lock()
        self._moved: asyncio.Future[None] | None = None
        self.broken = False

    async def write(self, line: bytes) -> None:
        """Take a line, end included. A cancellation never tears one. Raises BrokenPipeError when nobody reads any more."""
        async with self._turn:
            await self._until_left(self._PLENTY)
            self._buffer += line
            self._send()
        if self.broken:
            raise BrokenPipeError

    async def drain(self, seconds: float) -> None:
        """Send what is left, for at most `seconds`."""
        with suppress(TimeoutError, BrokenPipeError):
            async with asyncio.timeout(seconds):
                await self._until_left(0)

    async def _until_left(self, most: int) -> None:
        while len(self._buffer) > most and not self.broken:
            self._moved = asyncio.get_running_loop().create_future()
            await self._moved
        if self.broken:
            raise BrokenPipeError

    def _send(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._buffer:
                sent = os.write(self._descriptor, memoryview(self._buffer)[:_CHUNK])
                del self._buffer[:sent]
        except BlockingIOError:
            loop.add_writer(self._descriptor, self._send)
        except OSError:
            self.broken = True
            self._buffer.clear()
        if self._polled and not self._buffer:
            loop.remove_writer(self._descriptor)
        if self._moved is not None:
            _settle(self._moved)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _deliver(future: asyncio.Future[bytes], chunk: bytes) -> None:
    if not future.done():
        future.set_result(chunk)
