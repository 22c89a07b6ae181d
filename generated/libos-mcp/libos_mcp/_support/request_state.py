"""What a client keeps for the server until it sends a call again: sealed, so that it comes back as it was or not at all."""

from __future__ import annotations

import base64
import hmac
import json
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Self

from mcp.server.request_state import AESGCMRequestStateCodec, InvalidRequestState

from .fingerprint import canonical_json
from .own_variables import state_keys_variable
from .quoting import quoted

_KEY_BYTES: Final = 32
_LIFETIME_SECONDS: Final = 900.0
_MOST_CHARACTERS: Final = 1024
_HEX: Final = re.compile(r"[0-9A-Fa-f]+")
_BASE64URL: Final = re.compile(r"([A-Za-z0-9_-]+)={0,2}")
# Made when this is loaded, which is before a server has workers: all of them have the same one.
_OWN_KEY: Final = secrets.token_bytes(_KEY_BYTES)


class StateKeysError(Exception):
    """The keys cannot be used; the text says which one, and nothing of what it is."""


def state_keys(package: str, environ: Mapping[str, str]) -> tuple[bytes, ...]:
    """The keys in the variable `<PACKAGE>_STATE_KEYS`, or one that only this process and its workers know.

    Raises StateKeysError.
    """
    variable = state_keys_variable(package)
    if not (text := environ.get(variable)):
        return (_OWN_KEY,)
    keys = [_key(entry.strip()) for entry in text.split(",")]
    for number, key in enumerate(keys, 1):
        if key is None or len(key) < _KEY_BYTES:
            wanted = f"a key of at least {_KEY_BYTES} bytes in hexadecimal digits or base64url"
            raise StateKeysError(f"Entry {number} of {quoted(variable)} must be {wanted}.")
        if key in keys[: number - 1]:
            raise StateKeysError(f"Entry {number} of {quoted(variable)} is there twice; leave one out.")
    return tuple(key for key in keys if key is not None)


class Seal:
    """Seals with the first of its keys, and knows what was sealed with any of them.

    What is sealed says which approval was asked for, and for which call; and it is too old after 15 minutes.
    """

    def __init__(self, keys: Sequence[bytes], package: str, now: Callable[[], float] = time.time) -> None:
        # Made of the keys, as others may have the same ones for seals of their own.
        own = [hmac.digest(key, f"approvals of {package}".encode(), "sha256") for key in keys]
        self._codec = AESGCMRequestStateCodec(own)
        self._now = now

    @classmethod
    def of(cls, package: str, environ: Mapping[str, str]) -> Self:
        """With the keys of a package. Raises StateKeysError."""
        return cls(state_keys(package, environ), package)

    def seal(self, approval_id: str, call: str) -> str:
        """What the client gets. `call` is the digest of all that makes a call this one and no other."""
        state = {"approval": approval_id, "call": call, "until": int(self._now() + _LIFETIME_SECONDS)}
        return self._codec.seal(canonical_json(state).encode())

    def holds(self, sealed: str, approval_id: str, call: str) -> bool:
        """Whether `sealed` was made for this approval and this call, not too long ago."""
        if len(sealed) > _MOST_CHARACTERS:
            return False
        try:
            state = json.loads(self._codec.unseal(sealed))
        except InvalidRequestState:
            return False
        return (state["approval"], state["call"]) == (approval_id, call) and self._now() < state["until"]


def _key(text: str) -> bytes | None:
    if _HEX.fullmatch(text):  # and no base64, which nothing that was made by chance would be taken for
        return bytes.fromhex(text) if len(text) % 2 == 0 else None
    found = _BASE64URL.fullmatch(text)
    if found is None or len(found[1]) % 4 == 1:
        return None
    return base64.urlsafe_b64decode(found[1] + "=" * (-len(found[1]) % 4))
