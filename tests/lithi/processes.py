"""The worker processes of a server, seen through /proc: who they are, and how to have just one of them answer."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from .wire import PATIENCE


def children(pid: int) -> list[int]:
    """The processes that this one has started and that still run."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def state(pid: int) -> str:
    """One letter, such as S for a process that waits and T for one that was stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@contextmanager
def only(worker: int, workers: Sequence[int]) -> Iterator[None]:
    """While it lasts, only this worker runs; what comes in is taken by it alone."""
    others = [pid for pid in workers if pid != worker]
    try:
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        give_up = time.monotonic() + PATIENCE
        while any(state(pid) != "T" for pid in others):
            assert time.monotonic() < give_up, "a worker does not stop"
        yield
    finally:
        for pid in others:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@contextmanager
def watched(*pids: int) -> Iterator[list[int]]:
    """Descriptors of processes, for `wait_for_end`; made while they run, so that no other one is meant."""
    descriptors = [os.pidfd_open(pid) for pid in pids]
    try:
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def wait_for_end(descriptors: Sequence[int]) -> None:
    """Return when all of these processes have ended."""
    for descriptor in descriptors:
        ready, _, _ = select.select([descriptor], [], [], PATIENCE)
        assert ready, "a process does not end"
