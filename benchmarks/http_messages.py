"""What is sent to the servers and what has to come back: one call of the tool `noop`, in two revisions of the protocol."""

import json
import re
from typing import Any, Final

from .client import AnswerError

LEGACY: Final = "2025-06-18"
MODERN: Final = "2026-07-28"

TOOL: Final = "noop"
ARGUMENTS: Final = {"note": "nothing of importance"}
STRUCTURED: Final = {"done": True}

# Where messages are counted from, so that all have the same size.
_FIRST_ID: Final = 100_000
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
# What the newer revision wants in the headers as well.
_MIRRORED: Final = ("Mcp-Method: tools/call", f"Mcp-Name: {TOOL}")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_END_OF_HEAD: Final = b"\r\n\r\n"


def request(number: int, revision: str, port: int, key: str) -> bytes:
    """The call with this number, from 0, as a whole HTTP request."""
    params: dict[str, Any] = {"name": TOOL, "arguments": ARGUMENTS}
    if revision == MODERN:
        params["_meta"] = _META
    message = {"jsonrpc": "2.0", "id": _FIRST_ID + number, "method": "tools/call", "params": params}
    body = json.dumps(message, separators=(",", ":"))
    lines = (
        "POST /mcp HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        f"Authorization: Bearer {key}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {revision}",
        *(_MIRRORED if revision == MODERN else ()),
        f"Content-Length: {len(body)}",
        "",
        body,
    )
    return "\r\n".join(lines).encode()


def is_whole(reply: bytes) -> bool:
    """Whether this is all of a reply. Raises AnswerError when it does not say how long it is."""
    head, separator, body = reply.partition(_END_OF_HEAD)
    if not separator:
        return False
    length = _LENGTH.search(head + b"\r\n")
    if length is None:
        raise AnswerError(f"a reply does not say how long it is: {head!r}")
    return len(body) >= int(length[1])


def check_reply(number: int, reply: bytes) -> None:
    """Raises AnswerError unless this is how the call with this number is answered."""
    head, _, body = reply.partition(_END_OF_HEAD)
    message = json.loads(body) if head.startswith(b"HTTP/1.1 200 ") else {}
    right = message.get("id") == _FIRST_ID + number and message.get("result", {}).get("structuredContent") == STRUCTURED
    if not right or message["result"].get("isError", False):
        raise AnswerError(f"a call was answered with {reply!r}")


def check_refused(reply: bytes) -> None:
    """Raises AnswerError unless this is how a call with a key that nobody knows is answered."""
    if not reply.startswith(b"HTTP/1.1 401 "):
        raise AnswerError(f"a call with an unknown key was answered with {reply!r}")
