"""An upstream over streamable HTTP: a POST for each message, replies as JSON or events, and nothing but that."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from .manifest_transport import Http
from .outbound import trust
from .upstream_addresses import CheckedNetwork, Resolve, Resolver
from .upstream_errors import UpstreamError
from .upstream_http_reply import HttpReply, header, told_by_name
from .upstream_messages import most_in_message, most_in_operation

if TYPE_CHECKING:
    from ssl import SSLContext

    from httpcore2 import AsyncConnectionPool, AsyncNetworkBackend, Request, Response

    from .manifest import Manifest

# The request for a session's end is not waited for any longer.
_PARTING_SECONDS = 2.0
_CONNECTIONS = 4
# The end of a reply mostly comes with its last message.
_REST_SECONDS = 0.02
_UNCOMPRESSED: Final = frozenset({b"", b"identity"})
_SESSION_ID = re.compile(rb"[\x21-\x7e]{1,1024}")
_OK, _NOT_FOUND = 200, 404
_HEADERS: Final = (
    (b"accept", b"application/json, text/event-stream"),
    (b"accept-encoding", b"identity"),
    (b"user-agent", b"verbc"),  # some services refuse requests without one
)


class HttpNetwork:
    """What all channels have in common: whom to trust, and how names are looked up."""

    def __init__(self) -> None:
        self.resolve = Resolver()
        self._loading = asyncio.Lock()
        self._trust: SSLContext | None = None

    async def trust(self, url: str) -> SSLContext | None:
        """Whom to trust at an address, if that is asked there. Raises UpstreamError."""
        if urlsplit(url).scheme == "http":
            return None
        async with self._loading:
            if self._trust is None:
                try:
                    # It takes longer than others should have to wait.
                    self._trust = await asyncio.to_thread(trust)
                except OSError:
                    raise UpstreamError("McpStartFailed") from None
        return self._trust

    def close(self) -> None:
        """Look up no more names."""
        self.resolve.close()


async def open_http(
    manifest: Manifest, headers: Mapping[str, str], network: HttpNetwork, contacted: Callable[[], None]
) -> HttpChannel:
    """A way to the address of a manifest; `contacted` is called once all is there, before the first request."""
    url = cast("Http", manifest.transport).url
    channel = HttpChannel(url, headers, manifest.max_response_bytes, network.resolve, await network.trust(url))
    contacted()
    return channel


class HttpChannel:
    """The connections of one session. A reply is read as it is waited for."""

    def __init__(
        self, url: str, headers: Mapping[str, str], response_bytes: int, resolve: Resolve, trusted: SSLContext | None
    ) -> None:
        import httpcore2

        self._url = url
        given = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
        self._headers = [*given, *_HEADERS, (b"host", urlsplit(url).netloc.encode("ascii"))]
        self._network = CheckedNetwork(resolve)
        # Without a proxy, whatever the environment says; HTTP/1.1; and nothing is tried twice.
        self._pool: AsyncConnectionPool = httpcore2.AsyncConnectionPool(
            ssl_context=trusted,
            max_connections=_CONNECTIONS,
            network_backend=cast("AsyncNetworkBackend", self._network),
        )
        self._session_id: bytes | None = None
        self._revision: bytes | None = None
        self._reply: HttpReply | None = None
        self._most_in_frame = most_in_message(response_bytes)
        self._most_received = most_in_operation(response_bytes)
        self._received = 0

    @property
    def usable(self) -> bool:
        return True  # what has ended meanwhile is made anew, or shows when it is used

    @property
    def resolving(self) -> bool:
        return self._network.resolving

    @property
    def received(self) -> int:
        return self._received

    def begin(self, received: int = 0) -> None:
        self._received = received

    async def agree(self, revision: str) -> None:
        await self._leave_reply(_REST_SECONDS)
        self._revision = revision.encode("ascii")

    async def ask(self, frame: bytes, sent: Callable[[], None] | None) -> None:
        with told_by_name():
            await self._leave_reply(_REST_SECONDS)
            response = await self._pool.handle_async_request(self._request("POST", frame, sent))
            try:
                self._reply = self._taken(response)
            except UpstreamError:
                await response.aclose()
                raise

    async def tell(self, frame: bytes) -> None:
        with told_by_name():
            response = await self._pool.handle_async_request(self._request("POST", frame))
            # Read to its end, so that the connection can be used again.
            await HttpReply(response, most_in_message(0), events=False).leave(_REST_SECONDS)
            if not 200 <= response.status < 300:
                raise self._refused(response)

    async def next(self) -> bytes:
        if self._reply is None:
            raise UpstreamError("McpConnectionLost")
        with told_by_name():
            return await self._reply.next(self._count)

    async def close(self) -> None:
        """Close the connections; the upstream is told that the session has ended."""
        try:
            async with asyncio.timeout(_PARTING_SECONDS):
                with suppress(UpstreamError), told_by_name():
                    await self._leave_reply(0)
                    if self._session_id is not None:
                        await (await self._pool.handle_async_request(self._request("DELETE"))).aclose()
        except TimeoutError:
            pass
        finally:
            await self._pool.aclose()

    async def _leave_reply(self, seconds: float) -> None:
        """Let go of a reply, of which the end may still be on its way; without it, the connection is closed."""
        reply, self._reply = self._reply, None
        if reply is not None:
            await reply.leave(seconds)

    def _request(self, method: str, body: bytes | None = None, sent: Callable[[], None] | None = None) -> Request:
        import httpcore2

        headers = list(self._headers)
        if self._session_id is not None:
            headers.append((b"mcp-session-id", self._session_id))
        if self._revision is not None:
            headers.append((b"mcp-protocol-version", self._revision))
        if body is not None:
            headers.append((b"content-type", b"application/json"))
            headers.append((b"content-length", b"%d" % len(body)))
        extensions = {} if sent is None else {"trace": _watch(sent)}
        return httpcore2.Request(method, self._url, headers=headers, content=body, extensions=extensions)

    def _taken(self, response: Response) -> HttpReply:
        if response.status != _OK:
            raise self._refused(response)
        if header(response, b"content-encoding").lower() not in _UNCOMPRESSED:
            raise UpstreamError("McpHttpContentEncodingDenied")
        if given := header(response, b"mcp-session-id"):
            if self._session_id is None and not _SESSION_ID.fullmatch(given):
                raise UpstreamError("McpProtocolError")
            self._session_id = self._session_id or given
        kind = header(response, b"content-type").partition(b";")[0].strip().lower()
        if kind not in (b"application/json", b"text/event-stream"):
            raise UpstreamError("McpHttpContentType")
        return HttpReply(response, self._most_in_frame, events=kind == b"text/event-stream")

    def _refused(self, response: Response) -> UpstreamError:
        if response.status == _NOT_FOUND and self._session_id is not None:
            self._session_id = None
            return UpstreamError("McpSessionLost")
        return UpstreamError("McpHttpStatus", response.status)

    def _count(self, size: int) -> None:
        self._received += size
        if self._received > self._most_received:
            raise UpstreamError("McpHttpOperationTooLarge")


def _watch(sent: Callable[[], None]) -> Callable[[str, Any], Awaitable[None]]:
    """Calls `sent` when the connection is there, and the request is about to go."""

    async def trace(event: str, _information: Any) -> None:
        if event == "http11.send_request_headers.started":
            sent()

    return trace
