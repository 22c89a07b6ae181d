"""What an upstream replies over HTTP: a message as JSON, or events that hold messages; bounded before anybody reads it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from .upstream_errors import UpstreamError
from .upstream_sse import Events, EventTooLargeError

if TYPE_CHECKING:
    from httpcore2 import Response


class HttpReply:
    """The body of one reply: a message, or events with messages."""

    def __init__(self, response: Response, most_in_frame: int, *, events: bool) -> None:
        self._response = response
        self._chunks = response.aiter_stream()
        self._most = most_in_frame
        self._events = Events(most_in_frame) if events else None
        self._frames: deque[bytes] = deque()

    async def next(self, count: Callable[[int], None]) -> bytes:
        """The next message; `count` is told how much is read. Raises UpstreamError."""
        if self._events is None:
            return await self._whole(count)
        while not self._frames:
            if (chunk := await anext(self._chunks, None)) is None:
                raise UpstreamError("McpConnectionLost")
            try:
                self._frames.extend(self._events.feed(chunk))
            except EventTooLargeError:
                raise UpstreamError("McpHttpSseFrameTooLarge") from None
            count(len(chunk))
        return self._frames.popleft()

    async def leave(self, seconds: float) -> None:
        """Wait for its end, so long at most, and close it."""
        with suppress(TimeoutError, UpstreamError), told_by_name():
            if seconds:
                async with asyncio.timeout(seconds):
                    async for _ in self._chunks:
                        pass
        await self._chunks.aclose()
        await self._response.aclose()

    async def _whole(self, count: Callable[[int], None]) -> bytes:
        body = bytearray()
        async for chunk in self._chunks:
            body += chunk
            if len(body) > self._most:
                raise UpstreamError("McpHttpResponseTooLarge")
            count(len(chunk))
        await self._response.aclose()  # for the next request
        if not body:
            raise UpstreamError("McpConnectionLost")
        return bytes(body)


@contextmanager
def told_by_name() -> Iterator[None]:
    """Tells errors of the library by their names here."""
    import httpcore2

    try:
        yield
    except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
        raise UpstreamError("McpConnectFailed") from None
    except (httpcore2.NetworkError, httpcore2.RemoteProtocolError):
        raise UpstreamError("McpConnectionLost") from None
    except httpcore2.LocalProtocolError:
        raise UpstreamError("McpProtocolError") from None


def header(response: Response, name: bytes) -> bytes:
    """The first value of a header, its name in lower case; empty when it is not there."""
    return next((value.strip() for key, value in response.headers if key.lower() == name), b"")
