"""What verb functions build a request from: each value is encoded for its one place, so none can reach beyond it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from .members import given
from .quoting import quoted
from .refusal import Refusal

_PLACE = re.compile(r"<([^<>]+)>")
# What a client may take for the folder itself, or for the one above it, whoever encodes it.
_NO_SEGMENTS: Final = frozenset({"", ".", ".."})
# The client library takes 65536 for the whole address, with what stands before this.
_TARGET_CHARACTERS = 60_000


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request to a service whose address is not said here. What callers gave is in no text that is made of it."""

    method: str
    target: str = field(repr=False)  # path and query, encoded; it begins with a slash
    body: bytes | None = field(default=None, repr=False)  # JSON


def http_request(
    method: str,
    path: str,
    *,
    segments: Mapping[str, Any] | None = None,
    query: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | None = None,
) -> HttpRequest:
    """A request whose `path` has a place `<name>` for each of `segments`. What is None was not given, and is left out.

    Lists in `query` are repeated. `body` is an object, `{}` when nothing was given; None when the verb has none.
    Raises Refusal `invalid_input` for a value that cannot be a segment, and for an address that becomes too long;
    TypeError for a value that has no form where it stands.
    """
    target = _filled(path, segments or {})
    if pairs := _pairs(query or {}):
        target += "?" + "&".join(pairs)
    if len(target) > _TARGET_CHARACTERS:
        raise Refusal("invalid_input", "The arguments are too long for an address.")
    return HttpRequest(method, target, None if body is None else _json(body))


def _filled(path: str, segments: Mapping[str, Any]) -> str:
    return _PLACE.sub(lambda place: _segment(place[1], segments[place[1]]), path)


def _segment(name: str, value: Any) -> str:
    text = _text(value)
    if text in _NO_SEGMENTS:
        raise Refusal("invalid_input", f"{quoted(name)} is a part of an address: not empty, and not `.` or `..`.")
    return quote(text, safe="")


def _pairs(query: Mapping[str, Any]) -> list[str]:
    return [
        f"{quote(name, safe='')}={quote(_text(item), safe='')}"
        for name, value in query.items()
        if value is not None
        for item in (value if isinstance(value, list | tuple) else [value])
    ]


def _json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(given(body), allow_nan=False, separators=(",", ":")).encode("ascii")


def _text(value: object) -> str:
    """A text as it is, a number or boolean in its JSON form."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value, allow_nan=False)
    raise TypeError(f"A value of type {type(value).__name__} has no form in an address.")
