"""What a tool of an upstream returned, made fit to travel on: within bounds, escaped, and without binary content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from .binary_receipts import without_binary
from .fingerprint import canonical_json
from .foreign_text import escaped
from .strict_json import DEPTH, Unacceptable, parse

_MOST_VALUES: Final = 100_000
# What is sent may have DEPTH levels. The reply that carries this takes one of them, and so does a receipt.
_MOST_LEVELS: Final = DEPTH - 2
_TEXT_BLOCK: Final = frozenset({"type", "text"})


class ResultError(Exception):
    """A result that is none, or that cannot be passed on. `error_type` names what is wrong with it."""

    def __init__(self, error_type: str) -> None:
        super().__init__(error_type)
        self.error_type = error_type


class ResultTooLargeError(Exception):
    """A result of more bytes than there may be."""


@dataclass(frozen=True, slots=True)
class Projected:
    """A result as it is passed on."""

    failed: bool  # the tool says that it ended in an error
    content: list[dict[str, Any]]
    structured: Any  # None: there is none


def projected(result: Mapping[str, Any], most_bytes: int) -> Projected:
    """The result of `tools/call`, whole, or not at all.

    `most_bytes` is for its canonical JSON. Raises ResultTooLargeError and ResultError.
    """
    failed, content, structured = result.get("isError", False), result.get("content"), result.get("structuredContent")
    if not isinstance(failed, bool) or not isinstance(content, list):
        raise ResultError("McpProtocolError")
    if not all(isinstance(block, dict) for block in content):
        raise ResultError("McpProtocolError")
    check_bounds({"content": content, "structured_content": structured}, most_bytes)
    kept = content if structured is None else _not_repeated(content, structured)
    return Projected(failed, passed_on(kept), passed_on(structured))


def check_bounds(value: dict[str, Any], most_bytes: int, levels: int = _MOST_LEVELS) -> None:
    """Measure an object. Raises ResultTooLargeError and ResultError."""
    most_values = min(_MOST_VALUES, most_bytes)
    count = 1
    level: list[Any] = [value]
    while level:
        if levels < 1:
            raise ResultError("McpResultTooDeep")
        inside = [item for nested in level for item in (nested.values() if isinstance(nested, dict) else nested)]
        count += len(inside)
        if count > most_values:
            raise ResultError("McpResultTooManyValues")
        level = [item for item in inside if isinstance(item, dict | list)]
        levels -= 1
    try:
        size = len(canonical_json(value))
    except ValueError:
        raise ResultError("McpProtocolError") from None
    if size > most_bytes:
        raise ResultTooLargeError


def passed_on(value: Any) -> Any:
    """A JSON value within bounds, with receipts for binary content, and its texts escaped. Raises ResultError."""
    return _escaped(without_binary(value, _MOST_LEVELS))


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    if not isinstance(value, dict):
        return value
    members = {escaped(name): _escaped(item) for name, item in value.items()}
    if len(members) != len(value):
        raise ResultError("McpProtocolError")  # two names that only differ in how they are written: one would be lost
    return members


def _not_repeated(content: list[dict[str, Any]], structured: Any) -> list[dict[str, Any]]:
    """The blocks without those that are the structured content once more, as JSON in a plain text."""
    form = canonical_json(structured)
    return [block for block in content if not _repeats(block, form)]


def _repeats(block: dict[str, Any], form: str) -> bool:
    if block.keys() != _TEXT_BLOCK or block["type"] != "text" or not isinstance(block["text"], str):
        return False
    try:
        return canonical_json(parse(block["text"])) == form
    except Unacceptable:
        return False
