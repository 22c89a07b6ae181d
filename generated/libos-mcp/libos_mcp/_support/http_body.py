"""The body of a request, read whole and never further than its limit."""

from __future__ import annotations

from starlette.types import Receive

from .http_answers import RefusedRequestError, refused
from .http_headers import Headers


class GoneError(Exception):
    """The client has closed its connection."""


def check_size(headers: Headers, limit: int) -> None:
    """Raises RefusedRequestError: 413 when the body is said to have more than `limit` bytes, 400 for two sizes of it."""
    lengths = headers.values(b"content-length")
    if lengths and headers.values(b"transfer-encoding"):
        # Whoever stands between may have read the other one, and then sees another request behind this one.
        raise refused(400, "The size of the body is told in two ways.", ((b"connection", b"close"),))
    if any(int(length) > limit for length in lengths):
        raise _too_large(limit)


async def read_body(receive: Receive, limit: int) -> bytes:
    """All of the body. Raises RefusedRequestError 413 for more than `limit` bytes, and GoneError."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise GoneError
        part, more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
    return b"".join(parts)


def _too_large(limit: int) -> RefusedRequestError:
    return refused(413, f"The body has more than {limit} bytes.")
