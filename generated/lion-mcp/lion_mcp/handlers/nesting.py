"""Whether this server runs inside an agent that li started: such an agent may start no others, and li would refuse."""

import os
from collections.abc import Iterator
from pathlib import Path

from .bounded_reading import UnreadableError, content_of

VARIABLE = "LIONAGI_AGENT_DEPTH"
MOST_ANCESTORS = 64
LARGEST_ENVIRONMENT = 1 << 21  # bytes


def inside_agent() -> bool:
    """Whether this process, or one that it descends from, was started as an agent.

    Ancestors are looked at where the system has /proc; elsewhere only this process is, and li itself looks further.
    """
    if _depth(os.environ.get(VARIABLE)) > 0:
        return True
    return any(_depth(_variable_of(pid)) > 0 for pid in _ancestors(os.getppid()))


def _depth(text: str | None) -> int:
    try:
        return int(text or "0")
    except ValueError:
        return 0


def _ancestors(pid: int) -> Iterator[int]:
    for _ in range(MOST_ANCESTORS):
        if pid <= 1:
            return
        yield pid
        pid = _parent(pid)


def _parent(pid: int) -> int:
    """0 when it cannot be told."""
    try:
        # The name of the program stands in brackets and may hold anything; after it come the state and the parent.
        status = content_of(Path(f"/proc/{pid}/stat"), 4096).rpartition(b")")[2].split()
        return int(status[1])
    except (UnreadableError, IndexError, ValueError):
        return 0


def _variable_of(pid: int) -> str | None:
    try:
        variables = content_of(Path(f"/proc/{pid}/environ"), LARGEST_ENVIRONMENT).split(b"\0")
    except UnreadableError:
        return None
    start = f"{VARIABLE}=".encode()
    found = next((variable for variable in variables if variable.startswith(start)), None)
    return None if found is None else found.removeprefix(start).decode(errors="replace")
