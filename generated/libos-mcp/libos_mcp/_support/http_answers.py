"""What the server says over HTTP by itself, to requests that never reach the protocol. Nothing of them is in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST
from starlette.types import Send

from .surface import compact_json

HeaderLines: TypeAlias = tuple[tuple[bytes, bytes], ...]


class RefusedRequestError(Exception):
    """A request goes no further; `send` tells the client, with an HTTP status and a JSON body."""

    def __init__(self, status: int, body: Mapping[str, Any], headers: HeaderLines = ()) -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        self.headers = headers

    async def send(self, send: Send) -> None:
        """Answer the request."""
        await send_json(send, self.status, compact_json(self.body).encode(), self.headers)


async def send_json(send: Send, status: int, text: bytes, headers: HeaderLines = ()) -> None:
    """Answer a request with JSON; `headers` are those beside its type and size."""
    told = [(b"content-type", b"application/json"), (b"content-length", str(len(text)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": text})


def refused(
    status: int, message: str, headers: HeaderLines = (), *, code: int = INVALID_REQUEST
) -> RefusedRequestError:
    """A request that is refused for what HTTP says of it: before it has been read, so the answer names no id."""
    return refused_message(MCPError(code, message), status=status, headers=headers)


def refused_message(
    error: MCPError, request_id: str | int | None = None, *, status: int = 400, headers: HeaderLines = ()
) -> RefusedRequestError:
    """A message that is refused for what it says; `request_id` is its own, where it has one."""
    told = {"code": error.code, "message": error.message, **({} if error.data is None else {"data": error.data})}
    return RefusedRequestError(status, {"jsonrpc": "2.0", "id": request_id, "error": told}, headers)
