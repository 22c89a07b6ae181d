"""Stubs that hang, as events: each reports when it lives, and its end can be waited for."""

from __future__ import annotations

import os
import signal
import socket

PATIENCE = 60.0  # seconds until a test fails instead of waiting on


class Run:
    """One stub that hangs, or several that it has become."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        self._connection = connection
        self.pid = int(connection.recv(64))

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def has_ended(self) -> bool:
        """Waits until no process of it is left."""
        with self._connection:
            return self._connection.recv(64) == b""


class Runs:
    """Where stubs that hang report."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE)
        self.port = self._listener.getsockname()[1]

    def next(self) -> Run:
        """Waits for the next one."""
        return Run(self._listener.accept()[0])

    def close(self) -> None:
        self._listener.close()
