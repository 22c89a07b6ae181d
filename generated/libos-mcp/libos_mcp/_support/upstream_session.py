"""A session with an upstream: opened once, then asked for its tools and told to call one, a request at a time."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from .upstream_errors import InvalidListError, NotStartedError, UpstreamError
from .upstream_messages import REVISIONS, answer, message, notification, request, without_id

# What a connection that was kept, and is no longer there, shows.
_GONE: Final = frozenset({"McpConnectionLost", "McpConnectFailed", "McpSessionLost"})
_PARTING_SECONDS = 1.0
_CLIENT: Final = {"name": "verbc", "version": "1"}


class Channel(Protocol):
    """A way to an upstream. All but `close` raise UpstreamError."""

    @property
    def usable(self) -> bool:
        """Whether more can be sent."""

    @property
    def resolving(self) -> bool:
        """Whether a name is just being looked up."""

    @property
    def received(self) -> int:
        """The bytes that came in this operation."""

    def begin(self, received: int = 0) -> None:
        """Count what comes from here on as a new operation, in which so many bytes have come by another channel."""

    async def agree(self, revision: str) -> None:
        """The first reply is read; from here on, messages are of this revision of the protocol."""

    async def ask(self, frame: bytes, sent: Callable[[], None] | None) -> None:
        """Send a request; `sent` is called right before its first byte goes."""

    async def tell(self, frame: bytes) -> None:
        """Send what is not replied to."""

    async def next(self) -> bytes:
        """The next message that comes while a request is under way."""

    async def close(self) -> None:
        """End it, and whatever was started for it; takes a while."""


@dataclass(frozen=True, slots=True)
class Listed:
    """The tools as the upstream lists them; nobody changes them, as an unchanged list is not made anew.

    Lists with an equal `raw` are equal.
    """

    tools: list[dict[str, Any]]
    response_bytes: int
    raw: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Received:
    """What a tool gave back: an object with a list `content`, and what else the upstream put into it."""

    result: dict[str, Any]
    response_bytes: int


@dataclass(frozen=True, slots=True)
class _Reply:
    frame: bytes  # without its id, where that can be told
    result: dict[str, Any]
    size: int  # with whatever came before it


class Session:
    """Made over `connect`, which gives a new channel. One task at a time uses it."""

    def __init__(self, connect: Callable[[], Awaitable[Channel]]) -> None:
        self._connect = connect
        self._channel: Channel | None = None
        self._last_id = 0
        self._pending: int | None = None  # the request that was sent, and not replied to
        self._fresh = True
        self._pages: list[_Reply] = []  # the last list
        self._raw = b""

    @property
    def usable(self) -> bool:
        """Whether it is open, with nothing that is still to come."""
        return self._channel is not None and self._channel.usable and self._pending is None

    async def open(self, *, deadline: float) -> None:
        """Reach the upstream, and agree on how to speak. Raises UpstreamError."""
        async with self._in_time(deadline):
            await self._open()

    def take_up(self) -> None:
        """Use a session that was kept: should its connection turn out to be gone, another one is made."""
        self._fresh = False
        self._opened.begin()

    async def list_tools(self, *, deadline: float, page_limit: int) -> Listed:
        """All pages of the list of tools. Raises UpstreamError, and InvalidListError."""
        async with self._in_time(deadline):
            try:
                return await self._listed(page_limit)
            except UpstreamError as error:
                if self._fresh or error.error_type not in _GONE:
                    raise
            await self._open_again()
            return await self._listed(page_limit)

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], *, deadline: float, sent: Callable[[], None]
    ) -> Received:
        """Call a tool, once. `sent` is called right before the first byte of the call goes. Raises UpstreamError."""
        async with self._in_time(deadline):
            reply = await self._reply("tools/call", {"name": name, "arguments": arguments}, sent=sent)
        if not _is_tool_result(reply.result):
            raise UpstreamError("McpProtocolError")
        return Received(reply.result, reply.size)

    async def close(self) -> None:
        """End it; takes a while. A request that was not replied to is called off."""
        channel, self._channel = self._channel, None
        if channel is None:
            return
        try:
            if self._pending is not None and channel.usable:
                with suppress(UpstreamError, TimeoutError):
                    async with asyncio.timeout(_PARTING_SECONDS):
                        await channel.tell(notification("notifications/cancelled", {"requestId": self._pending}))
        finally:
            await channel.close()

    @property
    def _opened(self) -> Channel:
        if self._channel is None:
            raise UpstreamError("McpConnectionLost")
        return self._channel

    @asynccontextmanager
    async def _in_time(self, deadline: float) -> AsyncIterator[None]:
        """What takes until the deadline at most, and does not begin after it."""
        if asyncio.get_running_loop().time() >= deadline:
            raise UpstreamError("McpDeadlineExceeded")
        try:
            async with asyncio.timeout_at(deadline):
                yield
        except TimeoutError:
            resolving = self._channel is not None and self._channel.resolving
            raise UpstreamError("McpDnsTimeout" if resolving else "McpTimeout") from None

    async def _open(self, received: int = 0) -> None:
        self._channel = await self._connect()
        self._channel.begin(received)
        offered = {"protocolVersion": REVISIONS[0], "capabilities": {}, "clientInfo": _CLIENT}
        try:
            reply = await self._reply("initialize", offered)
        finally:
            self._pending = None  # this request is never called off
        if (revision := reply.result.get("protocolVersion")) not in REVISIONS:
            raise UpstreamError("McpProtocolVersion")
        await self._channel.agree(revision)
        await self._channel.tell(notification("notifications/initialized"))

    async def _open_again(self) -> None:
        channel, self._channel = self._opened, None
        self._fresh, self._pending = True, None
        await channel.close()
        try:
            await self._open(channel.received)
        except NotStartedError:
            raise UpstreamError("McpConnectionLost") from None  # the one before had been used already

    async def _listed(self, page_limit: int) -> Listed:
        pages = [await self._page(0, None)]
        cursors: set[str] = set()
        while (cursor := pages[-1].result.get("nextCursor")) is not None:
            if not isinstance(cursor, str) or cursor in cursors or len(pages) >= page_limit:
                raise InvalidListError
            cursors.add(cursor)
            pages.append(await self._page(len(pages), cursor))
        if [page.frame for page in pages] != [page.frame for page in self._pages]:
            self._raw = hashlib.sha256(b"\n".join(page.frame for page in pages)).digest()
        self._pages = pages
        tools = [tool for page in pages for tool in page.result["tools"]]
        return Listed(tools, sum(page.size for page in pages), self._raw)

    async def _page(self, index: int, cursor: str | None) -> _Reply:
        known = self._pages[index] if index < len(self._pages) else None
        page = await self._reply("tools/list", {} if cursor is None else {"cursor": cursor}, known=known)
        tools = page.result.get("tools")
        if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
            raise InvalidListError
        return page

    async def _reply(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        sent: Callable[[], None] | None = None,
        known: _Reply | None = None,
    ) -> _Reply:
        """The reply to a request. One that says the same as a `known` one is not read again."""
        channel, size = self._opened, 0
        self._last_id = self._pending = request_id = self._last_id + 1
        await channel.ask(request(request_id, method, params), sent)
        while True:
            frame = await channel.next()
            size += len(frame)
            bare = without_id(frame, request_id) if method == "tools/list" else None
            if known is not None and known.frame == bare:
                self._pending = None
                return _Reply(known.frame, known.result, size)
            read = await message(frame)
            if read.method is None:
                if read.id != request_id:
                    raise UpstreamError("McpProtocolError")
                self._pending = None
                if read.result is None:
                    raise UpstreamError("McpErrorReply")
                return _Reply(bare or frame, read.result, size)
            if read.id is not None:
                await channel.tell(answer(read))


def _is_tool_result(result: Mapping[str, Any]) -> bool:
    return (
        isinstance(result.get("content"), list)
        and isinstance(result.get("structuredContent"), dict | None)
        and isinstance(result.get("isError", False), bool)
    )
