"""What both surfaces share: how a tool call is handed in, and the wire form of its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pydantic_core import to_json

from .call import LOCAL, Caller, ProgressReport
from .consent import Consent
from .refusal import Refusal

REFUSAL_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"kind": {"type": "string"}, "message": {"type": "string"}, "detail": {"type": "object"}},
    "required": ["kind", "message"],
}


class UnknownToolError(Exception):
    """There is no tool of this name; the message may be told to the caller."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool as it came over the protocol."""

    tool: str
    arguments: dict[str, Any]
    meta: Mapping[str, Any]
    caller: Caller = LOCAL
    report: ProgressReport | None = None
    consent: Consent | None = None  # how the client's user can be asked; None: he cannot


class Surface(Protocol):
    """One way to show the verbs of a registry as tools. Tools and answers are in their wire form."""

    def tools(self) -> list[dict[str, Any]]:
        """The tools, ready to be listed."""

    def input_schema(self, tool: str) -> dict[str, Any] | None:
        """The schema of a tool's arguments, or None for a tool that is not there."""

    async def call(self, call: ToolCall) -> dict[str, Any]:
        """The result of a call. Raises UnknownToolError, and InputRequiredError for a call that is to be sent again."""


def compact_json(value: Any) -> str:
    """`value`, which is within the generic limits, as JSON without spaces, text as it is."""
    return to_json(value).decode()


def text_answer(text: str) -> dict[str, Any]:
    """A result that is text alone."""
    return {"content": [{"type": "text", "text": text}], "isError": False}


def content_answer(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """A result that is blocks of content."""
    return {"content": blocks, "isError": False}


def structured_answer(value: dict[str, Any], *, is_error: bool = False) -> dict[str, Any]:
    """A result that is an object: structured, and as text for clients that read only that."""
    content = [{"type": "text", "text": compact_json(value)}]
    return {"content": content, "structuredContent": value, "isError": is_error}


def refused_answer(refusal: Refusal) -> dict[str, Any]:
    """The answer to a call that is refused as a whole."""
    return structured_answer({"error": refusal.as_error()}, is_error=True)
