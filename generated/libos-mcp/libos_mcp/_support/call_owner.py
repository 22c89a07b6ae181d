"""Which process carries out a call, as the record names it, and whether it has ended since."""

from __future__ import annotations

import os

from .process_identity import own_identity
from .processes import UnreadableError, system
from .run_record import Identity


def own_name() -> str:
    """The name of this process: its id, and when it started."""
    identity = own_identity()
    return f"{identity.pid} {identity.start}"


def has_ended(owner: str | None) -> bool | None:
    """Whether the process with this name is gone; None where that cannot be told, as for one of another host."""
    named = _named(owner or "")
    if named is None or _boot(named) != _boot(own_identity()):
        return None
    if named.pid == os.getpid():
        return named != own_identity()
    try:
        process = system().process(named.pid)
    except UnreadableError:
        return None
    return process is None or not process.live or not system().same(process.identity, named)


def _named(owner: str) -> Identity | None:
    pid, _, start = owner.partition(" ")
    return Identity(int(pid), start) if start and pid.isascii() and pid.isdigit() else None


def _boot(identity: Identity) -> str:
    """What a start begins with: only processes that were started since the same boot can be compared."""
    return identity.start.rpartition(":")[0]
