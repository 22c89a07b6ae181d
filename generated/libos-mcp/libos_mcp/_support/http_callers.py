"""Who may call over HTTP: anybody on this machine, or whoever shows a key that is good."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from mcp_types import INTERNAL_ERROR

from . import log
from .bearer import NotAuthenticatedError, Verifier, VerifierError
from .bearer import authenticate as by_bearer_key
from .call import Caller
from .http_answers import RefusedRequestError, refused
from .http_gate import Authenticate
from .http_headers import HeaderLines


class OpenVerifier(Verifier, Protocol):
    """A verifier that may have connections of one event loop; there are none before it is first asked."""

    async def close(self) -> None:
        """Close the connections."""


@dataclass(frozen=True, slots=True)
class Callers:
    """How a request tells who calls."""

    authenticate: Authenticate
    verified: bool  # otherwise only this machine may call
    close: Callable[[], Awaitable[None]]  # what telling it has opened


def anybody(caller: Caller) -> Callers:
    """Whoever calls is taken for `caller`."""

    async def authenticate(_headers: HeaderLines) -> Caller:
        return caller

    async def close() -> None:
        pass

    return Callers(authenticate, verified=False, close=close)


def with_keys(verifier: OpenVerifier) -> Callers:
    """Whoever calls shows a key that the verifier knows."""

    async def authenticate(headers: HeaderLines) -> Caller:
        try:
            return await by_bearer_key(headers, verifier)
        except NotAuthenticatedError as error:
            raise _without_key(error) from None
        except VerifierError as error:
            log.event("error", "keys cannot be verified", problem=str(error))
            raise refused(503, "Keys cannot be verified at the moment; try again later.", code=INTERNAL_ERROR) from None

    return Callers(authenticate, verified=True, close=verifier.close)


def _without_key(error: NotAuthenticatedError) -> RefusedRequestError:
    body = {"error": "invalid_token", "error_description": str(error)}
    return RefusedRequestError(401, body, ((b"www-authenticate", error.challenge.encode()),))
