"""Programs that run once and end: how long they take, and how much memory."""

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PATIENCE_SECONDS: Final = 60.0


class FailedError(Exception):
    """Raised when a program fails or takes too long. The message has the end of what it said."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run took: seconds of wall clock, seconds of processor time, and bytes of memory at its peak."""

    seconds: float
    processor: float
    memory: float


def run(argv: Sequence[str | Path], environment: Mapping[str, str], folder: Path) -> Cost:
    """Run a program in `folder` to its end. Raises FailedError.

    The kernel counts what the child was before it became the program, so the peak is never below that of this process:
    keep this process small.
    """
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        process = subprocess.Popen(
            argv, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        watchdog = threading.Timer(_PATIENCE_SECONDS, process.kill)
        watchdog.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            watchdog.cancel()
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            said = output.read()[-2000:].decode(errors="replace")
            raise FailedError(f"{' '.join(map(str, argv))} ended with {process.returncode}:\n{said}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)
