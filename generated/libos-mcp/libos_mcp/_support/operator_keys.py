"""Operator keys: what shows that whoever decides an approval, or changes what is registered, may do it."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from hmac import compare_digest
from typing import Final

# 256 bits.
_KEY_BYTES: Final = 32
_NAME_DIGITS: Final = 12


def new_key() -> tuple[str, str]:
    """A key that nobody had before, and its SHA-256 as 64 hex digits, which is all that a policy file holds of it."""
    key = secrets.token_urlsafe(_KEY_BYTES)
    return key, _digest(key)


def is_operator(key: str, digests: Collection[str]) -> bool:
    """Whether `key` is one of those whose SHA-256 these are."""
    found = _digest(key)
    # Every one is looked at, so that how long it takes tells nothing.
    return sum(compare_digest(found, digest) for digest in digests) > 0


def operator_name(key: str) -> str:
    """What the record calls whoever has `key`: too little of its digest to try other keys on."""
    return f"operator:{_digest(key)[:_NAME_DIGITS]}"


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
