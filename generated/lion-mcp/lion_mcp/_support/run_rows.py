"""A run as the columns of a table hold it, and back. What cannot be understood makes one run unreadable, not a list."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, get_args

from .moments import as_moment, as_number
from .run_record import (
    LONGEST_CODE,
    LONGEST_WORD,
    RUN_ID,
    End,
    Identity,
    Outcome,
    Precision,
    RunRecord,
    SpawnState,
)
from .strict_json import DEPTH, limited

_SPAWN_STATES: Final = frozenset(get_args(SpawnState))
_OUTCOMES: Final = frozenset(get_args(Outcome))
_PRECISIONS: Final = frozenset(get_args(Precision))
_STOP_REASONS: Final = frozenset({"kill", "log_limit"})
# ASCII, so that what is no valid Unicode, such as the name of a folder, goes into a database all the same.
_ENCODER: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"))

_LARGEST_PID: Final = 2**31 - 1
_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z")
# An answer has a few levels of its own around what is on record.
_DEPTH: Final = DEPTH - 16
_SURELY_SAYABLE: Final = 4000  # characters; no number of so few digits is too long


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError
    return number


def _refuse(_constant: str) -> None:
    raise ValueError


_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A run that is on record in a way that cannot be understood."""

    run_id: str


class UnreadableError(Exception):
    """The record of `run_id` cannot be understood."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"The record of the run {run_id} cannot be read.")
        self.run_id = run_id


def columns_of(record: RunRecord) -> dict[str, Any]:
    """All columns of a run. Raises TypeError or ValueError where details are no JSON."""
    return {
        "run_id": record.run_id,
        "verb": record.verb,
        "label": _storable(record.label),
        "command": as_json(record.command),
        "cwd": as_json(record.cwd),
        "owner_pid": record.owner.pid,
        "owner_start": record.owner.start,
        "submitted_at": as_number(record.submitted_at),
        "spawn_state": record.spawn_state,
        "leader_pid": record.leader.pid if record.leader else None,
        "leader_start": record.leader.start if record.leader else None,
        "pgid": record.pgid,
        "started_at": _number_of(record.started_at),
        "stop_requested_at": _number_of(record.stop_requested_at),
        "stop_reason": record.stop_reason,
        "exit_code": record.exit_code,
        "exited_at": _number_of(record.exited_at),
        **end_columns(record.end, record.finished_at, record.precision),
        "told_at": _number_of(record.told_at),
        "late_report": None if record.late_report is None else as_json(dict(record.late_report)),
        "details": as_json(dict(record.details)),
    }


def end_columns(end: End | None, finished_at: datetime | None, precision: Precision | None) -> dict[str, Any]:
    """The columns that say how a run ended; what its end adds to the details is not among them."""
    return {
        "status": _storable(end.status) if end else None,
        "outcome": end.outcome if end else None,
        "source": _storable(end.source) if end else None,
        "reason_code": _storable(end.reason_code) if end else None,
        "reason_detail": _storable(end.reason_detail) if end else None,
        "evidence": as_json(dict(end.evidence)) if end and end.evidence is not None else None,
        "finished_at": _number_of(finished_at),
        "precision": precision,
    }


def record_of(row: Mapping[str, Any], runs: Path) -> RunRecord:
    """The run of a row. Raises UnreadableError.

    The details of its end are among those of the run, and the moment of an end is known where `finished_at` is it.
    """
    try:
        return _record(row, runs)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise UnreadableError(row["run_id"]) from error


def as_json(value: Any) -> str:
    """Compact ASCII JSON with the keys in their order. Raises TypeError or ValueError for what is no JSON."""
    return _ENCODER.encode(value)


def object_of(text: Any) -> dict[str, Any]:
    """The object that a column holds as JSON. Raises TypeError or ValueError where it holds none that can be told."""
    value = _decoded(text)
    if not isinstance(value, dict):
        raise TypeError
    # Most of them are so plain that nothing in them has to be looked at.
    if len(text) > _SURELY_SAYABLE or "\\u" in text or text.count("{") + text.count("[") > _DEPTH:
        limited(value, _DEPTH)
    return value


def _record(row: Mapping[str, Any], runs: Path) -> RunRecord:
    if not RUN_ID.fullmatch(row["run_id"]):
        raise ValueError  # as the name of a folder it could lead anywhere
    return RunRecord(
        run_id=row["run_id"],
        verb=_text(row["verb"]),
        label=_text_or_none(row["label"]),
        command=_texts(_decoded(row["command"])),
        cwd=_text(_decoded(row["cwd"])),
        folder=runs / row["run_id"],
        owner=Identity(_pid(row["owner_pid"]), _text(row["owner_start"])),
        submitted_at=_moment(row["submitted_at"]),
        spawn_state=_one_of(_SPAWN_STATES, row["spawn_state"]),
        leader=_leader(row),
        pgid=None if row["pgid"] is None else _pid(row["pgid"]),
        started_at=_moment_or_none(row["started_at"]),
        stop_requested_at=_moment_or_none(row["stop_requested_at"]),
        stop_reason=None if row["stop_reason"] is None else _one_of(_STOP_REASONS, row["stop_reason"]),
        exit_code=_number_or_none(row["exit_code"]),
        exited_at=_moment_or_none(row["exited_at"]),
        end=None if row["finished_at"] is None else _end(row),
        finished_at=_moment_or_none(row["finished_at"]),
        precision=None if row["finished_at"] is None else _one_of(_PRECISIONS, row["precision"]),
        told_at=_moment_or_none(row["told_at"]),
        late_report=None if row["late_report"] is None else object_of(row["late_report"]),
        details=object_of(row["details"]),
    )


def _leader(row: Mapping[str, Any]) -> Identity | None:
    if row["leader_pid"] is None and row["leader_start"] is None:
        return None
    return Identity(_pid(row["leader_pid"]), _text(row["leader_start"]))


def _end(row: Mapping[str, Any]) -> End:
    return End(
        status=_word(row["status"], LONGEST_WORD),
        outcome=_one_of(_OUTCOMES, row["outcome"]),
        source=_word(row["source"], LONGEST_WORD),
        reason_code=None if row["reason_code"] is None else _word(row["reason_code"], LONGEST_CODE),
        reason_detail=_text_or_none(row["reason_detail"]),
        evidence=None if row["evidence"] is None else _evidence(object_of(row["evidence"])),
        at=_moment(row["finished_at"]) if row["precision"] == "observed" else None,
    )


def _evidence(told: dict[str, Any]) -> dict[str, Any]:
    """What was seen of an end. Raises KeyError, TypeError or ValueError where it does not say what it has to."""
    for name in ("kind", "finding", "observed_at"):
        _text(told[name])
    _text(told.get("observer", ""))
    if not _TIME.fullmatch(told["observed_at"]):
        raise ValueError
    datetime.fromisoformat(told["observed_at"])
    return told


def _decoded(text: Any) -> Any:
    # As it was encoded, nothing stands around it; not to look for that saves half of the time.
    value, end = _DECODER.raw_decode(_text(text))
    if end != len(text):
        raise ValueError
    return value


def _one_of(words: frozenset[str], value: Any) -> Any:
    if value not in words:
        raise ValueError
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    return value


def _word(value: Any, most: int) -> str:
    if not 0 < len(_text(value)) <= most:
        raise ValueError
    return _text(value)


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def _texts(value: Any) -> tuple[str, ...]:
    if type(value) is not list:
        raise TypeError
    return tuple(_text(item) for item in value)


def _number(value: Any) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def _pid(value: Any) -> int:
    if not 0 < _number(value) <= _LARGEST_PID:
        raise ValueError
    return _number(value)


def _number_or_none(value: Any) -> int | None:
    return None if value is None else _number(value)


def _moment(value: Any) -> datetime:
    return as_moment(_number(value))


def _moment_or_none(value: Any) -> datetime | None:
    return None if value is None else _moment(value)


def _number_of(moment: datetime | None) -> int | None:
    return None if moment is None else as_number(moment)


def _storable(text: str | None) -> str | None:
    """Text as any database takes it: what is no valid Unicode becomes a question mark, and so does NUL."""
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return text.replace("\0", "?").encode("utf-8", "replace").decode("utf-8")
