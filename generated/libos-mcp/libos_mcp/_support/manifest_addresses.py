"""Where the HTTP server of a manifest may be, and which headers may be set for it."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from .manifest_fields import FieldError
from .service_address import AddressError, service_address

_LOOPBACK_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
# What tells machines of a cloud who they are. Most of it has addresses that are not public anyway.
_METADATA_HOSTS: Final = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}
)
# What is not of the internet, whatever the release of Python knows of it: private, shared, of a link, for tests and
# documentation, with a meaning of its own, reserved, or for many at once; and one where a cloud tells who machines are.
_NOT_PUBLIC_4: Final = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "168.63.129.16/32",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",
        ),
    )
)
_PUBLIC_6: Final = IPv6Network("2000::/3")
# Of these: what has a meaning of its own, with Teredo; documentation; and what leads on to an IPv4 address.
_NOT_PUBLIC_6: Final = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
# Where there is no IPv4, names lead to public addresses of it this way.
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")
# Resolvers take such a name for a number, and the number for an address.
_NUMERIC = re.compile(r"(.*\.)?([0-9]+|0[xX][0-9A-Fa-f]*)\.?")
_QUERY = re.compile(r"[A-Za-z0-9_.~!$&'()*+,;=:@%/?-]*")

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_OWN_HEADERS: Final = frozenset({"baggage", "connection", "host", "last-event-id", "transfer-encoding", "upgrade"})
_OWN_BEGINNINGS: Final = ("accept", "content-", "mcp-", "trace")


def upstream_url(value: Any) -> str:
    """An address that requests may go to, as it is. Raises FieldError, which holds nothing of it."""
    if not isinstance(value, str):
        raise FieldError("must be an address such as https://tools.example.org/mcp")
    address, _, query = value.partition("?")
    if "#" in value:
        raise FieldError("must have no fragment")
    if not _QUERY.fullmatch(query):
        raise FieldError("must have no characters in its query that no address has")
    try:
        service_address(address, plain=True)
    except AddressError as error:
        raise FieldError(f"must be an address such as https://tools.example.org/mcp; it {error}") from None
    parts = urlsplit(value)
    _check_host(parts.hostname or "", parts.scheme)
    return value


def is_loopback_host(host: str) -> bool:
    """Whether a host of an address is this machine, by one of its three names."""
    return _bare(host) in _LOOPBACK_HOSTS


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is one of the whole internet, also where an IPv6 address stands for an IPv4 one."""
    if isinstance(address, IPv6Address):
        if address in _TRANSLATED:
            return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
        return address in _PUBLIC_6 and not any(address in network for network in _NOT_PUBLIC_6)
    return not any(address in network for network in _NOT_PUBLIC_4)


def header_objection(name: str) -> str | None:
    """Why a header cannot be set by a manifest, as a predicate; None when it can."""
    if not _HEADER.fullmatch(name):
        return "is not the name of a header"
    if name.lower() in _OWN_HEADERS or name.lower().startswith(_OWN_BEGINNINGS):
        return "is a header that belongs to the connection or the protocol"
    return None


def _check_host(host: str, scheme: str) -> None:
    if is_loopback_host(host):
        return
    name = _bare(host)
    if scheme == "http":
        raise FieldError("must begin with https; plain http is for localhost, 127.0.0.1 and ::1")
    if name in _METADATA_HOSTS:
        raise FieldError("must not lead to the metadata of a cloud")
    try:
        address = ip_address(name)
    except ValueError:
        if _NUMERIC.fullmatch(name):
            raise FieldError("must have a host that is a name, or an address in its usual form") from None
        return
    if not is_public(address):
        raise FieldError("must have a public address, or be on this machine")


def _bare(host: str) -> str:
    """A host as names are compared: `localhost.` is `localhost`."""
    return host.lower().rstrip(".")
