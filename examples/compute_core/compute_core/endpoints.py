"""The way of a request: its key, its size, its shape, the scope, the account, the operation; then the reply.

Operations are ordinary functions and run in threads, so waiting for the file holds up nobody else. One that has begun
runs to its end, also when the client is gone.
"""

import re
import sqlite3
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from .access import authenticated, check_account, check_scope
from .accounts import Caller
from .canonical import canonical_json
from .core import Asked, Core, Reply
from .log import log_fault, log_reply
from .reading import parsed, shaped, unfit
from .refusal import Refusal, not_found
from .shapes import ACCOUNT_PATTERN, Strict

BODY_LIMIT = 256 * 1024  # bytes

Answer = Callable[[Request], Awaitable[Reply]]
Endpoint = Callable[[Request], Awaitable[Response]]
Shape = TypeVar("Shape", bound=Strict)

_ACCOUNT = re.compile(ACCOUNT_PATTERN.removesuffix("$"))
_REQUEST_KEY = re.compile("[!-~]{1,255}")


def posting(core: Core, scope: str, shape: type[Shape], operation: Callable[[Core, Asked[Shape]], Reply]) -> Endpoint:
    """The endpoint of an operation that takes a JSON body of this shape, for keys with this scope."""

    async def answer(request: Request) -> Reply:
        caller = await run_in_threadpool(authenticated, core, request.headers)
        content = await body_of(request, "application/json", BODY_LIMIT)
        return await run_in_threadpool(operate, request, caller, content)

    def operate(request: Request, caller: Caller, content: bytes) -> Reply:
        _query_account(request, allowed=False)
        key = _request_key(request)
        value = parsed(content)
        body = shaped(shape, value)
        check_scope(caller, [scope])
        check_account(caller, value)
        return operation(core, Asked(caller, body, key))

    return guarded(answer)


def reading(core: Core, scopes: Collection[str], operation: Callable[[Core, Caller, str], Reply]) -> Endpoint:
    """The endpoint of an operation that takes the handle in the path, for keys with one of these scopes."""

    def operate(request: Request) -> Reply:
        caller = authenticated(core, request.headers)
        account = _query_account(request)
        check_scope(caller, scopes)
        check_account(caller, account)
        return operation(core, caller, request.path_params.get("handle", ""))

    async def answer(request: Request) -> Reply:
        return await run_in_threadpool(operate, request)

    return guarded(answer)


def guarded(answer: Answer) -> Endpoint:
    """An endpoint that turns refusals and faults into replies, and logs one line for each."""

    async def guard(request: Request) -> Response:
        try:
            response = _response(await answer(request))
        except Refusal as refusal:
            response = _refused(refusal)
        except ClientDisconnect:
            response = _refused(Refusal(400, "invalid_input"))
        except sqlite3.OperationalError as error:
            log_fault(request.method, error)
            response = _refused(Refusal(503, "unavailable", headers={"Retry-After": "1"}))
        except Exception as error:
            log_fault(request.method, error)
            response = _refused(Refusal(500, "internal"))
        log_reply(request.method, request.scope["route"].path, response.status_code)
        return response

    return guard


async def no_route(_request: Request, error: Exception) -> Response:
    """The reply to a path or method that nothing answers."""
    if not isinstance(error, HTTPException):
        return _refused(Refusal(500, "internal"))
    if error.status_code == 404:
        return _refused(not_found())
    code = "method_not_allowed" if error.status_code == 405 else "invalid_input"
    return _refused(Refusal(error.status_code, code, headers=error.headers))


async def body_of(request: Request, media_type: str, limit: int) -> bytes:
    """The body of a request. Raises Refusal 415 for another media type, and 413 beyond `limit` bytes."""
    given, _, parameters = request.headers.get("content-type", "").lower().partition(";")
    if given.strip() != media_type or parameters.strip().replace('"', "") not in ("", "charset=utf-8"):
        raise Refusal(415, "unsupported_media_type")
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > limit:
            raise Refusal(413, "too_large")
    return bytes(content)


def _query_account(request: Request, *, allowed: bool = True) -> dict[str, str]:
    """The account that a query names, as an object. Raises Refusal 422 for any other query."""
    pairs = request.query_params.multi_items()
    if any(name != "account_id" for name, _ in pairs) or len(pairs) > (1 if allowed else 0):
        expected = "account_id once, or nothing" if allowed else "nothing"
        raise unfit([{"path": "query", "expected": expected}])
    if not all(_ACCOUNT.fullmatch(value) for _, value in pairs):
        raise unfit([{"path": "query.account_id", "expected": f"text that matches {ACCOUNT_PATTERN}"}])
    return dict(pairs)


def _request_key(request: Request) -> str | None:
    given = request.headers.getlist("idempotency-key")
    if not given:
        return None
    if len(given) > 1 or not _REQUEST_KEY.fullmatch(given[0]):
        expected = "one key of at most 255 visible ASCII characters"
        raise unfit([{"path": "header.Idempotency-Key", "expected": expected}])
    return given[0]


def _refused(refusal: Refusal) -> Response:
    return _response(Reply(refusal.content(), refusal.status, refusal.headers))


def _response(reply: Reply) -> Response:
    content = reply.content if isinstance(reply.content, bytes) else canonical_json(reply.content)
    headers = {"Cache-Control": "no-store", **reply.headers}
    return Response(content, reply.status, headers, media_type="application/json")
