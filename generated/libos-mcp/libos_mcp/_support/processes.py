"""The processes of this machine, as the system tells of them: Linux in /proc, others through the program `ps`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from .run_record import Identity


class UnreadableError(Exception):
    """The system does not let us look."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process at the moment of the look."""

    identity: Identity
    parent: int
    group: int
    session: int  # 0 where the system does not tell
    user: int
    born: int  # when it started, in units of the system; only ever compared
    live: bool  # false: it has ended, and waits until its parent takes note

    @property
    def pid(self) -> int:
        return self.identity.pid


class Processes(Protocol):
    """A way to look at processes."""

    @property
    def reads_environments(self) -> bool:
        """Whether `mark` can find anything."""

    def process(self, pid: int) -> Process | None:
        """The process with this id, one that waits for its parent included. Raises UnreadableError."""

    def everyone(self) -> list[Process]:
        """All processes. Raises UnreadableError."""

    def mark(self, process: Process, variable: str) -> str | None:
        """The value of a variable in the environment that the process was started with. Raises UnreadableError."""

    def same(self, one: Identity, other: Identity) -> bool:
        """Whether both are the same process; false if one of them does not say when it started."""

    def born(self, identity: Identity) -> int | None:
        """The least `born` of what started together with that process or later; None: the system was started since."""


@cache
def system() -> Processes:
    """How processes are looked at on this machine."""
    from .linux_processes import LinuxProcesses
    from .ps_processes import PsProcesses

    linux = LinuxProcesses()
    return linux if linux.usable() else PsProcesses()


def exists(pid: int) -> bool:
    """Whether there is a process with this id, whoever it belongs to."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
