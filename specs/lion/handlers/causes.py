"""Why a run failed, as li writes it into a file that the run is given: which kind of error it was, and no word of its text."""

from typing import Final

from lion_mcp.interface import RunRecord

from .bounded_reading import UnreadableError, object_of
from .foreign_words import word

FILE: Final = "cause.json"
VARIABLE: Final = "LIONAGI_MCP_CAUSE_FILE"
LARGEST_CAUSE = 1 << 12  # bytes
STATUS_SOURCES = ("received", "absent", "unreadable")


def failure_cause(record: RunRecord) -> dict[str, object] | None:
    """`class`, `retryable`, `status_source` and, where one was received, `provider_status`; None when li wrote nothing."""
    try:
        told = object_of(record.folder / FILE, LARGEST_CAUSE)
    except UnreadableError:
        return None
    source, status = told.get("status_source"), told.get("provider_status")
    known = source if isinstance(source, str) and source in STATUS_SOURCES else "unreadable"
    cause: dict[str, object] = {
        "class": word(told.get("class"), 64) or "unknown",
        "retryable": told.get("retryable") is True,
        "status_source": known,
    }
    if known != "received":
        return cause
    if isinstance(status, int) and not isinstance(status, bool) and 100 <= status <= 999:
        return {**cause, "provider_status": status}
    return {**cause, "status_source": "unreadable"}
