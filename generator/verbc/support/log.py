"""The server's log: one JSON object per line on stderr, about what happened and where, never about what was sent."""

from __future__ import annotations

import json
import logging
import secrets
import select
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, Final

_OWN: Final = logging.getLogger("verbc.server")
_FIELDS: Final = "verbc_fields"
_MOST_FRAMES = 20
_MOST_CAUSES = 4


def configure() -> None:
    """Send all logging of the process to stderr in this form; called once, when a server starts."""
    logging.basicConfig(level=logging.INFO, handlers=[_StderrHandler()], force=True)
    logging.captureWarnings(True)


def correlation_id() -> str:
    """A new name for one call: 16 hex digits that stand in an answer and in the log."""
    return secrets.token_hex(8)


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
        return json.dumps(entry, default=str)


def _template(record: logging.LogRecord) -> str:
    """What a record says, without what it is about: libraries put that into arguments, or into further lines."""
    if record.name == "py.warnings":
        return record.getMessage()
    return str(record.msg).partition("\n")[0]


class _StderrHandler(logging.Handler):
    """Writes to whatever stderr is at the moment, and drops a line rather than wait for a reader that does not read."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(_Formatter())

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if _has_room():
                sys.stderr.write(self.format(record) + "\n")
                sys.stderr.flush()
        except Exception:  # noqa: S110 - there is no other place to say that logging failed
            pass


def _has_room() -> bool:
    try:
        descriptor = sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return True
    return bool(select.select([], [descriptor], [], 0)[1])
