"""Clients of an HTTP server, in a process of their own: they keep their connections, and read replies only to their end.

What to do comes as a JSON object on stdin, the members of `Load`; what it took is one on stdout, those of `Spent`.
"""

import json
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from selectors import EVENT_READ, DefaultSelector
from typing import Final

from .client import AnswerError
from .http_messages import check_refused, check_reply, is_whole, request

_PATIENCE_SECONDS: Final = 30.0
_READ_BYTES: Final = 1 << 16
# Calls on each connection before the clock starts.
_EARLIER: Final = 3


@dataclass(frozen=True, slots=True)
class Load:
    """Calls of one server: how many, and how many clients make them, each of which has one call under way at a time."""

    port: int
    key: str = field(repr=False)
    revision: str
    clients: int
    calls: int

    @property
    def all_calls(self) -> int:
        """With those that are made before the clock starts."""
        return self.calls + self.clients * _EARLIER


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds that all calls took together, and each of them for itself."""

    together: float
    each: list[float]


def drive(load: Load) -> Spent:
    """Make the calls. Raises AnswerError for an answer that is not right, OSError when there is none."""
    requests = [(number, request(number, load.revision, load.port, load.key)) for number in range(load.all_calls)]
    earlier = load.all_calls - load.calls
    with ExitStack() as opened:
        connections = [opened.enter_context(_connected(load.port)) for _ in range(load.clients)]
        _Exchange(requests[:earlier]).over(connections)
        exchange = _Exchange(requests[earlier:])
        began = time.perf_counter()
        exchange.over(connections)
        together = time.perf_counter() - began
    for number, reply in exchange.replies:
        check_reply(number, reply)
    return Spent(together, exchange.seconds)


def see_that_keys_are_checked(port: int, revision: str) -> None:
    """Raises AnswerError if a server does not refuse a key that nobody knows, OSError when there is no answer."""
    exchange = _Exchange([(0, request(0, revision, port, "unknown"))])
    with _connected(port) as connection:
        exchange.over([connection])
    check_refused(exchange.replies[0][1])


def _connected(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


@dataclass(slots=True)
class _Call:
    """A call on its way."""

    number: int
    began: float
    reply: bytes = b""


class _Exchange:
    """Requests by their numbers, and then what came back: the seconds that each took, and replies by the same numbers."""

    def __init__(self, requests: Sequence[tuple[int, bytes]]) -> None:
        self.seconds: list[float] = []
        self.replies: list[tuple[int, bytes]] = []
        self._waiting = iter(requests)
        self._under_way: dict[socket.socket, _Call] = {}

    def over(self, connections: Sequence[socket.socket]) -> None:
        """Send all: on each connection the next one as soon as there is a reply to the one before."""
        with DefaultSelector() as selector:
            for connection in connections:
                selector.register(connection, EVENT_READ)
                self._send_next(connection)
            while self._under_way:
                ready = selector.select(_PATIENCE_SECONDS)
                if not ready:
                    raise TimeoutError("there was no reply")
                for key, _ in ready:
                    assert isinstance(key.fileobj, socket.socket)  # noqa: S101
                    self._receive(key.fileobj)

    def _send_next(self, connection: socket.socket) -> None:
        following = next(self._waiting, None)
        if following is not None:
            number, text = following
            self._under_way[connection] = _Call(number, time.perf_counter())
            connection.sendall(text)

    def _receive(self, connection: socket.socket) -> None:
        part = connection.recv(_READ_BYTES)
        if not part:
            raise AnswerError("a connection was closed before there was a reply")
        call = self._under_way[connection]
        call.reply += part
        if is_whole(call.reply):
            self.seconds.append(time.perf_counter() - call.began)
            self.replies.append((call.number, call.reply))
            del self._under_way[connection]
            self._send_next(connection)


def main() -> int:
    try:
        spent = drive(Load(**json.load(sys.stdin)))
    except (AnswerError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(asdict(spent)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
