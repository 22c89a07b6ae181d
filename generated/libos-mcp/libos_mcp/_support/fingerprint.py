"""One canonical form of JSON, and the digests made of it; whoever knows the form can compute them again."""

from __future__ import annotations

import hashlib
import json
from typing import Any

FINGERPRINT_DIGITS = 16

_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=True, separators=(",", ":"), sort_keys=True)


def canonical_json(value: Any) -> str:
    """`value` as compact ASCII JSON with sorted keys. Raises ValueError for NaN and infinities."""
    return _ENCODER.encode(value)


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of `value`, as 64 hex digits."""
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()


def fingerprint(schema: Any) -> str:
    """The first 16 hex digits of the digest: what a caller quotes of the schema it has read."""
    return digest(schema)[:FINGERPRINT_DIGITS]
