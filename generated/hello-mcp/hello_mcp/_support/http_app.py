"""A server of the SDK as an ASGI application: stateless, so any of several processes may answer any request."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from .http_direct import DirectCalls
from .http_gate import Authenticate, Entry, Gate
from .http_origins import ServedNames
from .protocols import Offer
from .registry import HttpServe, Registry
from .server_mcp import McpServer

# How long requests that were cancelled may take to come to their end.
_END_SECONDS: Final = 10.0


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
        direct = DirectCalls(server) if http.replies == "json" else None
        self._gate = Gate(self._sessions.handle_request, entry, direct)
        self._close = server.close
        self._running: set[asyncio.Task[Any]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine that runs
        self._running.add(task)
        try:
            await self._gate(scope, receive, send)
        finally:
            self._running.discard(task)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self._sessions.run():
            await send({"type": "lifespan.startup.complete"})
            await receive()
            if self._running:  # they had their time, and were told to end: what they use is there until they have
                await asyncio.wait(self._running, timeout=_END_SECONDS)
        await self._close()
        await send({"type": "lifespan.shutdown.complete"})
