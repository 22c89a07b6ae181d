"""Processes that a program forks, before it has opened anything, and what it says of them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable


def forked(work: Callable[[], object]) -> int:
    """The id of a process that does `work` and ends; with the exit code 1 where that fails."""
    child = os.fork()
    if child != 0:
        return child
    try:
        work()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def joined(child: int) -> int:
    """The exit code of a process once it has ended; minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def tell(what: object) -> None:
    """Print a JSON value on a line of its own."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()
