"""Who sends a request over HTTP: the bearer key in its headers, and what a verifier knows of that key."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from . import log
from .call import Caller

# RFC 6750 leaves the length open. No key is longer than this, and a longer one would cost time before it is refused.
_CREDENTIALS = re.compile(rb"(?i:bearer) +([!-~]{1,4096})")
_CHALLENGE: Final = 'Bearer realm="mcp"'


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom a good key stands for, and until when."""

    subject: str
    account: str | None = None
    scopes: frozenset[str] = frozenset()
    expires_at: float | None = None  # seconds since 1970


class Verifier(Protocol):
    """Knows which keys are good."""

    async def verify(self, key: str) -> Identity | None:
        """Whom `key` stands for; None when it is not a good key. Raises VerifierError when that cannot be told."""


class VerifierError(Exception):
    """It cannot be told whether a key is good, so nobody is let in. The text may be logged; it holds nothing of the key."""


class NotAuthenticatedError(Exception):
    """A request comes without a key that is good. Its text is for whoever sent it, and holds nothing of what was sent.

    `challenge` is the value of the header `WWW-Authenticate`.
    """

    def __init__(self, message: str, error: str | None = None) -> None:
        super().__init__(message)
        self.challenge = _CHALLENGE if error is None else f'{_CHALLENGE}, error="{error}"'


async def authenticate(headers: Sequence[tuple[bytes, bytes]], verifier: Verifier) -> Caller:
    """Who calls. `headers` have their names in lower case, each as often as it was sent.

    Raises NotAuthenticatedError, and VerifierError when it cannot be told.
    """
    key = _key(headers)
    identity = await _identity(key, verifier)
    if identity is None or (identity.expires_at is not None and identity.expires_at <= time.time()):
        raise NotAuthenticatedError("The key is not good, or not any more.", "invalid_token")
    return Caller(identity.subject, identity.account, identity.scopes, key)


def _key(headers: Sequence[tuple[bytes, bytes]]) -> str:
    lines = [value for name, value in headers if name == b"authorization"]
    if not lines:
        raise NotAuthenticatedError("A key is needed, in the header Authorization.")
    if len(lines) > 1:
        raise NotAuthenticatedError("There is more than one header Authorization.", "invalid_request")
    if (match := _CREDENTIALS.fullmatch(lines[0].strip(b" \t"))) is None:
        raise NotAuthenticatedError("The header Authorization has to be the word Bearer and a key.", "invalid_request")
    return match[1].decode("ascii")


async def _identity(key: str, verifier: Verifier) -> Identity | None:
    try:
        return await verifier.verify(key)
    except VerifierError:
        raise
    except Exception as error:
        log.failure("a verifier failed", error)
        raise VerifierError("The verifier failed.") from None
