"""What a service that is trusted with keys replies: a document, or a reason why nobody can be let in just now."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final

from . import log
from .bearer import VerifierError
from .outbound import OutboundError, Received
from .strict_json import Unacceptable, parse

MOST_BYTES: Final = 1 << 20
_OK = 200


async def reply(service: str, request: Awaitable[Received]) -> Received:
    """The reply to `request`, whatever its status. Raises VerifierError when there is none.

    `service` is what it is called in the log, such as "the introspection service".
    """
    try:
        return await request
    except OutboundError as error:
        raise cannot_tell(f"{service} did not reply", how=type(error).__name__, cause=error.cause) from None


def document(service: str, received: Received) -> dict[str, Any]:
    """The JSON object in a reply. Raises VerifierError when it has another status than 200, or is something else."""
    if received.status != _OK:
        raise cannot_tell(f"{service} replied with status {received.status}")
    if received.problem is not None:
        raise cannot_tell(f"the reply of {service} {received.problem}")
    try:
        found = parse(received.body)
    except Unacceptable as error:
        raise cannot_tell(f"the reply of {service} {error.reason}") from None
    if not isinstance(found, dict):
        raise cannot_tell(f"the reply of {service} is no object")
    return found


def cannot_tell(problem: str, **fields: Any) -> VerifierError:
    """The error to raise, once the log has what is wrong. `problem` holds nothing of a key, or of what was replied."""
    log.event("error", "a service that is asked about keys failed", problem=problem, **fields)
    return VerifierError(problem)
