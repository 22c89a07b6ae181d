"""What a run is, told from its record and from what was seen of its process: pure, and the same for every reader."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from .run_record import End, Outcome, Precision, RunRecord, SpawnState

if TYPE_CHECKING:
    from .process_identity import Sighting

# After this long without word of it, nobody waits for a start any more.
UNRESOLVED_AFTER: Final = timedelta(minutes=10)

_OBSERVER: Final = "server"
_NOBODY_KNOWS: Final = "Nobody knows what it did, so do not start it again unasked."


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader is told of a run."""

    status: str
    terminal: bool
    outcome: Outcome | None = None
    reason_code: str | None = None
    reason_detail: str | None = None
    spawn_state: SpawnState | None = None
    possibly_orphaned: bool = False
    terminal_source: str | None = None
    alive: bool | None = None
    pid_identity: str | None = None


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The end of a run as it goes on record, and the report that comes too late to be it."""

    end: End
    finished_at: datetime
    precision: Precision
    late_report: Mapping[str, Any] | None = None


def reading(record: RunRecord | None, sighting: Sighting | None = None) -> Reading:
    """What is told of a run; the `sighting` of its leader is needed for one without an end only."""
    if record is None:
        return Reading("unknown", terminal=False)
    if record.end is not None:
        return _ended(record, record.end)
    identity = "not_recorded" if record.leader is None else None
    alive, identity = (None, identity) if sighting is None else (sighting.alive, sighting.identity)
    if record.spawn_state == "started" and alive is False:
        return Reading(
            "exited", False, spawn_state="started", possibly_orphaned=True, alive=False, pid_identity=identity
        )
    return Reading("running", False, spawn_state=record.spawn_state, alive=alive, pid_identity=identity)


def is_unresolved(record: RunRecord, now: datetime) -> bool:
    """Whether the start of a run was recorded long ago, and nobody knows whether it happened."""
    return record.end is None and record.spawn_state == "preparing" and now - record.submitted_at > UNRESOLVED_AFTER


def conclusion(record: RunRecord, reported: End | None, reports: bool, now: datetime) -> Conclusion:
    """How a run ended whose leader is gone, all that is on record included.

    `reported` is what the hooks tell of it; `reports` whether there are hooks that could have told.
    """
    if record.stop_reason is None:
        return _dated(record, reported or _unreported(record, reports, now), now)
    if reported is not None and _stands(reported, record.stop_reason):
        return _dated(record, reported, now)
    late = None if reported is None else as_report(reported)
    return replace(_dated(record, _stopped(record.stop_reason, now), now), late_report=late)


def never_started(record: RunRecord, now: datetime) -> Conclusion:
    """The end of a run whose server ended between its record and its start."""
    detail = "The server ended before it could start it. Nothing of it ever ran."
    return _dated(record, End("failed", "failed", "spawn_failure", "spawn_failed", detail), now)


def start_failed(sentence: str, now: datetime) -> End:
    """The end of a run that the system would not start."""
    return End("failed", "failed", "spawn_failure", "spawn_failed", sentence, at=now)


def as_report(end: End) -> dict[str, Any]:
    """A report as it is kept when it comes too late."""
    told = {name: getattr(end, name) for name in ("status", "outcome", "source", "reason_code", "reason_detail")}
    return {**told, "at": None if end.at is None else timestamp(end.at)}


def timestamp(moment: datetime) -> str:
    """A moment as text, in UTC."""
    utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return f"{utc.isoformat(timespec='milliseconds').removesuffix('+00:00')}Z"


def _ended(record: RunRecord, end: End) -> Reading:
    return Reading(
        status=end.status,
        terminal=True,
        outcome=end.outcome,
        reason_code=end.reason_code,
        reason_detail=end.reason_detail,
        spawn_state=record.spawn_state,
        terminal_source=end.source,
        alive=False,  # an end is put on record only when the leader is gone
        pid_identity="not_recorded" if record.leader is None else "gone",
    )


def _dated(record: RunRecord, end: End, now: datetime) -> Conclusion:
    seen = end.at or record.exited_at
    # The clock may have been set back meanwhile; nothing ends before it begins.
    finished_at = max(seen or now, record.started_at or record.submitted_at)
    return Conclusion(end, finished_at, "upper_bound" if seen is None else "observed")


def _stands(reported: End, stop_reason: str) -> bool:
    """Whether what a run says of its end holds although it was told to stop. That it was cancelled is no news then."""
    return reported.outcome == "succeeded" or (reported.outcome == "cancelled" and stop_reason == "kill")


def _stopped(reason: str, now: datetime) -> End:
    if reason == "log_limit":
        detail, finding = "It printed more than a run may.", "Its log had grown past the limit."
        evidence = _evidence("log", finding, now)
        return End("failed", "failed", "log_limit", "log_limit_exceeded", detail, evidence)
    evidence = _evidence("process", "It was told to stop, and then it was gone.", now)
    return End("killed", "cancelled", "kill", "killed", "It was stopped on request.", evidence)


def _unreported(record: RunRecord, reports: bool, now: datetime) -> End:
    """What is left to say when nobody says how it ended."""
    code, seen_at = record.exit_code, record.exited_at or now
    if code is None:
        finding = "No process with its id and its start time was left."
        return _indeterminate("It is gone, and how it ended was seen by nobody.", _evidence("process", finding, now))
    ending = _ending(code)
    evidence = _evidence("exit_code", str(code), seen_at)
    if code != 0:
        reason = "exited_nonzero_without_report" if reports else "exited_nonzero"
        detail = f"It {ending} and reported nothing. {_NOBODY_KNOWS}" if reports else f"It {ending}."
        return End("exited", "failed", "exit_code", reason, detail, evidence)
    if reports:
        return _indeterminate(f"It {ending}, but reported nothing.", evidence)
    return End("exited", "succeeded", "exit_code", evidence=evidence)


def _indeterminate(sentence: str, evidence: Mapping[str, Any]) -> End:
    detail = f"{sentence} {_NOBODY_KNOWS}"
    return End("exited", "indeterminate", "process_gone", "process_gone_without_outcome", detail, evidence)


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _evidence(kind: str, finding: str, observed_at: datetime) -> dict[str, Any]:
    return {"kind": kind, "finding": finding, "observed_at": timestamp(observed_at), "observer": _OBSERVER}
