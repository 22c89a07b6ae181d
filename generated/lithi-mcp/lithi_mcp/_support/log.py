"""The server's log: one JSON object per line on stderr, about what happened and where, never about what was sent."""

from __future__ import annotations

import json
import logging
import secrets
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, Final

from .stderr import PIECE, unhurried

_OWN: Final = logging.getLogger("verbc.server")
_FIELDS: Final = "verbc_fields"
_MOST_FRAMES = 20
_MOST_CAUSES = 4


def configure() -> None:
    """Send all logging of the process to stderr in this form; called once, when a server starts."""
    # A reader that does not read may make a print or a line of the log go missing, but never the server wait.
    sys.stdout = sys.stderr = unhurried()
    logging.basicConfig(level=logging.INFO, handlers=[_StderrHandler()], force=True)
    logging.captureWarnings(True)


def correlation_id() -> str:
    """A new name for one call, `corr_` and 16 hex digits, that stands in an answer, on record and in the log."""
    return f"corr_{secrets.token_hex(8)}"


def event(level: str, what: str, **fields: Any) -> None:
    """Log that `what` happened; `level` is `info`, `warning` or `error`, `fields` are JSON values."""
    _OWN.log(logging.getLevelNamesMapping()[level.upper()], what, extra={_FIELDS: fields})


def failure(what: str, error: BaseException, **fields: Any) -> None:
    """Log an exception by its type and the places it came through."""
    event("error", what, **fields, error=described(error))


def described(error: BaseException) -> list[dict[str, Any]]:
    """An exception and its causes, outermost first: type and frames. The texts are left out, as they may hold arguments."""
    chain: list[dict[str, Any]] = []
    cause: BaseException | None = error
    while cause is not None and len(chain) < _MOST_CAUSES:
        chain.append({"type": _type_name(cause), "frames": _frames(cause)})
        cause = cause.__cause__ or cause.__context__
    return chain


def _type_name(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")


def _frames(error: BaseException) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)[-_MOST_FRAMES:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": _template(record),
        }
        entry.update(getattr(record, _FIELDS, {}))
        if record.exc_info and record.exc_info[1] is not None:
            entry["error"] = described(record.exc_info[1])
        return _line(entry)


def _line(entry: dict[str, Any]) -> str:
    """An entry as one line that a pipe takes whole: of a long one, the outer frames of its errors are left out."""
    line = json.dumps(entry, default=str)
    for frames in (8, 3, 1, 0):
        if len(line) < PIECE:
            return line
        errors = [{**error, "frames": error["frames"][-frames:] if frames else []} for error in entry.get("error", ())]
        line = json.dumps({**entry, **({"error": errors} if errors else {})}, default=str)
    return (
        line
        if len(line) < PIECE
        else json.dumps({**entry, "event": str(entry["event"])[:200], "error": []}, default=str)
    )


def _template(record: logging.LogRecord) -> str:
    """What a record says, without what it is about: libraries put that into arguments, or into further lines."""
    if record.name == "py.warnings":
        return record.getMessage()
    return str(record.msg).partition("\n")[0]


class _StderrHandler(logging.Handler):
    """Writes to whatever stderr is at the moment, a line at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(_Formatter())

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except Exception:  # noqa: S110 - there is no other place to say that logging failed
            pass
