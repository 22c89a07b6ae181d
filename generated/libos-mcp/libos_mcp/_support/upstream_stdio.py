"""An upstream that is a program: messages are lines on its input and output, bounded before anybody reads them."""

from __future__ import annotations

import asyncio
import signal
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from .child import Child
from .manifest_transport import Stdio
from .upstream_errors import ErrorType, UpstreamError
from .upstream_messages import most_in_message, most_in_operation
from .upstream_process import end, input_of, program_of, start

if TYPE_CHECKING:
    from .manifest import Manifest

# How long output is waited for after the program has ended.
DRAIN_SECONDS = 0.5
_STDOUT, _STDERR = 1, 2


async def open_stdio(manifest: Manifest, variables: Mapping[str, str], contacted: Callable[[], None]) -> StdioChannel:
    """Start the program of a manifest; `contacted` is called right before. Raises NotStartedError."""
    program = program_of(cast("Stdio", manifest.transport), variables)
    contacted()
    channel = StdioChannel(manifest.max_response_bytes)
    await start(program, channel)
    return channel


class StdioChannel(Child):
    """The pipes of a program. What it writes to stderr is counted, and looked at by nobody."""

    resolving = False

    def __init__(self, response_bytes: int) -> None:
        super().__init__()
        self._most_in_frame = most_in_message(response_bytes)
        self._most_printed = most_in_operation(response_bytes)
        self._printed = {_STDOUT: 0, _STDERR: 0}
        self._frames: deque[bytes] = deque()
        self._started = bytearray()  # a line without its end
        self._waiting: asyncio.Future[None] | None = None
        self._problem: ErrorType | None = None
        self._draining: asyncio.TimerHandle | None = None

    @property
    def usable(self) -> bool:
        return self._problem is None

    @property
    def received(self) -> int:
        return self._printed[_STDOUT]

    def begin(self, received: int = 0) -> None:
        waiting = len(self._started) + sum(map(len, self._frames))
        self._printed = {_STDOUT: received + waiting, _STDERR: 0}

    async def agree(self, revision: str) -> None:
        """Lines are the same in all revisions."""

    async def ask(self, frame: bytes, sent: Callable[[], None] | None) -> None:
        if self._problem is not None:
            raise UpstreamError(self._problem)
        if sent is not None:
            sent()
        input_of(self).write(frame + b"\n")

    async def tell(self, frame: bytes) -> None:
        await self.ask(frame, None)

    async def next(self) -> bytes:
        while True:
            if self._problem is not None and (self._problem != "McpConnectionLost" or not self._frames):
                raise UpstreamError(self._problem)
            if self._frames:
                return self._frames.popleft()
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting

    async def close(self) -> None:
        """End the program; one that went beyond its bounds has no grace."""
        misbehaves = self._problem not in (None, "McpConnectionLost")
        await end(self, patient=not misbehaves)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._printed[fd] += len(data)
        if self._problem is not None:
            return
        if fd == _STDOUT:
            self._read(data)
        if self._printed[fd] > self._most_printed:
            self._fail("McpStdioStderrTooLarge" if fd == _STDERR else "McpStdioStdoutTooLarge")

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == _STDOUT:
            self._fail("McpConnectionLost")

    def process_exited(self) -> None:
        super().process_exited()
        self._draining = asyncio.get_running_loop().call_later(DRAIN_SECONDS, self._gone)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._draining is not None:
            self._draining.cancel()
        self._gone()

    def _gone(self) -> None:
        """The program has ended, and nothing more of it is waited for; nobody else of its group is of any use."""
        self._fail("McpConnectionLost")
        self.signal_group(signal.SIGKILL)

    def _read(self, data: bytes) -> None:
        *ended, rest = data.split(b"\n")
        for line in ended:
            if self._started:
                line = bytes(self._started) + line
                self._started.clear()
            if len(line) > self._most_in_frame:
                return self._fail("McpStdioFrameTooLarge")
            if line.strip():
                self._frames.append(line)
        self._started += rest
        if len(self._started) > self._most_in_frame:
            return self._fail("McpStdioFrameTooLarge")
        if ended:
            self._wake()
        return None

    def _fail(self, problem: ErrorType) -> None:
        if self._problem is None:
            self._problem = problem
            self._started.clear()
            if problem != "McpConnectionLost":
                # Nobody reads what comes now, and it may be endless.
                self._frames.clear()
                if not self.exited.done():
                    self.signal_group(signal.SIGKILL)
            self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
