"""The SDK's server, which speaks every revision of the protocol, kept to those that are offered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.server import InitializationOptions, Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware
from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider

from .offered_messages import OfferedMessages
from .protocols import INITIALIZE, Offer


class OfferingServer(Server[Any]):
    """A server over streams, where it looks at each message itself; over HTTP that has been done before."""

    def __init__(self, offer: Offer, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._offer = offer
        self._closers: list[Callable[[], Awaitable[None]]] = []
        self.middleware[:] = [*map(_WhereWanted, self.middleware), self._negotiate]
        self.add_request_handler("server/discover", types.RequestParams, self._discover)

    def close_with(self, close: Callable[[], Awaitable[None]]) -> None:
        """Have `close` called when the server is closed, after those that were named before."""
        self._closers.append(close)

    async def close(self) -> None:
        """Let go of all that the server has opened."""
        for close in self._closers:
            await close()

    async def run(
        self,
        read_stream: Any,
        write_stream: Any,
        initialization_options: InitializationOptions,
        raise_exceptions: bool = False,
    ) -> None:
        offered = OfferedMessages(read_stream, write_stream, self._offer)
        await super().run(offered, write_stream, initialization_options, raise_exceptions)

    async def _negotiate(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Settle on a revision that is offered, where the SDK would take any that it knows."""
        if ctx.method == INITIALIZE and self._offer.handshake and isinstance(ctx.params, dict):
            requested = ctx.params.get("protocolVersion")
            if isinstance(requested, str):
                # In place: the SDK reads this very object again when it notes which revision the connection is of.
                ctx.params["protocolVersion"] = self._offer.negotiated(requested)
        return await call_next(ctx)

    async def _discover(
        self, context: ServerRequestContext[Any], _params: types.RequestParams | None
    ) -> types.DiscoverResult:
        """Tell a client what there is, before it settles on a revision."""
        return types.DiscoverResult(
            supported_versions=list(self._offer.revisions),
            capabilities=self.get_capabilities(protocol_version=context.protocol_version),
            instructions=self.instructions,
        )


class _WhereWanted:
    """The SDK's tracing of each message, left out while nobody listens: even then it costs as much as a small call."""

    def __init__(self, tracing: ServerMiddleware[Any]) -> None:
        self._tracing = tracing

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if isinstance(get_tracer_provider(), ProxyTracerProvider):
            return await call_next(ctx)
        return await self._tracing(ctx, call_next)
