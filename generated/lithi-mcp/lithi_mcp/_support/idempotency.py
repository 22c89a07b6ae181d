"""The key under which a service does a call once, however often it is sent."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .call import Call
from .fingerprint import digest

PARAMETER: Final = "idempotency_key"
_MINTED_BYTES = 16
_HEADER_VALUE = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """What is `sent` to the service, and the member that answers get; none when the key follows from the call."""

    sent: str = field(repr=False)
    told: Mapping[str, str] = field(default_factory=dict, repr=False)


def idempotency_key(call: Call, *, forwarded: bool) -> IdempotencyKey | None:
    """The key of a call; None for a verb that has none.

    `forwarded`: the service gets the caller's own credentials, and so tells the keys of one caller from another's.
    """
    match call.verb.idempotent:
        case "derived" if call.arguments.get(PARAMETER) is None:
            return IdempotencyKey(digest({**_owner(call), "arguments": _arguments(call)}))
        case "derived":
            return IdempotencyKey(_own_key(call, forwarded=forwarded).sent)
        case "key":
            return _own_key(call, forwarded=forwarded)
        case _:
            return None


def _own_key(call: Call, *, forwarded: bool) -> IdempotencyKey:
    key: str | None = call.arguments.get(PARAMETER)
    if key is None:
        key = secrets.token_hex(_MINTED_BYTES)
    if forwarded and _HEADER_VALUE.fullmatch(key):
        return IdempotencyKey(key, {PARAMETER: key})
    # Two callers may choose the same key, and what they choose may be no text that a header can hold.
    return IdempotencyKey(digest({**_owner(call), "key": key}), {PARAMETER: key})


def _owner(call: Call) -> dict[str, str]:
    return {"caller": call.caller.account or call.caller.subject, "verb": call.verb.name}


def _arguments(call: Call) -> dict[str, Any]:
    """The arguments that make a call another one: an account that must be the caller's says nothing new."""
    pinned = (call.registry.access or {}).get("pin") or {}
    return {name: value for name, value in call.arguments.items() if name != PARAMETER and name not in pinned}
