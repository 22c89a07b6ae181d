"""Stubs that hang, as events: each reports when it lives, and its end can be waited for."""

from __future__ import annotations

import socket


class Runs:
    """Stubs that hang report here: each is a connection that ends when its process does."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(60)
        self.port = self._listener.getsockname()[1]

    def next(self) -> socket.socket:
        connection, _ = self._listener.accept()
        connection.settimeout(60)
        connection.recv(64)
        return connection

    def close(self) -> None:
        self._listener.close()


def ended(run: socket.socket) -> bool:
    """Waits for the process at the other end to be gone."""
    with run:
        return run.recv(64) == b""
