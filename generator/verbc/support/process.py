"""Child processes: started without a shell, in a group of their own, bounded in time and output, and always reaped."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from .exit_codes import keep_exit_codes
from .foreign_text import TEXT_CHARACTERS, escaped

# How long the pipes stay open, for what is still in them, after the program itself has ended.
DRAIN_SECONDS = 0.5
# How long a killed program may take to disappear; one that the system cannot end must not hold its caller.
REAP_SECONDS = 5.0
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
    transport, cancelled = await _start(argv, env, child)
    try:
        if cancelled:
            raise asyncio.CancelledError
        return await _outcome(child, transport, deadline)
    except BaseException:
        _kill_group(transport.get_pid())
        raise
    finally:
        await _release(child, transport)


class _Child(asyncio.SubprocessProtocol):
    """Collects what a program prints, within bounds, and tells when it ends."""

    def __init__(self, output: int) -> None:
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = loop.create_future()  # the program is reaped
        self.closed: asyncio.Future[None] = loop.create_future()  # and its pipes are closed
        self.flooded: asyncio.Future[None] = loop.create_future()
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
            _settle(self.flooded)

    def process_exited(self) -> None:
        _settle(self.exited)

    def connection_lost(self, exc: Exception | None) -> None:
        _settle(self.closed)


async def _start(
    argv: Sequence[str], env: Mapping[str, str], child: _Child
) -> tuple[asyncio.SubprocessTransport, bool]:
    """Start the program; also when cancelled meanwhile, so that its group can be killed: then true stands beside it."""
    keep_exit_codes()
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            lambda: child,
            *(token.encode() for token in argv),  # UTF-8, whatever the locale of the server
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            start_new_session=True,
        )
    )
    cancelled = await _wait_through(starting)
    try:
        return starting.result()[0], cancelled
    except OSError as error:
        if cancelled:
            raise asyncio.CancelledError from None
        if error.errno == errno.E2BIG:
            raise ArgumentsTooLongError from None
        raise NotLaunchableError(os.strerror(error.errno) if error.errno else "unknown reason") from None


async def _outcome(child: _Child, transport: asyncio.SubprocessTransport, deadline: float) -> Finished:
    left = deadline - asyncio.get_running_loop().time()
    await asyncio.wait((child.exited, child.flooded), timeout=left, return_when=asyncio.FIRST_COMPLETED)
    if child.exited.done():
        await asyncio.wait((child.closed, child.flooded), timeout=DRAIN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    if child.flooded.done():
        raise OutputLimitError
    code = transport.get_returncode()
    if code is None or not child.exited.done():
        raise DeadlineError
    return Finished(code, bytes(child.stdout), _tail(child.stderr))


def _tail(stderr: bytes | bytearray) -> str:
    return escaped(stderr.decode(errors="replace")[-TEXT_CHARACTERS:])


def _kill_group(leader: int) -> None:
    # Not permitted: the program changed its user. Then all that can be done is to let go of it.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


async def _release(child: _Child, transport: asyncio.SubprocessTransport) -> None:
    """Wait for the end of the program, close its pipes; a cancellation that comes meanwhile is kept until then."""
    # The transport is closed after the end only: closing it earlier would reap the program behind the loop's back.
    cancelled = await _wait_through(child.exited, REAP_SECONDS)
    transport.close()
    cancelled |= await _wait_through(child.closed, REAP_SECONDS)
    if cancelled:
        raise asyncio.CancelledError


async def _wait_through(future: asyncio.Future[Any], seconds: float | None = None) -> bool:
    """Wait until `future` is done, also through cancellations, at most `seconds`; true if there was a cancellation."""
    loop = asyncio.get_running_loop()
    end = None if seconds is None else loop.time() + seconds
    cancelled = False
    while not future.done() and (end is None or loop.time() < end):
        try:
            await asyncio.wait((future,), timeout=None if end is None else end - loop.time())
        except asyncio.CancelledError:
            cancelled = True
    return cancelled


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
