"""Processes as the program `ps` tells of them, where there is no /proc: by the second in which they started."""

from __future__ import annotations

import os
import subprocess
import time
from calendar import timegm
from typing import Final

from .processes import Process, UnreadableError, exists
from .run_record import Identity

_COLUMNS: Final = ("pid", "ppid", "pgid", "uid", "stat", "lstart")
_ASK: Final = ("ps", "-A", *(word for column in _COLUMNS for word in ("-o", f"{column}=")))
_TIMEOUT_SECONDS: Final = 10.0
# Some systems work the start out anew each time, from a clock that is set now and then.
_TOLERANCE_SECONDS: Final = 1


class PsProcesses:
    """Asks `ps`, all at once. Environments it cannot see."""

    reads_environments: Final = False

    def process(self, pid: int) -> Process | None:
        if not exists(pid):
            return None
        for process in self.everyone():
            if process.pid == pid:
                return process
        if exists(pid):
            raise UnreadableError(pid)
        return None

    def everyone(self) -> list[Process]:
        try:
            done = subprocess.run(
                _ASK,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env={**os.environ, "LC_ALL": "C", "TZ": "UTC0"},
                timeout=_TIMEOUT_SECONDS,
                check=True,
            )
            return [_parsed(line) for line in done.stdout.decode(errors="replace").splitlines() if line.strip()]
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            raise UnreadableError from error

    def mark(self, process: Process, variable: str) -> str | None:
        return None

    def same(self, one: Identity, other: Identity) -> bool:
        starts = _seconds(one), _seconds(other)
        if one.pid != other.pid or None in starts:
            return False
        return abs((starts[0] or 0) - (starts[1] or 0)) <= _TOLERANCE_SECONDS

    def born(self, identity: Identity) -> int | None:
        seconds = _seconds(identity)
        return None if seconds is None else seconds - _TOLERANCE_SECONDS


def _parsed(line: str) -> Process:
    pid, parent, group, user, state, *moment = line.split()
    started = timegm(time.strptime(" ".join(moment), "%a %b %d %H:%M:%S %Y"))
    identity = Identity(int(pid), str(started))
    return Process(identity, int(parent), int(group), 0, int(user), started, not state.startswith("Z"))


def _seconds(identity: Identity) -> int | None:
    return int(identity.start) if identity.start.isdecimal() else None
