"""How a call of an upstream ends: with a status, or with a refusal while nothing has been called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from . import log
from .call import Call
from .live_tools import LiveToolsError
from .quoting import quoted
from .refusal import Refusal
from .result_projection import Projected, ResultError, ResultTooLargeError
from .upstream_errors import InvalidListError, NotStartedError, UpstreamError

if TYPE_CHECKING:
    from .manifest import Manifest, Tool

Status: TypeAlias = Literal["ok", "mcp_error", "transport_error", "invalid_response", "response_too_large"]

_CODES: Final = {
    "mcp_error": "mcp_tool_error",
    "transport_error": "mcp_provider_error",
    "invalid_response": "mcp_invalid_response",
    "response_too_large": "mcp_response_too_large",
}


class RegistrationChangedError(Exception):
    """The registration is no longer the one that the call was planned for."""


# The errors that `failure_of` has a status for.
FAILURES: Final = (
    InvalidListError,
    LiveToolsError,
    RegistrationChangedError,
    ResultError,
    ResultTooLargeError,
    UpstreamError,
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call ended. `error_type` names what went wrong, `result` is there for `ok` and `mcp_error`."""

    status: Status
    error_type: str | None
    result: Projected | None
    call_started: bool  # the call was sent, so it may have had its effect
    response_bytes: int  # as far as it is known
    seconds: float
    correlation_id: str  # stands in the log, too

    @property
    def code(self) -> str:
        """The name of what went wrong, coarser than its type."""
        return _code(self.status, self.error_type)


def failure_of(error: Exception) -> tuple[Status, str]:
    """The status and the type of one of FAILURES; any other error is raised again."""
    match error:
        case InvalidListError() | LiveToolsError():
            return "invalid_response", "LiveToolValidationError"
        case RegistrationChangedError():
            return "invalid_response", "RegistrationChanged"
        case ResultTooLargeError():
            return "response_too_large", "response_too_large"
        case UpstreamError() | ResultError():
            return "transport_error", error.error_type
    raise error


def not_started(manifest: Manifest, call: Call, error: NotStartedError) -> Refusal:
    """The refusal where nothing outside was begun; it is logged."""
    detail = {"code": "mcp_provider_not_started", "error_type": error.error_type, "correlation_id": correlation(call)}
    log.event("warning", "an upstream was not started", server_id=manifest.server_id, verb=call.verb.name, **detail)
    sentence = f"{quoted(manifest.server_id)} cannot be reached; nothing was sent to it."
    return Refusal("unavailable", sentence, detail)


def not_listed(manifest: Manifest, call: Call, status: Status, error_type: str) -> Refusal:
    """The refusal where the live tools could not be read; it is logged."""
    detail = {"code": _code(status, error_type), "error_type": error_type, "correlation_id": correlation(call)}
    log.event("warning", "live tools were not read", server_id=manifest.server_id, verb=call.verb.name, **detail)
    return Refusal("unavailable", f"The live tools of {quoted(manifest.server_id)} could not be read.", detail)


def log_failure(ended: Ended, manifest: Manifest, tool: Tool, call: Call) -> None:
    """Log an end that is not a good one."""
    log.event(
        "info" if ended.status == "mcp_error" else "warning",
        "an upstream call did not end well",
        server_id=manifest.server_id,
        tool_id=tool.tool_id,
        verb=call.verb.name,
        status=ended.status,
        error_type=ended.error_type,
        call_started=ended.call_started,
        correlation_id=ended.correlation_id,
    )


def correlation(call: Call) -> str:
    """What names a call in answers and in the log."""
    return call.correlation_id


def _code(status: str, error_type: str | None) -> str:
    return "mcp_dns_timeout" if error_type == "McpDnsTimeout" else _CODES[status]
