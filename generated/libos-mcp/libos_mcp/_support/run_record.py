"""What is on record of one run in the background: how it was started, what was seen of it, and how it ended."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

RUN_ID: Final = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{6}")

# The most characters of the status and the source of an end, of its reason code, and of a label.
LONGEST_WORD: Final = 64
LONGEST_CODE: Final = 100
LONGEST_LABEL: Final = 200

Outcome: TypeAlias = Literal["succeeded", "failed", "cancelled", "indeterminate"]
SpawnState: TypeAlias = Literal["preparing", "started", "failed"]
Precision: TypeAlias = Literal["observed", "upper_bound"]


@dataclass(frozen=True, slots=True)
class Identity:
    """A process that no other one can be taken for, though its id may come again."""

    pid: int
    start: str  # when it started, in the system's own terms; only ever compared


@dataclass(frozen=True, slots=True)
class End:
    """How a run ended, and what told of it."""

    status: str  # the command line's own word, or one of ours: exited, killed, failed
    outcome: Outcome
    source: str  # report, exit_code, kill, log_limit, spawn_failure or process_gone, or a word of the hooks
    reason_code: str | None = None
    reason_detail: str | None = None
    evidence: Mapping[str, Any] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)  # joins the details of the run
    at: datetime | None = None  # the moment itself, where it is known; UTC


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run as it stands in the store. Times are UTC."""

    run_id: str
    verb: str
    label: str | None
    command: tuple[str, ...]
    cwd: str
    folder: Path  # what belongs to this run alone: its log, and the files it was given
    owner: Identity  # the server that starts it
    submitted_at: datetime
    spawn_state: SpawnState = "preparing"
    leader: Identity | None = None
    pgid: int | None = None
    started_at: datetime | None = None
    stop_requested_at: datetime | None = None
    stop_reason: Literal["kill", "log_limit"] | None = None
    exit_code: int | None = None  # minus the number of a signal
    exited_at: datetime | None = None
    end: End | None = None
    finished_at: datetime | None = None
    precision: Precision | None = None
    told_at: datetime | None = None  # when the hooks had been told of its end
    late_report: Mapping[str, Any] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        """Where its output goes."""
        return self.folder / "console.log"


def new_run_id(now: datetime | None = None) -> str:
    """An id that sorts by time, to some 15 microseconds; whether it is free only the store can say."""
    moment = now or datetime.now(UTC)
    return f"{moment:%Y%m%dT%H%M%S}-{moment.microsecond * 0x10000 // 1_000_000:04x}{secrets.token_hex(1)}"
