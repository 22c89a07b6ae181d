"""Serving with uvicorn: one process, or several that share a socket and the file."""

import os
import socket
from contextlib import suppress

import uvicorn
from uvicorn.supervisors import Multiprocess

from .core import Settings

_BACKLOG = 2048


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on, which wait until somebody serves them. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address)
    listener.listen(_BACKLOG)
    return listener


def serve(settings: Settings, listener: socket.socket, workers: int) -> None:
    """Serve until the process is told to end."""
    os.environ.update(settings.as_environment())
    config = server_config("compute_core.app:from_environment", workers)
    if workers > 1:
        Multiprocess(config, sockets=[listener]).run()
        return
    with suppress(KeyboardInterrupt):  # uvicorn has shut down by then
        uvicorn.Server(config).run(sockets=[listener])


def server_config(app: object, workers: int = 1) -> uvicorn.Config:
    """How every server of this service is set up; `app` is the application, or the name of what makes it."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        factory=isinstance(app, str),
        workers=workers,
        http="h11",
        ws="none",
        lifespan="on",
        access_log=False,  # it would show paths and queries; the service has lines of its own
        proxy_headers=False,
        server_header=False,
        log_level="warning",
    )
