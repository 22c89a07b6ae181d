"""Runs as callers get them: each operation has its own form, and all tell the same of the same run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from .foreign_text import TEXT_CHARACTERS, cut, escaped
from .log_tail import Tail
from .run_classification import Reading, reading, timestamp
from .run_look import Look, Seen
from .run_record import LONGEST_LABEL, RunRecord

_ERRORS: Final[Mapping[str, dict[str, str]]] = {
    "absent": {"kind": "not_found", "message": "There is no run with this id."},
    "unreadable": {"kind": "record_unusable", "message": "The record of this run cannot be read."},
}
_STARTED: Final = (
    "run_id",
    "label",
    "status",
    "terminal",
    "outcome",
    "reason_code",
    "spawn_state",
    "pid",
    "submitted_at",
    "details",
)
_OUTPUT: Final = ("run_id", "record_state", "status", "terminal", "outcome")


def row(run_id: str, found: Look) -> dict[str, Any]:
    """A run in a list, or why nothing can be said of it."""
    told = _told(run_id, found)
    error = _ERRORS.get(told["record_state"])
    return told if error is None else {**told, "error": error}


def started(found: Seen) -> dict[str, Any]:
    """A run as the call that started it gets it."""
    told = _told(found.record.run_id, found)
    return {**{name: told[name] for name in _STARTED}, "log": _path(found.record.log)}


def run(run_id: str, found: Look, log: Tail | None, details: Mapping[str, Any], *, detail: bool) -> dict[str, Any]:
    """A run in full; `details` are what is known beyond its record, `detail` adds how it was started."""
    told = _told(run_id, found)
    record = found.record if isinstance(found, Seen) else None
    evidence = record.end.evidence if record and record.end else None
    late_report = record.late_report if record else None
    whole = {
        **told,
        "known": record is not None,
        "terminal_evidence": None if evidence is None else dict(evidence),
        "late_report": None if late_report is None else dict(late_report),
        "pid_identity": _reading(found).pid_identity,
        "log_tail": None if log is None else log.text,
        "details": {**told["details"], **details},
    }
    return {**whole, "launch": _launch(record, log)} if detail and record else whole


def output(run_id: str, found: Look, log: Tail | None, details: Mapping[str, Any]) -> dict[str, Any]:
    """What a run printed."""
    told = _told(run_id, found)
    return {
        **{name: told[name] for name in _OUTPUT},
        "known": isinstance(found, Seen),
        "console": None if log is None else log.text,
        "log_bytes": None if log is None else log.log_bytes,
        "truncated": log is not None and log.truncated,
        "details": {**told["details"], **details},
    }


def _told(run_id: str, found: Look) -> dict[str, Any]:
    """What all forms but the shortest say."""
    record = found.record if isinstance(found, Seen) else None
    told = _reading(found)
    return {
        "run_id": run_id,
        "record_state": "ok" if record else "absent" if found is None else "unreadable",
        "verb": record and record.verb,
        "label": cut(record.label, LONGEST_LABEL) if record else None,
        "status": told.status,
        "terminal": told.terminal,
        "outcome": told.outcome,
        "reason_code": told.reason_code,
        "reason_detail": cut(told.reason_detail, TEXT_CHARACTERS),
        "spawn_state": told.spawn_state,
        "possibly_orphaned": told.possibly_orphaned,
        "terminal_source": told.terminal_source,
        "alive": told.alive,
        "pid": record.leader.pid if record and record.leader else None,
        "exit_code": record and record.exit_code,
        "submitted_at": _time(record.submitted_at) if record else None,
        "started_at": _time(record.started_at) if record else None,
        "finished_at": _time(record.finished_at) if record else None,
        "finished_at_precision": record and record.precision,
        "details": dict(record.details) if record else {},
    }


def _reading(found: Look) -> Reading:
    return found.reading if isinstance(found, Seen) else reading(None)


def _launch(record: RunRecord, log: Tail | None) -> dict[str, Any]:
    return {
        "command": [_unicode(token) for token in record.command],
        "cwd": _path(record.cwd),
        "log": _path(record.log),
        "log_bytes": log.log_bytes if log else 0,
        "pgid": record.pgid,
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else timestamp(moment)


def _unicode(text: str) -> str:
    """Text as JSON can hold it: a word may be made of bytes that are no text."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _path(path: str | Path) -> str:
    """A path as text; one may hold bytes that are none."""
    return escaped(str(path))
