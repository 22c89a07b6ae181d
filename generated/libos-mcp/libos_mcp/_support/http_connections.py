"""Connections of HTTP clients, each with only so long for what it has to send and to take, and only so many of them."""

from __future__ import annotations

import asyncio
import resource
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# How long a client may take: for the head of a request, for the rest of it, and, once it has its answer, for what it
# still sends of a request that was refused early; then to read some of what waits for it. When the server ends, the rest
# of a request has only so long: nothing has been done about it, so it can be sent again.
_HEAD_SECONDS: Final = 10.0
_BODY_SECONDS: Final = 30.0
_LINGER_SECONDS: Final = 5.0
_READING_SECONDS: Final = 30.0
_LAST_SECONDS: Final = 1.0

_MOST_CONNECTIONS: Final = 1000
_TOO_MANY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)


def most_connections() -> int:
    """How many connections one process takes; half of its files are left for everything else."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MOST_CONNECTIONS if files == resource.RLIM_INFINITY else min(_MOST_CONNECTIONS, files // 2)


class BoundedConnection(H11Protocol):
    """One connection. Who is too slow is cut off: there is nothing left to be said to it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._awaited: object = None
        self._patience: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._most = most_connections()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._most:
            transport.write(_TOO_MANY)
            self._close_for_good()
        else:
            self._wait_for_client()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timer in (self._patience, self._unread):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_client()

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # its answer is under way, or has been given
            self.transport.abort()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._close_for_good()
        elif self.conn.their_state is not h11.IDLE:  # what is idle has its time by uvicorn
            self._wait_for_client()

    def shutdown(self) -> None:
        super().shutdown()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self._wait(_LAST_SECONDS)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._close_for_good()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait_for_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None and not self.transport.is_closing():
            self._unread.cancel()

    def _wait_for_client(self) -> None:
        """Give the client its time for what it has to send next. More bytes of the same thing give it no more time."""
        answered = self.cycle is not None and self.cycle.response_complete
        awaited = (self.conn.their_state, self.cycle, answered)
        if awaited == self._awaited:
            return
        self._awaited = awaited
        if self.conn.their_state is h11.IDLE:
            self._wait(_HEAD_SECONDS)
        elif self.conn.their_state is h11.SEND_BODY:
            self._wait(_LINGER_SECONDS if answered else _BODY_SECONDS)
        else:
            self._wait(None)

    def _wait(self, seconds: float | None) -> None:
        """Cut the client off after this time, unless it is given another one before; None: never."""
        if self._patience is not None:
            self._patience.cancel()
        self._patience = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)

    def _wait_for_reader(self) -> None:
        """Give the client its time to read some of what waits for it, and then again for some of the rest."""
        if self._unread is not None:
            self._unread.cancel()
        self._unread = self.loop.call_later(
            _READING_SECONDS, self._check_reader, self.transport.get_write_buffer_size()
        )

    def _check_reader(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._wait_for_reader()
        else:
            self.transport.abort()

    def _close_for_good(self) -> None:
        """Close, and don't wait for ever for a client to take what it still gets."""
        self.transport.close()
        self._wait_for_reader()
