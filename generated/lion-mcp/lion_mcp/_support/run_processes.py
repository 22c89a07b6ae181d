"""Which processes belong to a run, wherever they have gone: by their marker, their group and their descent."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from .processes import Process, Processes, UnreadableError, system
from .run_record import Identity

Marker: TypeAlias = tuple[
    str, str
]  # a variable that is set for all that a run starts, and the value it has for this run


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of a run; only what is alive."""

    live: tuple[Process, ...] = ()
    leader: Process | None = None  # the one of these that leads the run
    complete: bool = True  # false: not every process that may belong to it could be looked at
    group_proven: bool = False  # the group with the number on record is this run's
    unproven: tuple[Process, ...] = ()  # in a group with the number on record, and no way to tell whose that is now


def find(
    leader: Identity | None,
    pgid: int | None,
    marker: Marker,
    owner: Identity | None = None,
    *,
    group_proven: bool = False,
) -> Found:
    """Look for the live processes of a run: the leader, what bears the marker, what is in the leader's group or session
    if that is provably this run's, and the children of all of these. What bears the marker of another run is left out.

    The group is proven by a leader that is still there, by a marked process in it, or by `group_proven`: whoever says
    so has seen the proof a moment ago. A process whose environment may not be read can be this run's unseen if it is of
    our own user and started after the run (or its owner, while no leader is on record), unless it lives in the session
    of a process that is not this run's, since none can enter a session from outside. Such a one makes the search
    incomplete. Processes of other users are this run's only by group or descent. Where environments cannot be read at
    all, the search is as complete as it can be when the leader is known.
    """
    processes = system()
    try:
        everyone = processes.everyone()
    except UnreadableError:
        return Found(complete=False)
    earliest = _earliest(processes, leader or owner)
    if earliest is None:
        return Found()
    return _Search(processes, everyone, earliest, marker).found(leader, pgid, group_proven)


def _earliest(processes: Processes, first: Identity | None) -> int | None:
    """What started before this is not the run's; None: nothing can be, for the system was started since."""
    return processes.born(first) if first is not None and first.start else 0


class _Search:
    """One look at all processes, for those of one run."""

    def __init__(self, processes: Processes, everyone: Iterable[Process], earliest: int, marker: Marker) -> None:
        self._processes = processes
        self._all = {process.pid: process for process in everyone}
        # The first process is no run's, whoever may read its environment.
        self._young = [
            process for process in self._all.values() if process.live and process.born >= earliest and process.pid > 1
        ]
        self._unreadable: set[int] = set()
        self._marked: set[int] = set()
        self._foreign: set[int] = set()  # of another run
        # Those that started last may be gone soonest.
        for process in reversed(self._young):
            self._sort(process, *marker)

    def found(self, leader: Identity | None, pgid: int | None, group_proven: bool) -> Found:
        first = self._leading(leader)
        grouped, proven = self._grouped(first, leader, pgid, group_proven)
        pids = self._marked | ({first.pid} if first else set())
        if proven:
            pids.update(process.pid for process in grouped)
        self._add_children(pids)
        return Found(
            live=tuple(process for process in self._young if process.pid in pids),
            leader=first if first and first.live else None,
            complete=not self._may_miss(pids) and (self._processes.reads_environments or leader is not None),
            group_proven=proven,
            unproven=() if proven else tuple(process for process in grouped if process.pid not in pids),
        )

    def _sort(self, process: Process, variable: str, value: str) -> None:
        try:
            mark = self._processes.mark(process, variable)
        except UnreadableError:
            self._unreadable.add(process.pid)
            return
        if mark == value:
            self._marked.add(process.pid)
        elif mark is not None:
            self._foreign.add(process.pid)

    def _leading(self, leader: Identity | None) -> Process | None:
        """The leader, if it is still there; also one that has ended, for its number is not free before it is reaped."""
        process = self._all.get(leader.pid) if leader else None
        return process if process and leader and self._processes.same(process.identity, leader) else None

    def _grouped(
        self, first: Process | None, leader: Identity | None, pgid: int | None, proven: bool
    ) -> tuple[list[Process], bool]:
        """What is in a group or session with the number on record, and whether that is the run's."""
        # A group that the leader does not lead is whoever's; and ours is never a run's.
        if leader is None or pgid != leader.pid or pgid in (os.getpgrp(), os.getsid(0)):
            return [], False
        # A number is not given to another process while a group or session has it: if one has, that is another group.
        if first is None and pgid in self._all:
            return [], False
        inside = [
            process
            for process in self._young
            if pgid in (process.group, process.session) and process.pid not in self._foreign
        ]
        return inside, proven or first is not None or any(process.pid in self._marked for process in inside)

    def _add_children(self, pids: set[int]) -> None:
        while True:
            children = {process.pid for process in self._young if self._is_child(process, pids)}
            if children <= pids:
                return
            pids |= children

    def _is_child(self, process: Process, pids: set[int]) -> bool:
        # One that is older than its parent had another parent, whose number came again.
        return (
            process.parent in pids
            and process.pid not in self._foreign
            and process.born >= self._all[process.parent].born
        )

    def _may_miss(self, pids: set[int]) -> bool:
        user = os.geteuid()
        return any(
            process.user == user and process.pid in self._unreadable and not self._is_in_foreign_session(process, pids)
            for process in self._young
            if process.pid not in pids
        )

    def _is_in_foreign_session(self, process: Process, pids: set[int]) -> bool:
        first = self._all.get(process.session)
        return first is not None and first.live and first.pid not in pids and first.pid not in self._unreadable
