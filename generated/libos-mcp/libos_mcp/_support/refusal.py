"""The one shape of "no": a kind from a closed set, a plain message, and details where they help."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

BUILT_IN_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "invalid_input": "The call or its arguments do not fit what is declared.",
        "not_found": "What was asked for does not exist.",
        "conflict": "The state of things does not allow it now.",
        "denied": "The caller may not do this.",
        "insufficient_scope": "The caller's credentials do not reach this far.",
        "pending": "It has been asked for and is not decided or done yet.",
        "busy": "Too much is going on; the same call may work later.",
        "unavailable": "It cannot be done here, or not now.",
        "stale_schema": "The caller has not read the schema that is valid now.",
        "internal": "Something went wrong on the server's side.",
    }
)


class Refusal(Exception):  # noqa: N818 - it is an answer, not an accident
    """Raised to answer a call with "no".

    `kind` is one of the kinds in the registry, `message` one or two plain sentences, `detail` a JSON object or None.
    """

    def __init__(self, kind: str, message: str, detail: dict[str, Any] | None = None) -> None:
        super().__init__(kind, message, detail)
        self.kind = kind
        self.message = message
        self.detail = detail

    def as_error(self) -> dict[str, Any]:
        """`{"kind", "message"}`, and `"detail"` if there is one."""
        error: dict[str, Any] = {"kind": self.kind, "message": self.message}
        if self.detail is not None:
            error["detail"] = self.detail
        return error
