"""Everything that is decided about an HTTP request before the SDK sees it; the rest of the server never sees the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from . import log
from .call import Caller
from .http_answers import RefusedRequestError, refused, refused_message
from .http_body import GoneError, check_size, read_body
from .http_envelope import agreed_revision, read_message
from .http_headers import PROTOCOL_VERSION, HeaderLines, Headers, check_accept, check_content_type, protocol_version
from .http_origins import ServedNames
from .protocols import Offer

# Tells who calls. Raises RefusedRequestError for whoever may not; whatever else it raises lets nobody in either.
Authenticate: TypeAlias = Callable[[HeaderLines], Awaitable[Caller]]

_NOT_PASSED: Final = frozenset({b"mcp-session-id", PROTOCOL_VERSION})


@dataclass(frozen=True, slots=True)
class Entry:
    """Where requests come in, and under which conditions."""

    path: str
    names: ServedNames
    offer: Offer
    authenticate: Authenticate
    body: int  # bytes


class Gate:
    """An ASGI application around another one, which gets only what it can take, in one form, and knows who calls."""

    def __init__(self, app: ASGIApp, entry: Entry) -> None:
        self._app = app
        self._entry = entry
        self._path = entry.path.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answered = _Answered(send)
        try:
            passed, body = await self._admitted(scope, receive)
            await self._app(passed, _replayed(body, receive), answered)
        except RefusedRequestError as refusal:
            await refusal.send(answered)
        except GoneError:
            return  # nobody is left to be told
        except asyncio.CancelledError:
            if answered.begun:
                raise
            # The server ends, and has waited for long enough.
            await refused(503, "The server has been stopped before there was an answer.", code=INTERNAL_ERROR).send(
                answered
            )
        except Exception as error:
            if answered.begun:
                raise
            await _faulty(error, "a request failed", 500).send(answered)

    async def _admitted(self, scope: Scope, receive: Receive) -> tuple[Scope, bytes]:
        """What the application gets instead of `scope`, and the whole body. Raises RefusedRequestError, GoneError."""
        headers = Headers(scope["headers"])
        self._check_target(scope, headers)
        caller = await self._caller(headers)
        check_size(headers, self._entry.body)
        check_content_type(headers)
        check_accept(headers)
        named = protocol_version(headers)
        body = await read_body(receive, self._entry.body)
        revision = self._revision(body, named)
        return _passed(scope, headers, revision, caller), body

    def _check_target(self, scope: Scope, headers: Headers) -> None:
        asked = self._entry.names.check_host(headers)
        self._entry.names.check_origin(headers, asked)
        # As it was sent: another way to write the same path is another path here.
        if scope["raw_path"] != self._path:
            raise refused(404, "There is nothing here.")
        if scope["method"] != "POST":
            raise refused(405, "Only POST is taken here.", ((b"allow", b"POST"),))

    async def _caller(self, headers: Headers) -> Caller:
        try:
            return await self._entry.authenticate(headers.lines)
        except RefusedRequestError:
            raise
        except Exception as error:
            raise _faulty(error, "who calls could not be told", 503) from None

    def _revision(self, body: bytes, named: str | None) -> str:
        request_id: str | int | None = None
        try:
            message = read_message(body)
            request_id = message.id
            return agreed_revision(message, named, self._entry.offer)
        except MCPError as error:
            raise refused_message(error, request_id) from None


class _Answered:
    """Sends what it is given, and knows whether there has been anything."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def __call__(self, message: Message) -> None:
        self.begun = True
        await self._send(message)


def _passed(scope: Scope, headers: Headers, revision: str, caller: Caller) -> Scope:
    """A request in the one form that the SDK takes everywhere, without what is none of its business: keys, above all."""
    kept = [line for line in headers.lines if line[0].startswith(b"mcp-") and line[0] not in _NOT_PASSED]
    told = [
        (b"content-type", b"application/json"),
        (b"accept", b"application/json, text/event-stream"),
        (PROTOCOL_VERSION, revision.encode()),
    ]
    return {**scope, "headers": told + kept, "state": {**scope.get("state", {}), "caller": caller}}


def _replayed(body: bytes, receive: Receive) -> Receive:
    """What gives the body that has been read, and then whatever comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def _faulty(error: Exception, what: str, status: int) -> RefusedRequestError:
    correlation = log.correlation_id()
    log.failure(what, error, correlation_id=correlation)
    message = f"Something went wrong in the server. The server's log has more under {correlation}."
    return refused(status, message, code=INTERNAL_ERROR)
