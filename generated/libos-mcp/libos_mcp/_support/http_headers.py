"""What the headers of a POST have to say before its body is read: that it is JSON, and that any answer will do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from .http_answers import refused

# Names in lower case, as ASGI has them; a name stands as often as it was sent.
HeaderLines: TypeAlias = Sequence[tuple[bytes, bytes]]

PROTOCOL_VERSION: Final = b"mcp-protocol-version"

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_ACCEPT_CHARACTERS: Final = 1000
_WEIGHT = re.compile(r"(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)")


class Headers:
    """The headers of one request."""

    def __init__(self, lines: HeaderLines) -> None:
        self.lines = lines
        self._values: dict[bytes, list[bytes]] = {}
        for name, value in lines:
            self._values.setdefault(name, []).append(value)

    def values(self, name: bytes) -> list[str]:
        """What each line of this name says."""
        return [value.decode("latin-1") for value in self._values.get(name, ())]


def check_content_type(headers: Headers) -> None:
    """Raises RefusedRequestError: 400 unless the body is said to be JSON, 415 for a coding of it that is not read."""
    lines = headers.values(b"content-type")
    if lines == [_JSON] and not headers.values(b"content-encoding"):
        return  # as most say it
    media_type, *parameters = (part.strip().lower() for part in lines[0].split(";")) if len(lines) == 1 else ("",)
    if media_type != _JSON:
        raise refused(400, "The Content-Type has to be application/json.")
    charsets = (parameter[len("charset=") :].strip('"') for parameter in parameters if parameter.startswith("charset="))
    codings = (coding.strip().lower() for coding in headers.values(b"content-encoding"))
    if not all(charset == "utf-8" for charset in charsets) or not all(coding == "identity" for coding in codings):
        raise refused(415, "The body has to be UTF-8, and not compressed.")


def check_accept(headers: Headers) -> None:
    """Raises RefusedRequestError 406 unless the client takes both JSON and a stream of events."""
    accept = ",".join(headers.values(b"accept"))
    if len(accept) > _ACCEPT_CHARACTERS or not _takes_both(accept):
        raise refused(406, f"The client has to accept both {_JSON} and {_EVENTS}.")


def protocol_version(headers: Headers) -> str | None:
    """The revision that the headers name, None without one. Raises RefusedRequestError 400 for several lines."""
    lines = headers.values(PROTOCOL_VERSION)
    if len(lines) > 1:
        # Whoever reads the first one and whoever reads the last one would not agree.
        raise refused(400, "MCP-Protocol-Version stands in more than one line.")
    return lines[0] if lines else None


@lru_cache(maxsize=64)
def _takes_both(accept: str) -> bool:
    ranges = _ranges(accept)
    return all(_weight(ranges, media_type) > 0 for media_type in (_JSON, _EVENTS))


def _ranges(accept: str) -> dict[str, float]:
    """Media ranges with their weights, from 0 to 1."""
    weights: dict[str, float] = {}
    for entry in accept.split(","):
        media_range, *parameters = (part.strip().lower() for part in entry.split(";"))
        weights[media_range] = max(_told_weight(parameters), weights.get(media_range, 0))
    return weights


def _told_weight(parameters: Iterable[str]) -> float:
    told = [parameter[2:].strip() for parameter in parameters if parameter.startswith("q=")]
    if not told:
        return 1
    return float(told[0]) if _WEIGHT.fullmatch(told[0]) else 0


def _weight(ranges: dict[str, float], media_type: str) -> float:
    """How welcome a media type is: the range that says most about it decides."""
    for media_range in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
        if media_range in ranges:
            return ranges[media_range]
    return 0
