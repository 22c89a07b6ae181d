"""Everything that is decided about an HTTP request before the SDK sees it; the rest of the server never sees the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as Event

from . import log
from .call import Caller
from .http_answers import RefusedRequestError, refused, refused_message
from .http_body import GoneError, check_size, read_body
from .http_direct import DirectCalls
from .http_envelope import Message, agreed_revision, read_message
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


@dataclass(frozen=True, slots=True)
class _Admitted:
    """A request that goes on."""

    scope: Scope  # as the application gets it
    body: bytes
    message: Message  # which the body holds
    revision: str


class Gate:
    """An ASGI application around another one, which gets only what it can take, in one form, and knows who calls."""

    def __init__(self, app: ASGIApp, entry: Entry, direct: DirectCalls | None = None) -> None:
        """What `direct` can answer does not go to `app`."""
        self._app = app
        self._direct = direct
        self._entry = entry
        self._path = entry.path.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answered = _Answered(send)
        try:
            await self._pass_on(await self._admitted(scope, receive), receive, answered)
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

    async def _pass_on(self, request: _Admitted, receive: Receive, send: Send) -> None:
        if self._direct is not None and await self._direct.answer(
            request.scope, request.message, request.revision, send
        ):
            return
        await self._app(request.scope, _replayed(request.body, receive), send)

    async def _admitted(self, scope: Scope, receive: Receive) -> _Admitted:
        """Raises RefusedRequestError, GoneError."""
        headers = Headers(scope["headers"])
        self._check_target(scope, headers)
        caller = await self._caller(headers)
        check_size(headers, self._entry.body)
        check_content_type(headers)
        check_accept(headers)
        named = protocol_version(headers)
        body = await read_body(receive, self._entry.body)
        message, revision = self._read(body, named)
        return _Admitted(_passed(scope, headers, revision, caller), body, message, revision)

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

    def _read(self, body: bytes, named: str | None) -> tuple[Message, str]:
        request_id: str | int | None = None
        try:
            message = read_message(body)
            request_id = message.id
            return message, agreed_revision(message, named, self._entry.offer)
        except MCPError as error:
            raise refused_message(error, request_id) from None


class _Answered:
    """Sends what it is given, and knows whether there has been anything."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def __call__(self, message: Event) -> None:
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
    waiting: list[Event] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Event:
        return waiting.pop() if waiting else await receive()

    return replay


def _faulty(error: Exception, what: str, status: int) -> RefusedRequestError:
    correlation = log.correlation_id()
    log.failure(what, error, correlation_id=correlation)
    message = f"Something went wrong in the server. The server's log has more under {correlation}."
    return refused(status, message, code=INTERNAL_ERROR)
