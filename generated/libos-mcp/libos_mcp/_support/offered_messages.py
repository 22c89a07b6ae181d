"""The incoming messages of one connection, without those of revisions that are not offered: these are answered here."""

from __future__ import annotations

from contextvars import Context
from typing import Any, Self

import anyio
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest

from .protocols import Offer


class OfferedMessages:
    """A stream for the SDK, which settles on the era of the first request it sees and never changes it again."""

    def __init__(self, incoming: Any, outgoing: Any, offer: Offer) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._offer = offer

    @property
    def last_context(self) -> Context | None:
        """The context of whoever sent the last message, where the stream knows it."""
        context: Context | None = getattr(self._incoming, "last_context", None)
        return context

    async def receive(self) -> SessionMessage | Exception:
        """The next message that is of an offered revision. Raises EndOfStream."""
        while True:
            item: SessionMessage | Exception = await self._incoming.receive()
            error = self._objection(item)
            if error is None:
                return item
            await self._outgoing.send(SessionMessage(error))

    def _objection(self, item: SessionMessage | Exception) -> JSONRPCError | None:
        if isinstance(item, Exception) or not isinstance(item.message, JSONRPCRequest):
            return None
        request = item.message
        try:
            self._offer.check_message(request.method, request.params)
        except MCPError as error:
            return JSONRPCError(jsonrpc="2.0", id=request.id, error=error.error)
        return None

    async def aclose(self) -> None:
        await self._incoming.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
