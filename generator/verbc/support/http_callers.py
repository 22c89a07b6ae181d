"""Who may call over HTTP: anybody on this machine, or whoever shows a key that is good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .call import Caller
from .http_gate import Authenticate
from .http_headers import Headers


@dataclass(frozen=True, slots=True)
class Callers:
    """How callers are told apart. Every process that serves makes an `authentication` of its own."""

    authentication: Callable[[], Authenticate]
    verified: bool  # otherwise only this machine may call


def anybody(caller: Caller) -> Callers:
    """Whoever calls is taken for `caller`."""

    async def authenticate(_headers: Headers) -> Caller:
        return caller

    return Callers(lambda: authenticate, verified=False)
