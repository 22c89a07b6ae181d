"""The one message in the body of a POST: its form as JSON-RPC, and the era that its headers and its content agree on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import DEFAULT_NEGOTIATED_VERSION, HEADER_MISMATCH, INVALID_REQUEST, PARSE_ERROR
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from .protocols import INITIALIZE, Offer, named_revision, names_revision
from .strict_json import DEPTH, Unacceptable, parse

_FRACTIONAL_ID: Final = re.compile(rb'"\s*:\s*-?\d+[.eE]')
# Arguments lie a few levels inside their message; those that are too deep get an answer of their own.
_MESSAGE_DEPTH: Final = DEPTH + 8


@dataclass(frozen=True, slots=True)
class Message:
    """A request, or without an id a notification."""

    method: str
    params: Mapping[str, Any] | None
    id: str | int | None


def read_message(body: bytes) -> Message:
    """The message that a body holds. Raises MCPError, with nothing of the body in it."""
    try:
        value = parse(body, _MESSAGE_DEPTH)
    except Unacceptable as error:
        raise MCPError(PARSE_ERROR, f"The body {error.reason}.") from None
    if isinstance(value, list):
        raise MCPError(INVALID_REQUEST, "Batches are not taken; send one message with each POST.")
    if not isinstance(value, dict) or not _is_message(value) or _has_fractional_id(value, body):
        raise MCPError(INVALID_REQUEST, "The body is no JSON-RPC request or notification.")
    return Message(value["method"], value.get("params"), value.get("id"))


def _is_message(value: dict[str, Any]) -> bool:
    return (
        value.get("jsonrpc") == "2.0"
        and isinstance(value.get("method"), str)
        and type(value.get("id", 0)) in (int, str)
        and isinstance(value.get("params", {}), dict)
    )


def _has_fractional_id(value: dict[str, Any], body: bytes) -> bool:
    """Whether the id is written as `1.0`, which is a whole number here, and nothing to those who come after."""
    return (
        type(value.get("id")) is int
        and _FRACTIONAL_ID.search(body) is not None
        and type(json.loads(body)["id"]) is not int
    )


def agreed_revision(message: Message, header: str | None, offer: Offer) -> str:
    """The revision that a message is of; `header` is that of MCP-Protocol-Version, None without one.

    Raises MCPError when it is not offered, or when headers and message do not agree.
    """
    if names_revision(message.params):
        _check_named(named_revision(message.params), header)
    elif message.method == INITIALIZE:
        return _begun(message, header, offer)
    # The clients of the revision that is meant without a header do not know it.
    revision = DEFAULT_NEGOTIATED_VERSION if header is None else header
    if revision not in offer.revisions:
        raise offer.unsupported(revision)
    return revision


def _check_named(named: Any, header: str | None) -> None:
    """What a message of the newer era names, beside the header."""
    if header in HANDSHAKE_PROTOCOL_VERSIONS:
        raise _mixed()
    if header != named:
        raise MCPError(HEADER_MISMATCH, "MCP-Protocol-Version does not say what the message says in its _meta.")


def _begun(message: Message, header: str | None, offer: Offer) -> str:
    """What `initialize` settles on. It needs no header, as there is nothing yet to stand in one."""
    requested = (message.params or {}).get("protocolVersion")
    if not offer.handshake:
        raise offer.unsupported(requested)
    if header is not None and header not in offer.revisions:
        raise offer.unsupported(header)
    if header in offer.modern:
        raise _mixed()
    return offer.negotiated(requested)


def _mixed() -> MCPError:
    return MCPError(INVALID_REQUEST, "The message and its MCP-Protocol-Version are of different eras of the protocol.")
