"""Outgoing HTTP requests: bounded in time and size, without redirects, cookies or proxies, over connections that stay."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from ssl import SSLContext

    from httpx2 import AsyncByteStream, AsyncHTTPTransport, Response

# A third of the time at most for connecting, and a third for TLS: when time runs out, the request had been sent.
_CONNECT_SHARE = 3
_CONNECT_SECONDS = 10.0
# Shorter than servers keep a connection, so that few requests meet one that is just being closed.
_IDLE_SECONDS = 4.0
_IDLE_CONNECTIONS = 32
_UNCOMPRESSED: Final = frozenset({"", "identity"})
_RETRY_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request. Its `headers` come after those that every request has, and win over them."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Received:
    """A reply. With a `problem`, a predicate such as "is too long", its body was left unread."""

    status: int
    body: bytes = field(default=b"", repr=False)
    problem: str | None = None
    retry_after: int | None = None  # seconds


class OutboundError(Exception):
    """A request without a reply; `cause` names the type of what went wrong first, for the log."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


class UnreachableError(OutboundError):
    """There is no connection, and nothing of the request was sent."""


class LateReplyError(OutboundError):
    """The request was sent, and time ran out."""


class LostReplyError(OutboundError):
    """The request was sent, as a whole or in part, and the connection ended before the reply did."""


class Outbound:
    """The connections to one service, of one event loop; there are none before the first request."""

    def __init__(self) -> None:
        self._transport: AsyncHTTPTransport | None = None
        self._opening = asyncio.Lock()

    async def send(self, outgoing: Outgoing, *, deadline: float, output: int) -> Received:
        """The reply, whatever its status.

        `deadline` is a time of the running loop, for all of it; `output` is how many bytes the reply may have.
        Raises OutboundError.
        """
        transport = await self._opened(deadline)
        import httpx2

        remaining = deadline - asyncio.get_running_loop().time()
        if remaining <= 0:
            raise UnreachableError("TimeoutError")
        request = httpx2.Request(
            outgoing.method,
            outgoing.url,
            headers=_headers(outgoing),
            content=outgoing.body,
            extensions={"timeout": {"connect": min(_CONNECT_SECONDS, remaining / _CONNECT_SHARE)}},
        )
        try:
            async with asyncio.timeout_at(deadline):
                # A transport alone: clients add redirects, cookies that one caller leaves to the next, and a log of URLs.
                return await _received(await transport.handle_async_request(request), output)
        except TimeoutError:
            raise LateReplyError("TimeoutError") from None
        except httpx2.ConnectTimeout:
            raise UnreachableError("ConnectTimeout") from None
        except httpx2.ConnectError as error:
            raise UnreachableError(_first_cause(error)) from None
        except (httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
            raise LostReplyError(_first_cause(error)) from None

    async def close(self) -> None:
        """Close all connections; a later request makes new ones."""
        if self._transport is not None:
            transport, self._transport = self._transport, None
            await transport.aclose()

    async def _opened(self, deadline: float) -> AsyncHTTPTransport:
        """What has the connections. Raises UnreachableError when it takes too long to make it."""
        if self._transport is not None:
            return self._transport
        if deadline <= asyncio.get_running_loop().time():
            raise UnreachableError("TimeoutError")
        try:
            async with asyncio.timeout_at(deadline), self._opening:
                if self._transport is None:
                    # Loading the library, and whom to trust, takes longer than others should have to wait.
                    self._transport = _transport(await asyncio.to_thread(trust))
                return self._transport
        except TimeoutError:
            raise UnreachableError("TimeoutError") from None


def trust() -> SSLContext:
    """Whom to trust: SSL_CERT_FILE and SSL_CERT_DIR say it, as everywhere; nothing else of the environment counts."""
    import httpx2

    return httpx2.create_ssl_context()


def _transport(trust: SSLContext) -> AsyncHTTPTransport:
    import httpx2

    # How many requests there are at a time is limited where calls are admitted.
    limits = httpx2.Limits(
        max_connections=None, max_keepalive_connections=_IDLE_CONNECTIONS, keepalive_expiry=_IDLE_SECONDS
    )
    return httpx2.AsyncHTTPTransport(verify=trust, trust_env=False, limits=limits)


async def _received(response: Response, output: int) -> Received:
    # Leaving it closes the reply, and also the connection when there is more to come.
    async with aclosing(response):
        retry_after = _seconds(response.headers.get("retry-after", ""))
        if response.headers.get("content-encoding", "").strip().lower() not in _UNCOMPRESSED:
            problem = "is compressed, which was not asked for"
            return Received(response.status_code, problem=problem, retry_after=retry_after)
        body = bytearray()
        # Not by way of `aiter_raw`, which would give the connection back before it is known to be at its end.
        async for chunk in cast("AsyncByteStream", response.stream):
            body += chunk
            if len(body) > output:
                problem = f"is longer than {output} bytes"
                return Received(response.status_code, problem=problem, retry_after=retry_after)
        if _has_more(response):
            await response.extensions["network_stream"].aclose()
        return Received(response.status_code, bytes(body), retry_after=retry_after)


def _has_more(response: Response) -> bool:
    """Whether more than the reply has come already: the next request would get that for its own reply.

    The library keeps it, and does not tell; where it cannot be found, the answer is yes.
    """
    found: Any = response.stream
    for name in ("_httpcore_stream", "_stream", "_connection", "_h11_state"):
        found = getattr(found, name, None)
    return found is None or bool(found.trailing_data[0])


def _headers(outgoing: Outgoing) -> dict[str, str]:
    headers = {
        "accept": "application/json, */*;q=0.1",
        "accept-encoding": "identity",
        "user-agent": "verbc",  # some services refuse requests without one
        **{name.lower(): value for name, value in outgoing.headers.items()},
    }
    return headers if outgoing.body is None else {"content-type": "application/json", **headers}


def _seconds(text: str) -> int | None:
    """The number of seconds that a `Retry-After` asks to wait; None for a date, and for what is neither."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _RETRY_DIGITS else None


def _first_cause(error: BaseException) -> str:
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return type(error).__name__
