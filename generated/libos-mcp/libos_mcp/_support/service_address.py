"""Where requests go: the rules that the address of a service keeps, whoever configured it."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

_CHARACTERS = 2000
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?")
_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9_.~!$&'()*+,;=:@%-]*)*")
_SCHEMES: Final = frozenset({"http", "https"})


class AddressError(ValueError):
    """Why a text is not taken for an address: a predicate, such as "is empty", that holds nothing of the text."""


def service_address(text: str, *, plain: bool) -> str:
    """`text` as what the paths of requests are put behind. `plain` allows http beyond this machine.

    Raises AddressError.
    """
    parts = _parts(text)
    if parts.username is not None or parts.password is not None:
        raise AddressError("has credentials in it")
    if "?" in text or "#" in text:
        raise AddressError("has a query or a fragment")
    if not _is_host(parts.hostname or ""):
        raise AddressError("has no host, or one that is none")
    if not _PATH.fullmatch(parts.path):
        raise AddressError("has a path with more in it than segments")
    if parts.scheme == "http" and not plain and not is_loopback(parts.hostname or ""):
        raise AddressError("is plain http, which is taken on this machine only")
    return text.rstrip("/")


def is_loopback(host: str) -> bool:
    """Whether a host, a name or an address without brackets, is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def _parts(text: str) -> SplitResult:
    if not text or len(text) > _CHARACTERS:
        raise AddressError("is too long" if text else "is empty")
    # Python's parser drops line breaks and tabs, and others read a backslash as a slash.
    if not (text.isascii() and text.isprintable()) or " " in text or "\\" in text:
        raise AddressError("has characters that no address has")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise AddressError("is not an address") from None
    if parts.scheme not in _SCHEMES:
        raise AddressError("is neither https nor http")
    if port == 0:
        raise AddressError("has the port 0")
    return parts


def _is_host(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return bool(_HOST.fullmatch(host)) and all(0 < len(label) < 64 for label in host.rstrip(".").split("."))
    return True
