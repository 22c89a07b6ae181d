"""Connections to upstreams: a name is looked up here, and connected to is one of the very addresses that were checked."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Any, TypeAlias

from .manifest_addresses import is_loopback_host, is_public
from .upstream_errors import UpstreamError

if TYPE_CHECKING:
    from httpcore2 import AsyncNetworkStream

Address: TypeAlias = IPv4Address | IPv6Address
Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]

# So many names are looked up at one time. Who gives up waiting cannot stop a look-up, and there are as many names as
# servers are registered.
_MOST_NAMES = 128
_CONNECT_SECONDS = 3.0


class Resolver:
    """Looks up names, each in a thread of its own; whoever asks for one that is being looked up waits for the same."""

    def __init__(self) -> None:
        self._under_way: dict[str, asyncio.Future[list[str]]] = {}

    async def __call__(self, host: str, port: int) -> list[str]:
        """The addresses of a host, in the order in which they are to be tried. Raises OSError, UnicodeError."""
        if (looking := self._under_way.get(host)) is None:
            looking = self._begun(host, port)
        return list(await asyncio.shield(looking))

    def close(self) -> None:
        """Wait for no name any more."""
        for looking in self._under_way.values():
            looking.cancel()

    def _begun(self, host: str, port: int) -> asyncio.Future[list[str]]:
        if len(self._under_way) >= _MOST_NAMES:
            raise OSError("too many names are being looked up")
        loop = asyncio.get_running_loop()
        looking: asyncio.Future[list[str]] = loop.create_future()

        def look_up() -> None:
            found = _looked_up(host, port)
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(_tell, looking, found)

        try:
            # No end of the process waits for it.
            threading.Thread(target=look_up, name="resolve", daemon=True).start()
        except RuntimeError:
            raise OSError("no thread can be started") from None
        self._under_way[host] = looking
        looking.add_done_callback(lambda _done: self._under_way.pop(host, None))
        return looking


class CheckedNetwork:
    """What connections of httpcore2 are made by. All addresses of a host must be public, or all be this machine."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self.resolving = False

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> AsyncNetworkStream:
        """A connection to `host`. Raises UpstreamError."""
        from httpcore2 import AnyIOBackend, ConnectError, ConnectTimeout

        addresses = await self._addresses(host, port)
        for address in addresses:
            # One that nobody answers at must leave time for the others.
            patience = timeout if address is addresses[-1] else _CONNECT_SECONDS
            try:
                return await AnyIOBackend().connect_tcp(address, port, patience, local_address, socket_options)
            except (ConnectError, ConnectTimeout):
                continue
        raise UpstreamError("McpConnectFailed")

    async def _addresses(self, host: str, port: int) -> list[str]:
        addresses = await self._found(host, port)
        if not addresses or not all(_is_allowed(address, is_loopback_host(host)) for address in addresses):
            raise UpstreamError("McpAddressDenied")
        return addresses

    async def _found(self, host: str, port: int) -> list[str]:
        try:
            return [str(ip_address(host))]
        except ValueError:
            pass
        self.resolving = True  # left so when time runs out: then that is what took too long
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError):
            raise UpstreamError("McpDnsFailed") from None
        self.resolving = False
        return found


def _is_allowed(address: str, loopback: bool) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return parsed.is_loopback if loopback else is_public(parsed)


def _looked_up(host: str, port: int) -> list[str] | Exception:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except Exception as error:  # whatever it is: somebody waits
        return error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _tell(looking: asyncio.Future[list[str]], found: list[str] | Exception) -> None:
    if looking.done():
        return
    if isinstance(found, list):
        looking.set_result(found)
    else:
        looking.set_exception(found)
        looking.exception()  # looked at, in case nobody waits for it any more
