"""A child process: started without a shell in a group of its own, signalled as a group, and always reaped."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final, cast

from .bounded_work import wait_through
from .exit_codes import keep_exit_codes

# How long a killed program may take to disappear; one that the system cannot end must not hold its caller.
REAP_SECONDS = 5.0
_WHOLE_GROUP: Final = 4  # PIDFD_SIGNAL_PROCESS_GROUP, from Linux 6.9 on


class Child(asyncio.SubprocessProtocol):
    """Tells when a program ends: `exited` is done once it is reaped, `closed` once its pipes are closed, too."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.transport: asyncio.SubprocessTransport
        self._pidfd: int | None = None
        self._released = False

    async def start(
        self,
        argv: Iterable[bytes],
        *,
        stdin: int,
        env: Mapping[str, str],
        executable: str | None = None,
        cwd: str | None = None,
    ) -> bool:
        """Start a program; also when cancelled meanwhile, so that its group can be killed: then this is true.

        Raises OSError and ValueError when it cannot be started, or CancelledError instead.
        """
        keep_exit_codes()
        starting = asyncio.ensure_future(
            asyncio.get_running_loop().subprocess_exec(
                lambda: self,
                *argv,
                executable=executable,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env=env,
                start_new_session=True,
            )
        )
        cancelled = await wait_through(starting)
        try:
            starting.result()
        except (OSError, ValueError):
            if cancelled:
                raise asyncio.CancelledError from None
            raise
        return cancelled

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the program and its group, also once the program has ended; not after `release`."""
        # Not permitted: the program changed its user. Then all that can be done is to let go of it.
        with suppress(ProcessLookupError, PermissionError):
            if not self._released and not self._signal_by_pidfd(number):
                os.killpg(self.transport.get_pid(), number)

    async def release(self, *, cancelled: bool = False) -> None:
        """Wait for the end of the program, close its pipes; a cancellation, also one before, is raised afterwards."""
        # The transport is closed after the end only: closing it earlier would reap the program behind the loop's back.
        cancelled |= await wait_through(self.exited, REAP_SECONDS)
        self.transport.close()
        cancelled |= await wait_through(self.closed, REAP_SECONDS)
        self._let_go()
        if cancelled:
            raise asyncio.CancelledError

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.SubprocessTransport", transport)
        # A number can be another group's once nobody is left in this one; what this stands for cannot.
        if hasattr(os, "pidfd_open"):
            with suppress(OSError):
                self._pidfd = os.pidfd_open(self.transport.get_pid())

    def process_exited(self) -> None:
        settle(self.exited)

    def connection_lost(self, exc: Exception | None) -> None:
        settle(self.closed)

    def _signal_by_pidfd(self, number: signal.Signals) -> bool:
        """Signal the group without its number; false: that cannot be done here. Raises OSError."""
        if self._pidfd is None:
            return False
        try:
            signal.pidfd_send_signal(self._pidfd, number, None, _WHOLE_GROUP)
        except OSError as error:
            if error.errno in (errno.ENOSYS, errno.EINVAL):  # an older system
                return False
            raise
        return True

    def _let_go(self) -> None:
        self._released = True
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None


def settle(future: asyncio.Future[None]) -> None:
    """See that `future` is done."""
    if not future.done():
        future.set_result(None)
