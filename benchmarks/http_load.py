"""Clients of an HTTP server, in a process of their own: they keep their connections, and read replies only to their end.

An order comes as a JSON object on stdin: the members of `Load`. The answer is one on stdout: those of `Spent`.
"""

import json
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from selectors import EVENT_READ, DefaultSelector
from typing import Final

from .client import AnswerError
from .http_messages import check_refused, check_reply, missing, request

_PATIENCE_SECONDS: Final = 30.0
_READ_BYTES: Final = 1 << 16
# Calls on each connection before the clock starts.
_EARLIER: Final = 3


@dataclass(frozen=True, slots=True)
class Load:
    """Calls of one server: how many, and how many clients make them, each with one call at a time."""

    port: int
    key: str
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


@dataclass(slots=True)
class _Exchange:
    """A call on its way."""

    number: int
    began: float
    reply: bytes = b""


@dataclass(slots=True)
class _Replies:
    seconds: list[float] = field(default_factory=list)
    texts: list[tuple[int, bytes]] = field(default_factory=list)


def drive(load: Load) -> Spent:
    """Make the calls. Raises AnswerError for an answer that is not right, TimeoutError when there is none."""
    earlier = load.all_calls - load.calls
    requests = [(number, request(number, load.revision, load.port, load.key)) for number in range(load.all_calls)]
    with ExitStack() as opened:
        connections = [opened.enter_context(_connected(load.port)) for _ in range(load.clients)]
        _exchange(connections, requests[:earlier])
        began = time.perf_counter()
        replies = _exchange(connections, requests[earlier:])
        together = time.perf_counter() - began
    for number, reply in replies.texts:
        check_reply(number, reply)
    return Spent(together, replies.seconds)


def see_that_keys_are_checked(port: int, revision: str) -> None:
    """Raises AnswerError if a server answers whoever calls."""
    with _connected(port) as connection:
        replies = _exchange([connection], [(0, request(0, revision, port, "unknown"))])
    check_refused(replies.texts[0][1])


def _connected(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _exchange(connections: Sequence[socket.socket], requests: Sequence[tuple[int, bytes]]) -> _Replies:
    """Send all requests: on each connection the next one as soon as there is a reply to the one before."""
    waiting, replies = iter(requests), _Replies()
    under_way: dict[socket.socket, _Exchange] = {}
    with DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, EVENT_READ)
            _send_next(connection, waiting, under_way)
        while under_way:
            if not (ready := selector.select(_PATIENCE_SECONDS)):
                raise TimeoutError("there was no reply")
            for key, _ in ready:
                assert isinstance(key.fileobj, socket.socket)  # noqa: S101
                _receive(key.fileobj, under_way, replies)
                if key.fileobj not in under_way:
                    _send_next(key.fileobj, waiting, under_way)
    return replies


def _send_next(
    connection: socket.socket, waiting: Iterator[tuple[int, bytes]], under_way: dict[socket.socket, _Exchange]
) -> None:
    if (following := next(waiting, None)) is not None:
        number, text = following
        under_way[connection] = _Exchange(number, time.perf_counter())
        connection.sendall(text)


def _receive(connection: socket.socket, under_way: dict[socket.socket, _Exchange], replies: _Replies) -> None:
    exchange = under_way[connection]
    part = connection.recv(_READ_BYTES)
    if not part:
        raise AnswerError("a connection was closed before there was a reply")
    exchange.reply += part
    if not missing(exchange.reply):
        replies.seconds.append(time.perf_counter() - exchange.began)
        replies.texts.append((exchange.number, exchange.reply))
        del under_way[connection]


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
