"""What comes back from the four tools, looked at closely every time."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from .scripted import Json

CALLED = frozenset(
    {
        "server_id",
        "tool_id",
        "mcp_name",
        "status",
        "ok",
        "result",
        "error",
        "call_started",
        "schema_protection",
        "response_bytes",
        "duration_s",
    }
)
CODES = {
    "mcp_error": {"mcp_tool_error"},
    "transport_error": {"mcp_provider_error", "mcp_dns_timeout"},
    "invalid_response": {"mcp_invalid_response"},
    "response_too_large": {"mcp_response_too_large"},
}


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call of a tool came to."""

    failed: bool
    value: Json

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> Self:
        """Out of a message with an answer; fails when that is a protocol error, or its two forms differ."""
        assert "result" in message, message
        result = message["result"]
        (block,) = result["content"]
        assert json.loads(block["text"]) == result["structuredContent"]
        return cls(result.get("isError") is True, result["structuredContent"])

    @property
    def done(self) -> Json:
        """The result; fails when there is a refusal."""
        assert not self.failed, self.value
        return self.value

    @property
    def refusal(self) -> Json:
        """The refusal: kind, message, perhaps detail."""
        assert self.failed, self.value
        assert set(self.value) == {"error"}
        error = self.value["error"]
        assert {"kind", "message"} <= set(error) <= {"kind", "message", "detail"}
        return dict(error)

    @property
    def kind(self) -> str:
        return str(self.refusal["kind"])

    @property
    def called(self) -> Json:
        """The result of `call_mcp_tool`, whatever its status."""
        called = self.done
        assert set(called) == CALLED
        status, error = called["status"], called["error"]
        assert called["ok"] is (status == "ok")
        assert called["schema_protection"] in ("pinned", "absent")
        if status == "ok":
            assert error is None
            assert set(called["result"]) == {"content", "structured_content"}
        else:
            assert called["result"] is None
            assert {"code", "error_type", "correlation_id"} <= set(error)
            assert error["code"] in CODES[status]
            assert re.fullmatch(r"corr_[0-9a-f]{16}", error["correlation_id"])
        return called

    @property
    def result(self) -> Json:
        """What a registered tool returned; fails when it has not ended well."""
        called = self.called
        assert called["status"] == "ok", called
        assert called["call_started"] is True
        return dict(called["result"])

    @property
    def approval(self) -> Json:
        """The approval that a call waits for."""
        assert self.kind == "pending", self.value
        assert set(self.refusal["detail"]) == {"approval"}
        approval = dict(self.refusal["detail"]["approval"])
        assert {
            "id",
            "subject",
            "rights",
            "verb",
            "contract_digest",
            "target",
            "arguments_sha256",
            "expires_at",
        } <= set(approval)
        return approval

    def ended(self, status: str, error_type: str | None = None, *, started: bool) -> Json:
        """The result of a call that has ended so."""
        called = self.called
        assert called["status"] == status, called
        assert called["call_started"] is started, called
        if error_type is not None:
            assert called["error"]["error_type"] == error_type, called
        return called
