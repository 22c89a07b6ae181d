"""A server of the SDK as an ASGI application: stateless, so any of several processes may answer any request."""

from __future__ import annotations

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from .http_gate import Authenticate, Entry, Gate
from .http_origins import ServedNames
from .protocols import Offer
from .registry import HttpServe, Registry
from .server_mcp import McpServer


class HttpApp:
    """Serves at one path, by POST alone. Its lifespan is that of what the server keeps open."""

    def __init__(self, server: McpServer, registry: Registry, http: HttpServe, authenticate: Authenticate) -> None:
        """`http` is how it is served here. Raises ValueError for hosts and origins that cannot be any."""
        self._sessions = StreamableHTTPSessionManager(
            server,
            json_response=http.replies == "json",
            stateless=True,
            max_request_body_size=registry.limits.body,
        )
        entry = Entry(
            path=http.path,
            names=ServedNames(http),
            offer=Offer.of(registry),
            authenticate=authenticate,
            body=registry.limits.body,
        )
        self._gate = Gate(self._sessions.handle_request, entry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._gate(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self._sessions.run():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})
