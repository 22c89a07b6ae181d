"""One form of JSON for everything that is digested or signed, so that whoever holds the value can check it."""

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> bytes:
    """`value` as compact ASCII JSON with sorted keys. Raises ValueError for NaN and infinities."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    return text.encode("ascii")


def digest_of(content: bytes) -> str:
    """`sha256:` and the 64 hex digits of the SHA-256 of `content`."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
