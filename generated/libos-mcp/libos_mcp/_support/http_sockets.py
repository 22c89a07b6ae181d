"""The sockets that a server listens on: bound before anything else starts, and looked at for who could reach them."""

from __future__ import annotations

import errno
import socket
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from typing import Any, Final

from .quoting import quoted

# Several addresses get the same port of the system's choice. It may be taken on one of them, so there are more tries.
_TRIES: Final = 8
_UNUSABLE: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


class StartError(Exception):
    """The server cannot start; the text is a sentence for whoever starts it."""


def bound(host: str, port: int, *, loopback_only: bool) -> list[socket.socket]:
    """A socket for each address of `host`, all with one port: `port`, or for 0 one that the system chooses.

    Raises StartError: also where `loopback_only`, and an address that would be listened on is not of the own machine.
    """
    addresses = _addresses(host, port)
    for attempt in range(_TRIES):
        sockets: list[socket.socket] = []
        try:
            for family, address in addresses:
                _add(sockets, family, address)
            if not sockets:
                raise StartError(f"This machine has no address for the host {quoted(host)}.")
            if loopback_only and not all(is_loopback(opened.getsockname()[0]) for opened in sockets):
                raise StartError(_open_to_others(host))
            return sockets
        except StartError:
            close(sockets)
            raise
        except OSError as error:
            close(sockets)
            if port or error.errno != errno.EADDRINUSE or attempt == _TRIES - 1:
                raise StartError(f"Cannot listen on {quoted(host)}, port {port}: {error.strerror}.") from None
    raise AssertionError


def is_loopback(address: str) -> bool:
    """Whether only the own machine can reach an address."""
    parsed = ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return (mapped or parsed).is_loopback


def written(opened: socket.socket) -> str:
    """Where a socket is bound to, as it stands in a URL."""
    host, port = opened.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def close(sockets: list[socket.socket]) -> None:
    """Listen no more: in this process, as others may have the same sockets."""
    for opened in sockets:
        with suppress(OSError):
            opened.close()


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[Any, ...]]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise StartError(f"There is no address for the host {quoted(host)}.") from None
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


def _add(sockets: list[socket.socket], family: socket.AddressFamily, address: tuple[Any, ...]) -> None:
    """Bind one more, on the port of those before. An address that this machine has not is left out."""
    host, port, *rest = address
    try:
        # Named in full, as asyncio sends small answers at once only over what is said to be TCP.
        opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            opened.bind((host, sockets[0].getsockname()[1] if sockets else port, *rest))
            opened.setblocking(False)
        except OSError:
            opened.close()
            raise
    except OSError as error:
        if error.errno not in _UNUSABLE:
            raise
        return
    sockets.append(opened)


def _open_to_others(host: str) -> str:
    return f"Nothing checks who calls, so it is served on this machine alone, and {quoted(host)} can be reached from others."
