"""Whether a process on record is still that one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import Literal

from .processes import Process, Processes, UnreadableError, system
from .run_record import Identity


@dataclass(frozen=True, slots=True)
class Sighting:
    """What was seen of the leader of a run."""

    alive: bool | None  # None: it cannot be told
    identity: Literal["confirmed", "unconfirmed", "recycled", "gone", "not_recorded", "unreadable"]


def own_identity() -> Identity:
    """The identity of this process."""
    return _own_identity(os.getpid())


def identity_of(pid: int) -> Identity | None:
    """The identity of a process, also of a child that has ended and is not reaped yet; None: there is no such process.

    Where the system does not tell when it started, `start` is empty, and it can never be confirmed.
    """
    try:
        process = system().process(pid)
    except UnreadableError:
        return Identity(pid, "")
    return None if process is None else process.identity


def sight(leader: Identity | None, owner: Identity) -> Sighting:
    """Look whether the leader of a run lives. `owner` is the server that started it.

    A leader that has ended counts as alive until its owner, if that lives, has reaped it: only then is its exit code
    on record. One that waits for any other parent is gone.
    """
    if leader is None:
        return Sighting(None, "not_recorded")
    try:
        return _sighting(system(), leader, owner)
    except UnreadableError:
        return Sighting(None, "unreadable")


@cache
def _own_identity(pid: int) -> Identity:
    return identity_of(pid) or Identity(pid, "")


def _sighting(processes: Processes, leader: Identity, owner: Identity) -> Sighting:
    process = processes.process(leader.pid)
    if process is None:
        return Sighting(False, "gone")
    if not leader.start:
        return Sighting(None, "unconfirmed")
    if not processes.same(process.identity, leader):
        return Sighting(False, "recycled")
    if process.live or _is_held(processes, process, owner):
        return Sighting(True, "confirmed")
    return Sighting(False, "gone")


def _is_held(processes: Processes, ended: Process, owner: Identity) -> bool:
    """Whether a process that has ended waits for the owner to take note."""
    if ended.parent != owner.pid:
        return False
    parent = processes.process(owner.pid)
    return parent is not None and processes.same(parent.identity, owner)
