"""Child processes: started without a shell, in a group of their own, bounded in time and output, and always reaped."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .child import Child, settle
from .foreign_text import TEXT_CHARACTERS, escaped

# How long the pipes stay open, for what is still in them, after the program itself has ended.
DRAIN_SECONDS = 0.5
# Room for the last characters of stderr, four bytes each, and for a first one that is cut.
_STDERR_BYTES = 4 * TEXT_CHARACTERS + 4

_STDERR = 2


class ProcessError(Exception):
    """Why a program gave no answer; the subclasses say what happened."""


class NotLaunchableError(ProcessError):
    """The program is missing, not executable, or the system has no room for it; the text is the system's reason."""


class ArgumentsTooLongError(ProcessError):
    """The arguments and the environment are more than the system passes to a program."""


class DeadlineError(ProcessError):
    """The program had not ended at the deadline, and its group was killed."""


class OutputLimitError(ProcessError):
    """The program printed more than it may, and its group was killed."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended: its exit code, or minus the signal that ended it, and what it printed."""

    code: int
    stdout: bytes
    stderr: str  # the last characters, control and bidi characters escaped


async def run(argv: Sequence[str], env: Mapping[str, str], *, deadline: float, output: int) -> Finished:
    """Run a program to its end. `deadline` is a time of the running loop, `output` the most bytes of stdout.

    Its group is killed, and the program reaped, before a fault or a cancellation leaves. A descendant that lives on
    after a regular end is left alone, and is not waited for. Raises the subclasses of ProcessError.
    """
    loop = asyncio.get_running_loop()
    if loop.time() >= deadline:
        raise DeadlineError
    child = _Child(output)
    cancelled = await _start(argv, env, child)
    try:
        if cancelled:
            raise asyncio.CancelledError
        return await _outcome(child, deadline)
    except BaseException:
        child.signal_group(signal.SIGKILL)
        raise
    finally:
        await child.release()


class _Child(Child):
    """Collects what a program prints, within bounds."""

    def __init__(self, output: int) -> None:
        super().__init__()
        self.flooded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._room = output

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == _STDERR:
            self.stderr += data
            del self.stderr[:-_STDERR_BYTES]
        elif len(self.stdout) + len(data) <= self._room:
            self.stdout += data
        else:
            self._room = -1  # nothing more is kept
            settle(self.flooded)


async def _start(argv: Sequence[str], env: Mapping[str, str], child: _Child) -> bool:
    tokens = [token.encode() for token in argv]  # UTF-8, whatever the locale of the server
    try:
        return await child.start(tokens, stdin=subprocess.DEVNULL, env=env)
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise ArgumentsTooLongError from None
        raise NotLaunchableError(os.strerror(error.errno) if error.errno else "unknown reason") from None


async def _outcome(child: _Child, deadline: float) -> Finished:
    left = deadline - asyncio.get_running_loop().time()
    await asyncio.wait((child.exited, child.flooded), timeout=left, return_when=asyncio.FIRST_COMPLETED)
    if child.exited.done():
        await asyncio.wait((child.closed, child.flooded), timeout=DRAIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    if child.flooded.done():
        raise OutputLimitError
    code = child.transport.get_returncode()
    if code is None or not child.exited.done():
        raise DeadlineError
    return Finished(code, bytes(child.stdout), _tail(child.stderr))


def _tail(stderr: bytes | bytearray) -> str:
    return escaped(stderr.decode(errors="replace")[-TEXT_CHARACTERS:])
