"""The messages that are exchanged with an upstream, as bytes and as JSON; revisions that begin with `initialize`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from .strict_json import Unacceptable, parse
from .upstream_errors import UpstreamError

# The newest comes first, and is what is asked for.
REVISIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
# More levels than a result may have: one that is too deep is told as that, and not as no message.
_DEPTH = 130
# What a message adds to the result that it holds.
_ENVELOPE_BYTES = 4096
# So many results of the largest size one operation may bring: replies, notifications, and what is no message. A call
# lists the tools first.
_RESULTS = 2
# Longer frames are read off the event loop.
_LONG_BYTES = 1 << 16
_METHOD_NOT_FOUND = -32601

# What stands before and after the id: Python's and JavaScript's libraries write it like this.
_PLACES: Final = (
    (b'{"jsonrpc":"2.0","id":', b',"result":'),
    (b'{"jsonrpc": "2.0", "id": ', b', "result": '),
    (b',"jsonrpc":"2.0","id":', b"}"),
    (b', "jsonrpc": "2.0", "id": ', b"}"),
)

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class Message:
    """One message: a reply when it has no `method`, a notification when it has no `id`."""

    id: int | str | None
    method: str | None
    result: dict[str, Any] | None = None  # None in a reply: it is an error


def most_in_message(result_bytes: int) -> int:
    """How many bytes a message may have where a result may have so many."""
    return result_bytes + _ENVELOPE_BYTES


def most_in_operation(result_bytes: int) -> int:
    """How many bytes may come, all together, from the first reply that an operation waits for to the last."""
    return _RESULTS * result_bytes + _ENVELOPE_BYTES


def request(request_id: int, method: str, params: Mapping[str, Any]) -> bytes:
    """A request, on one line without its end."""
    return _encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}).encode("ascii")


def notification(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    """A notification, on one line without its end."""
    return _encode({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}).encode("ascii")


def answer(asked: Message) -> bytes:
    """What a request of the upstream is answered: it can see that somebody is there, and has nothing else here."""
    if asked.method == "ping":
        return _encode({"jsonrpc": "2.0", "id": asked.id, "result": {}}).encode("ascii")
    error = {"code": _METHOD_NOT_FOUND, "message": "This client does not do that."}
    return _encode({"jsonrpc": "2.0", "id": asked.id, "error": error}).encode("ascii")


async def message(frame: bytes) -> Message:
    """What a frame says. Raises UpstreamError when it is no message."""
    try:
        value = parse(frame, _DEPTH) if len(frame) < _LONG_BYTES else await asyncio.to_thread(parse, frame, _DEPTH)
    except Unacceptable:
        raise UpstreamError("McpProtocolError") from None
    if (read := _message(value)) is None:
        raise UpstreamError("McpProtocolError")
    return read


def without_id(frame: bytes, request_id: int) -> bytes | None:
    """A reply without its id, where that stands at one of its usual places; else None.

    Of two replies that are equal then, and of which one was read as a reply to its request, the other is one as well,
    with the same result: what was cut out stood at the top level, and keys that stand there twice are not taken.
    """
    for before, after in _PLACES:
        text = b"%b%d%b" % (before, request_id, after)
        if before.startswith(b"{") and frame.startswith(text):
            return b"{" + frame[len(text) :]
        if after.endswith(b"}") and frame.endswith(text):
            return frame[: -len(text)] + b"}"
    return None


def _message(value: Any) -> Message | None:
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        return None
    has_id = "id" in value
    found = value.get("id")
    if isinstance(found, bool) or not isinstance(found, int | str | None):
        return None
    if "method" in value:
        named = isinstance(value["method"], str) and "result" not in value and "error" not in value
        return Message(found, value["method"]) if named and (found is not None or not has_id) else None
    result, error = value.get("result"), value.get("error")
    if not has_id or (isinstance(result, dict) == isinstance(error, dict)):
        return None
    return Message(found, None, result if "error" not in value else None)
