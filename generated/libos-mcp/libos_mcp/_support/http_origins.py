"""By which names a server is called, and from which web pages: a page of anybody else must not reach it through a browser."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

from .http_answers import refused
from .http_headers import Headers
from .registry import HttpServe

_AUTHORITY = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>\d{0,5}))?")
# No name is longer, with its port.
_HOST_CHARACTERS: Final = 260
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Authority:
    """A host, IPv6 addresses in their short form and without brackets, and a port where one was named."""

    host: str
    port: int | None
    is_own_machine: bool  # whether every machine calls itself so, and nobody can give the name to his own


class ServedNames:
    """The hosts and origins that are let in: those of the own machine, the host that is listened on, and those named."""

    def __init__(self, http: HttpServe) -> None:
        """Raises ValueError for a host or an origin that cannot be one. Hosts without a port stand for all of their ports."""
        self._hosts = frozenset((*map(_host, http.hosts), *_listened_on(http.host)))
        self._origins = frozenset(map(_origin, http.origins))

    def check_host(self, headers: Headers) -> Authority:
        """The host that a request asks for. Raises RefusedRequestError 421 when it is none of this server's."""
        lines = headers.values(b"host")
        asked = authority(lines[0]) if len(lines) == 1 and len(lines[0]) <= _HOST_CHARACTERS else None
        if asked is None or not (asked.is_own_machine or {asked, replace(asked, port=None)} & self._hosts):
            raise refused(421, "This server is not known by the name that the request has for it.")
        return asked

    def check_origin(self, headers: Headers, asked: Authority) -> None:
        """Raises RefusedRequestError 403 for a web page that may not call: by default all but those of this machine's port."""
        lines = headers.values(b"origin")
        if lines and not (len(lines) == 1 and self._lets_in(lines[0].lower(), asked)):
            raise refused(403, "Web pages of this origin are not let in.")

    def _lets_in(self, origin: str, asked: Authority) -> bool:
        return origin in self._origins or (asked.is_own_machine and origin in _origins_of(asked))


@lru_cache(maxsize=64)
def authority(text: str) -> Authority | None:
    """What `host` or `host:port` says, None when it is neither."""
    match = _AUTHORITY.fullmatch(text.lower())
    if match is None:
        return None
    host, port = match["host"], int(match["port"]) if match["port"] else None
    if host.startswith("["):
        try:
            host = str(IPv6Address(host[1:-1]))
        except ValueError:
            return None
    return Authority(host, port, _is_own_machine(host)) if port is None or port < 1 << 16 else None


def _is_own_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _listened_on(host: str) -> list[Authority]:
    """The names that a server has from where it listens: none where that is everywhere."""
    try:
        address = ip_address(host)
    except ValueError:
        named = authority(host)
        return [] if named is None else [named]
    return [] if address.is_unspecified else [Authority(str(address), None, address.is_loopback)]


def _host(text: str) -> Authority:
    if (host := authority(text)) is None:
        raise ValueError(f"`{text}` is no host.")
    return host


def _origin(text: str) -> str:
    """An origin as browsers write it."""
    scheme, separator, rest = text.lower().partition("://")
    if not separator:
        raise ValueError(f"`{text}` is no origin.")
    if scheme not in _DEFAULT_PORTS:
        return text.lower()  # those of browser extensions and the like
    if (host := authority(rest)) is None:
        raise ValueError(f"`{text}` is no origin.")
    return _written(scheme, host)


def _origins_of(host: Authority) -> set[str]:
    return {_written(scheme, host) for scheme in _DEFAULT_PORTS}


def _written(scheme: str, authority: Authority) -> str:
    host = f"[{authority.host}]" if ":" in authority.host else authority.host
    told = "" if authority.port in (None, _DEFAULT_PORTS[scheme]) else f":{authority.port}"
    return f"{scheme}://{host}{told}"
