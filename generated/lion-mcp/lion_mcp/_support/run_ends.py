"""The blocking half of putting an end on record: what has to be certain before, and what is written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from .processes import Process
from .run_classification import Conclusion, as_report, conclusion, never_started
from .run_look import RunLook, Seen
from .run_processes import find
from .run_record import End, RunRecord
from .run_store import RunStore


@dataclass(frozen=True, slots=True)
class Finding:
    """What a closer look at a run without an end shows."""

    record: RunRecord | None = None  # its record as it stands for good, if an end can be put on record now
    never_ran: bool = False  # nothing of it was started
    settled: bool = False  # there is nothing left to put on record


class RunEnds:
    """Blocks, so it belongs into a thread."""

    def __init__(self, runs: RunStore, look: RunLook, reports: bool) -> None:
        self._runs = runs
        self._look = look
        self._reports = reports

    def find(self, run_id: str) -> Finding:
        """Whether the leader of a run is certainly gone. A start that its server did not get to record is taken up."""
        found = self._look.of(run_id)
        if not isinstance(found, Seen) or found.record.end is not None:
            return Finding(settled=True)
        if not found.due:
            return Finding()
        # Read once more: what its owner knows is on record before the process, or the owner itself, is gone.
        record = self._runs.get(run_id)
        if record is None or record.end is not None:
            return Finding(settled=True)
        if record.spawn_state == "preparing":
            # The log is made right before the process, and after everything else.
            return Finding(record, never_ran=not record.log.exists()) if self._is_lost(record) else Finding()
        return Finding(record if found.record.spawn_state == "started" else None)

    def put_on_record(self, finding: Finding, reported: End | None) -> bool:
        """Write down how a run ended. True where this is the end that stays."""
        record, now = finding.record, datetime.now(UTC)
        if record is None:
            return False
        if finding.never_ran:
            ended = never_started(record, now)
            return self._runs.spawn_failed(record.run_id, ended.end, ended.finished_at, ended.precision)
        return self._end(record.run_id, conclusion(record, reported, self._reports, now))

    def report_late(self, run_id: str, reported: End) -> None:
        """Keep a report that came when the end was on record."""
        self._runs.late_report(run_id, as_report(reported))

    def _end(self, run_id: str, ended: Conclusion) -> bool:
        won = self._runs.end(run_id, ended.end, ended.finished_at, ended.precision)
        if won and ended.late_report is not None:
            self._runs.late_report(run_id, ended.late_report)
        return won

    def _is_lost(self, record: RunRecord) -> bool:
        """Whether nothing lives of a start that nobody finishes; what lives becomes the leader on record."""
        found = find(None, None, self._look.marker(record.run_id), record.owner)
        if found.live:
            leader = _leading(found.live)
            self._runs.started(record.run_id, leader.identity, leader.group, datetime.now(UTC))
            return False
        return found.complete


def _leading(processes: tuple[Process, ...]) -> Process:
    """The one that leads the others: the first that has a session, or at least a group, of its own."""
    own = [process for process in processes if process.pid == (process.session or process.group)]
    return min(own or processes, key=lambda process: process.born)
