"""The blocking half of a start: on record before it happens, and on record right after, whatever comes between."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from .exit_watch import ExitWatch
from .launch import Launch, StartError, start
from .process_identity import identity_of
from .run_classification import start_failed
from .run_look import STARTING
from .run_record import Identity, RunRecord
from .run_rows import UnreadableError
from .run_store import Key, RunStore
from .store import StoreError


@dataclass(frozen=True, slots=True)
class Order:
    """A run that is to be started: what will be on record of it, and how it starts. The environment is never kept."""

    record: RunRecord
    launch: Launch
    program: Sequence[str]
    environment: Mapping[str, str] = field(repr=False)
    key: Key | None = None


class RunStart:
    """Blocks, so it belongs into a thread."""

    def __init__(self, runs: RunStore, exits: ExitWatch) -> None:
        self._runs = runs
        self._exits = exits

    def start(self, order: Order) -> RunRecord:
        """Start a run, or give the one that its key stands for.

        Raises StartError when it cannot be started, and what `reserve` raises when it is not on record. Nothing of it
        runs then.
        """
        run_id = order.record.run_id
        STARTING.add(run_id)
        try:
            standing = self._runs.reserve(order.record, order.key)
            return standing if standing.run_id != run_id else self._started(order)
        finally:
            STARTING.discard(run_id)

    def _started(self, order: Order) -> RunRecord:
        record, now = order.record, datetime.now(UTC)
        try:
            child = start(order.launch, order.program, order.environment, record.cwd)
        except StartError as error:
            with suppress(StoreError):  # then it is settled later, as a start of which nothing is known
                self._runs.spawn_failed(record.run_id, start_failed(str(error), now), now, "observed")
            raise
        leader = identity_of(child.pid) or Identity(child.pid, "")
        now = datetime.now(UTC)
        try:
            self._runs.started(record.run_id, leader, child.pid, now)
            self._exits.watch(record.run_id, child)
        except StoreError as error:
            _end(child)
            raise StartError(f"It was started, and stopped at once: {error}") from None
        except BaseException:
            _end(child)
            raise
        return self._on_record(replace(record, spawn_state="started", leader=leader, pgid=child.pid, started_at=now))

    def _on_record(self, record: RunRecord) -> RunRecord:
        """The run as it stands: it may have been told to stop meanwhile."""
        with suppress(StoreError, UnreadableError):
            return self._runs.get(record.run_id) or record
        return record


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a child that nobody will ever look after."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
