"""The end of a run as li told it when it was there, which report.py wrote down."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime

from lion_mcp.interface import RunRecord

from . import report
from .bounded_reading import UnreadableError, object_of
from .foreign_words import word

LARGEST_REPORT = 1 << 17  # bytes
LONGEST_STATUS = 64
LONGEST_CODE = 100
NO_END = ("running", "exited", "unknown")  # as runs are called that have no end, or none that anybody told


@dataclass(frozen=True, slots=True)
class Report:
    """What li says of an end."""

    status: str
    reason_code: str | None
    ended_at: datetime | None
    artifacts: str | None = None  # the folder that holds them


def report_of(record: RunRecord) -> Report | None:
    """None when li told nothing, or nothing that could be understood."""
    try:
        told = object_of(record.folder / report.REPORT, LARGEST_REPORT)
    except UnreadableError:
        return None
    artifacts = told.get("save_dir")
    return understood(told, artifacts if isinstance(artifacts, str) else None)


def understood(told: dict[str, object], artifacts: str | None = None) -> Report | None:
    """The end in `status`, `reason_code` and `ended_at` (seconds); None when there is no status that is one of an end."""
    status = word(told.get("status"), LONGEST_STATUS)
    if status is None or status in NO_END:
        return None
    return Report(status, word(told.get("reason_code"), LONGEST_CODE), moment(told.get("ended_at")), artifacts)


def moment(seconds: object) -> datetime | None:
    """None for what is no moment that a person could have seen."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not math.isfinite(seconds):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None
