"""Calls of tools that get one reply: they go on to the SDK as the gate has read them, without the SDK's transports.

What the transports look at, beyond what the gate has seen to, is looked at here by the same functions of the SDK.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import anyio
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.runner import serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
)
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import INTERNAL_ERROR, ErrorData, RequestId
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic_core import to_json, to_jsonable_python
from starlette.requests import Request
from starlette.types import Scope, Send

from . import log
from .http_answers import send_json
from .http_envelope import Message
from .server_mcp import McpServer

_METHOD: Final = "tools/call"
_ASCII_JSON: Final = json.JSONEncoder(separators=(",", ":"), default=to_jsonable_python)


class DirectCalls:
    """Answers calls of one server's tools, with one reply to each."""

    def __init__(self, server: McpServer) -> None:
        """Before the server's lifespan begins."""
        self._server = server
        self._lifespan = server.lifespan
        self._state: Any = None
        # It is entered once, by the SDK, which keeps for itself what comes out of it.
        server.lifespan = self._live

    @asynccontextmanager
    async def _live(self, server: Server[Any]) -> AsyncIterator[Any]:
        async with self._lifespan(server) as self._state:
            yield self._state

    async def answer(self, scope: Scope, message: Message, revision: str, send: Send) -> bool:
        """Answer a message; false, and nothing is done, when one of the SDK's transports has to look at it.

        `scope` is what the transport would get of the request, `revision` what the message is of.
        """
        if message.method != _METHOD or message.id is None:
            return False
        request = Request(scope)
        connection = self._connection(request, message, revision)
        if connection is None:
            return False
        outcome = await self._outcome(request, message, message.id, connection)
        await send_json(send, *_written({"jsonrpc": "2.0", "id": message.id, **outcome}, revision))
        return True

    def _connection(self, request: Request, message: Message, revision: str) -> Connection | None:
        """What the SDK knows of the client; None where headers do not fit the message, or have to fit the arguments."""
        if revision in HANDSHAKE_PROTOCOL_VERSIONS:
            return Connection.from_envelope(revision, None, None)
        lines = request.headers.items()
        if find_duplicated_routing_header(lines) is not None:
            return None
        read = {"method": message.method, "params": message.params}
        route = classify_inbound_request(read, headers=dict(lines))
        if isinstance(route, InboundLadderRejection) or self._has_headers(message):
            return None
        return Connection.from_envelope(route.protocol_version, route.client_info, route.client_capabilities)

    def _has_headers(self, message: Message) -> bool:
        """Whether arguments of the tool may stand in headers as well."""
        schema_of, name = self._server.get_tool_input_schema, (message.params or {}).get("name")
        return schema_of is None or (isinstance(name, str) and schema_of(name) is not None)

    async def _outcome(
        self, request: Request, message: Message, request_id: RequestId, connection: Connection
    ) -> dict[str, Any]:
        """The member of the reply that says how it went."""
        exchange = _Exchange(
            request_id,
            ServerMessageMetadata(request_context=request, can_send_request=False),
            TransportContext(kind="streamable-http", can_send_request=False, headers=request.headers),
        )
        try:
            result = await serve_one(
                self._server,
                exchange,
                message.method,
                message.params,
                connection=connection,
                lifespan_state=self._state,
            )
        except Exception as error:
            return {"error": _told(error).model_dump(mode="json", by_alias=True, exclude_none=True)}
        return {"result": result}


@dataclass(slots=True)
class _Exchange:
    """The way back to a client, over which nothing but the one reply can go."""

    request_id: RequestId
    message_metadata: ServerMessageMetadata
    transport: TransportContext
    can_send_request: bool = False

    @property
    def cancel_requested(self) -> anyio.Event:
        return anyio.Event()  # which is never set: nobody can take back what came over another connection

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        pass

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        pass


def _told(error: Exception) -> ErrorData:
    """What the client hears of an error. In the older era the SDK would send the text of any exception."""
    told = handler_exception_to_error_data(error)
    if told is None:
        log.failure("a request failed", error, correlation_id=log.correlation_id())
        told = ErrorData(code=INTERNAL_ERROR, message="Internal server error")
    return told


def _written(reply: dict[str, Any], revision: str) -> tuple[int, bytes]:
    """The status and the body of a reply, each as the SDK's transport of that era has them."""
    if revision in HANDSHAKE_PROTOCOL_VERSIONS:
        return 200, to_json(reply)
    status = ERROR_CODE_HTTP_STATUS.get(reply["error"]["code"], 200) if "error" in reply else 200
    return status, _ASCII_JSON.encode(reply).encode()
