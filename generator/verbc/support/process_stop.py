"""Stopping all processes of a run: asked first, forced after a grace, and seen to be gone."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Literal

from .process_handle import Handle, OutOfReachError, hold, wait_for_one
from .processes import Process
from .run_processes import Found, Marker, find
from .run_record import Identity

# How long killed processes may take to disappear, and how often others may turn up meanwhile.
FORCE_SECONDS: Final = 10.0
FORCE_ROUNDS: Final = 50
# How many processes one attempt has a file open for; the others are held only while they are signalled.
MOST_HELD: Final = 32
# Where a process of the run was seen, and was gone before it could be held, another may be there unseen that it has
# started. That all are gone is believed after so many looks that saw none.
CALM_LOOKS: Final = 8
# So often processes that cannot be held are looked for again before force is used, which waits for nobody.
ASKING_LOOKS: Final = 5


@dataclass(frozen=True, slots=True)
class Stopped:
    """How an attempt to stop a run ended."""

    gone: bool  # nothing of the run is left; this was looked at
    signal: (
        Literal["SIGTERM", "SIGKILL"] | None
    )  # the strongest one that was sent; None: there was nobody to send it to
    problem: Literal["permission_denied", "still_alive", "group_ownership_unproven", "scan_incomplete"] | None = None


def stop(
    leader: Identity | None, pgid: int | None, marker: Marker, grace: float, owner: Identity | None = None
) -> Stopped:
    """Stop a run, and wait until it is gone. Blocks for `grace` and FORCE_SECONDS at most.

    While the leader lives, only its group is asked, so that it can end in order what it has started. Once it is gone,
    whatever is left is asked, each process once; what is left after the grace is killed, again and again until nothing
    is left. Neither this process is ever signalled, nor a group that it is in.
    """
    stopping = _Stopping(lambda proven: find(leader, pgid, marker, owner, group_proven=proven))
    try:
        return stopping.run(grace)
    finally:
        stopping.close()


class _Stopping:
    """One attempt."""

    def __init__(self, look: Callable[[bool], Found]) -> None:
        self._look_for = look
        self._handles: dict[Identity, Handle] = {}
        self._leading: Handle | None = None  # kept when the leader has ended: it still reaches the group
        self._asked: set[Identity] = set()
        self._denied: set[Identity] = set()
        self._proven = False
        self._fleeting = False  # the last look saw somebody, and could hold nobody
        self._calm = CALM_LOOKS  # how many looks have seen nobody since somebody got away
        self._signal: Literal["SIGTERM", "SIGKILL"] | None = None

    def run(self, grace: float) -> Stopped:
        found = self._ask(self._look(), time.monotonic() + grace)
        found = self._force(found, time.monotonic() + FORCE_SECONDS)
        return self._verdict(found)

    def close(self) -> None:
        for handle in self._handles.values():
            handle.close()

    def _look(self) -> Found:
        """Look for the run, take hold of what is alive, and let go of what is not."""
        found = self._look_for(self._proven)
        # The proof lasts: numbers do not go round within one attempt.
        self._proven |= found.group_proven
        seen = sorted(found.live, key=lambda process: process != found.leader)  # the leader is never one too many
        held = {process.identity for process in seen if self._is_held(process.identity)}
        self._fleeting = bool(seen) and not held
        self._calm = 0 if len(held) < len(seen) else self._calm + (not seen)
        found = replace(found, live=tuple(process for process in found.live if process.identity in held))
        if found.leader is not None:
            self._leading = self._handles.get(found.leader.identity)
        for identity in self._handles.keys() - {process.identity for process in found.live}:
            if self._handles[identity] is not self._leading:
                self._handles.pop(identity).close()
        return found

    def _is_held(self, identity: Identity) -> bool:
        """Take hold of a process; false: it is gone. One that is out of reach is alive all the same."""
        if identity not in self._handles:
            try:
                handle = hold(identity, kept=len(self._handles) < MOST_HELD)
            except OutOfReachError:
                return True
            if handle is None:
                return False
            self._handles[identity] = handle
        return True

    def _ask(self, found: Found, end: float) -> Found:
        again = ASKING_LOOKS
        while (left := end - time.monotonic()) > 0:
            within = self._within_reach(found)
            if self._fleeting and again:
                again -= 1
                found = self._look()
                continue
            if not within:
                break
            first = [process for process in within if process == found.leader]
            if first and self._ask_group(first[0], within):
                self._wait(first, left)
            else:
                self._ask_each(within)
                self._wait(within, left)
            found = self._look()
        return found

    def _ask_group(self, leader: Process, within: Iterable[Process]) -> bool:
        """Ask the leader and its group, once; false: the leader cannot be asked."""
        if leader.identity not in self._asked:
            if self._signal_group(signal.SIGTERM):
                self._asked.update(process.identity for process in within if process.group == leader.pid)
            else:
                self._ask_each([leader])
        return leader.identity not in self._denied

    def _ask_each(self, processes: Iterable[Process]) -> None:
        for process in processes:
            if process.identity not in self._asked:
                self._asked.add(process.identity)
                self._send(process, signal.SIGTERM)

    def _force(self, found: Found, end: float) -> Found:
        for _ in range(FORCE_ROUNDS):
            found = self._found_again(found, end)
            within = self._to_kill(found)
            if not within or time.monotonic() >= end:
                break
            # The group in one go: nothing in it gets to start something new meanwhile.
            self._signal_group(signal.SIGKILL)
            for process in within:
                self._send(process, signal.SIGKILL)
            self._wait_for_all(within, end)
            found = self._look()
        return found

    def _found_again(self, found: Found, end: float) -> Found:
        """Look until there is somebody to kill, or nobody any more: what starts while one looks can be missed once."""
        if not self._to_kill(found):
            found = self._look()
        while not self._to_kill(found) and not found.live and not self._is_calm and time.monotonic() < end:
            found = self._look()
        return found

    @property
    def _is_calm(self) -> bool:
        return self._calm >= CALM_LOOKS

    def _to_kill(self, found: Found) -> list[Process]:
        return [process for process in self._within_reach(found) if process.identity not in self._denied]

    def _signal_group(self, number: signal.Signals) -> bool:
        if self._leading is None or not self._proven:
            return False
        with suppress(PermissionError):
            if self._leading.signal_group(number):
                self._note(number)
                return True
        return False

    def _send(self, process: Process, number: signal.Signals) -> None:
        try:
            if self._handles[process.identity].signal(number):
                self._note(number)
        except PermissionError:
            self._denied.add(process.identity)

    def _note(self, number: signal.Signals) -> None:
        self._signal = "SIGKILL" if number == signal.SIGKILL else self._signal or "SIGTERM"

    def _wait(self, processes: Iterable[Process], seconds: float) -> set[Identity]:
        return wait_for_one([self._handles[process.identity] for process in processes], seconds)

    def _wait_for_all(self, processes: Iterable[Process], end: float) -> None:
        waited_for = {process.identity: process for process in processes if process.identity not in self._denied}
        while waited_for and (left := end - time.monotonic()) > 0:
            ended = self._wait(waited_for.values(), left)
            if not ended:
                return
            for identity in ended:
                del waited_for[identity]

    def _within_reach(self, found: Found) -> list[Process]:
        return [process for process in found.live if process.identity in self._handles]

    def _verdict(self, found: Found) -> Stopped:
        if not found.live and not self._is_calm:
            return Stopped(False, self._signal, "still_alive")
        if found.live:
            left = {process.identity for process in found.live}
            return Stopped(False, self._signal, "permission_denied" if left <= self._denied else "still_alive")
        if found.unproven:
            return Stopped(False, self._signal, "group_ownership_unproven")
        if not found.complete:
            return Stopped(False, self._signal, "scan_incomplete")
        return Stopped(True, self._signal)
