"""A hold on one process: signals and waits that reach it and never another one that gets its number later."""

from __future__ import annotations

import errno
import os
import select
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from .processes import UnreadableError, system
from .run_record import Identity

# Where the system cannot tell that a process ends, it is looked for again after this time.
LOOK_SECONDS: Final = 0.1
_WHOLE_GROUP: Final = 4  # PIDFD_SIGNAL_PROCESS_GROUP, from Linux 6.9 on


class OutOfReachError(Exception):
    """The process may not be signalled."""


class Handle:
    """Made by `hold`; to be closed."""

    def __init__(self, identity: Identity, pidfd: int | None) -> None:
        self.identity = identity
        self.pidfd = pidfd  # None: it is not to be kept, or not to be had; then one looks again right before a signal

    def signal(self, number: int) -> bool:
        """Send a signal; false: the process is gone. Raises PermissionError."""
        with suppress(ProcessLookupError, UnreadableError):
            if self._signal_by_pidfd(number, 0):
                return True
            with _for_a_moment(self) as held:
                if _is_there(self.identity):
                    if not held._signal_by_pidfd(number, 0):
                        os.kill(self.identity.pid, number)
                    return True
        return False

    def signal_group(self, number: int) -> bool:
        """Send a signal to the group that this process leads, in one go; false: nothing was sent.

        Reaches the group also after its leader has ended, where the system can do that. Raises PermissionError.
        """
        group = self.identity.pid
        if group <= 1 or group == os.getpgrp():
            return False
        with suppress(ProcessLookupError, UnreadableError):
            if self._signal_by_pidfd(number, _WHOLE_GROUP):
                return True
            if _is_there(self.identity):
                os.killpg(group, number)
                return True
        return False

    def close(self) -> None:
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None

    def _signal_by_pidfd(self, number: int, flags: int) -> bool:
        if self.pidfd is None:
            return False
        try:
            signal.pidfd_send_signal(self.pidfd, number, None, flags)
        except OSError as error:
            if error.errno in (errno.ENOSYS, errno.EINVAL):  # an older system
                return False
            raise
        return True


def hold(identity: Identity, *, kept: bool = True) -> Handle | None:
    """A hold on a process that was seen before; None: it is gone. One that is not kept has no file open between signals.

    Raises OutOfReachError for what may not be signalled: ourselves, the first process, and what cannot be recognised.
    """
    if identity.pid <= 1 or identity.pid == os.getpid():
        raise OutOfReachError(identity.pid)
    handle = Handle(identity, _pidfd(identity.pid))
    try:
        # It was there before the hold, and is there now: so it is the one that is held.
        if _is_there(identity):
            if not kept:
                handle.close()
            return handle
    except UnreadableError:
        handle.close()
        raise OutOfReachError(identity.pid) from None
    handle.close()
    return None


def wait_for_one(handles: Sequence[Handle], seconds: float) -> set[Identity]:
    """Wait until one of the processes has ended, at most `seconds`; those that are known to have ended.

    Where the system does not tell of all, that is after LOOK_SECONDS at most: then they are to be looked for again.
    """
    held = {handle.pidfd: handle.identity for handle in handles if handle.pidfd is not None}
    if len(held) < len(handles):
        seconds = min(seconds, LOOK_SECONDS)
    if not held:
        threading.Event().wait(seconds)
        return set()
    poll = select.poll()
    for pidfd in held:
        poll.register(pidfd, select.POLLIN)
    return {held[pidfd] for pidfd, _ in poll.poll(max(0.0, seconds) * 1000)}


@contextmanager
def _for_a_moment(handle: Handle) -> Iterator[Handle]:
    """A hold as long as one signal takes, whatever the system gives for it."""
    held = Handle(handle.identity, _pidfd(handle.identity.pid))
    try:
        yield held
    finally:
        held.close()


def _pidfd(pid: int) -> int | None:
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _is_there(identity: Identity) -> bool:
    process = system().process(identity.pid)
    return process is not None and process.live and system().same(process.identity, identity)
