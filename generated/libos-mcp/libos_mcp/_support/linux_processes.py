"""Processes as Linux tells of them in /proc, exactly: by the boot and the tick of the clock in which they started."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Final

from .processes import Process, UnreadableError, exists
from .run_record import Identity

_KERNEL_THREAD: Final = 0x00200000  # PF_KTHREAD: it has no environment, and nobody starts one
_EXITING: Final = 0x00000004  # PF_EXITING: it has let go of its memory already, or is about to
# A program that is just being loaded has neither arguments nor an environment for a moment.
LOADING_LOOKS: Final = 20
LISTS: Final = 3
_LOADING_SECONDS: Final = 0.01


class LinuxProcesses:
    """Looks into /proc, or into what stands for it."""

    reads_environments: Final = True

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = root

    def usable(self) -> bool:
        """Whether there is what this needs."""
        with suppress(OSError):
            return sys.platform == "linux" and bool(self._boot) and (self._root / "self/stat").exists()
        return False

    def process(self, pid: int) -> Process | None:
        try:
            return self._seen(pid)[0]
        except (FileNotFoundError, ProcessLookupError):
            # Some systems hide processes instead of refusing a look at them.
            if exists(pid):
                raise UnreadableError(pid) from None
            return None
        except OSError as error:
            raise UnreadableError(pid) from error

    def everyone(self) -> list[Process]:
        """All processes but those of the kernel, and those of others that may not be looked at."""
        found: list[Process] = []
        pids: set[int] = set()
        # What starts while one looks is looked at as well, or a process that goes on as its own child is never seen.
        for _ in range(LISTS):
            new = self._pids() - pids
            found += [process for pid in sorted(new) if (process := self._listed(pid)) is not None]
            if not new:
                break
            pids |= new
        return found

    def mark(self, process: Process, variable: str) -> str | None:
        for _ in range(LOADING_LOOKS):
            variables, loaded = self._environment(process.pid)
            value = _value(variables, variable)
            if loaded and value is None:
                return None
            if not self._is_at_work(process):
                return None  # and what was read may be another one's
            if loaded:
                return value
            time.sleep(_LOADING_SECONDS)
        raise UnreadableError(process.pid)

    def same(self, one: Identity, other: Identity) -> bool:
        return one == other and bool(one.start)

    def born(self, identity: Identity) -> int | None:
        boot, _, ticks = identity.start.rpartition(" ")
        return int(ticks) if boot == self._boot and ticks.isdecimal() else None

    @cached_property
    def _boot(self) -> str:
        return (self._root / "sys/kernel/random/boot_id").read_text().strip()

    def _pids(self) -> set[int]:
        try:
            return {int(name) for name in os.listdir(self._root) if name.isdecimal()}
        except OSError as error:
            raise UnreadableError from error

    def _listed(self, pid: int) -> Process | None:
        try:
            process, flags = self._seen(pid)
        except OSError:
            return None
        return None if flags & _KERNEL_THREAD else process

    def _is_at_work(self, process: Process) -> bool:
        """Whether a process that was seen before is still there, and not about to end."""
        try:
            now, flags = self._seen(process.pid)
        except OSError:
            return False
        return now.identity == process.identity and now.live and not flags & _EXITING

    def _seen(self, pid: int) -> tuple[Process, int]:
        """A process and its flags."""
        folder = self._root / str(pid)
        user = folder.stat().st_uid
        stat = (folder / "stat").read_bytes()
        # The name of the program stands in brackets, and may itself hold brackets, spaces and line breaks.
        fields = stat[stat.rindex(b")") + 2 :].split()
        state, (parent, group, session), flags = fields[0], map(int, fields[1:4]), int(fields[6])
        threads, ticks = int(fields[17]), int(fields[19])
        # A process whose first thread has ended looks like a dead one, but is not while it has others.
        live = state not in (b"Z", b"X", b"x") or threads > 1
        identity = Identity(pid, f"{self._boot} {ticks}")
        return Process(identity, parent, group, session, user, ticks, live), flags

    def _environment(self, pid: int) -> tuple[bytes, bool]:
        """The environment of a process; false: it has no program at the moment, for it is being loaded, or has ended."""
        folder = self._root / str(pid)
        try:
            variables = (folder / "environ").read_bytes()
            return variables, bool(variables or (folder / "cmdline").read_bytes())
        except (FileNotFoundError, ProcessLookupError):
            return b"", False
        except OSError as error:
            raise UnreadableError(pid) from error


def _value(variables: bytes, variable: str) -> str | None:
    name = os.fsencode(variable) + b"="
    for entry in variables.split(b"\0"):
        if entry.startswith(name):
            return os.fsdecode(entry[len(name) :])
    return None
