"""Serves any number of clients over HTTP, in one process or in several behind the same port."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from . import log
from .http_app import HttpApp
from .http_callers import Callers
from .http_connections import BoundedConnection
from .http_origins import ServedNames
from .http_sockets import StartError, bound, close, written
from .http_workers import STOPPING, Workers
from .leaving import end_tasks, leave
from .registry import HttpServe, Registry
from .server_mcp import McpServer

# A connection that has nothing to do is kept for this long.
_IDLE_SECONDS = 60
# What runs when the server is told to stop may end within this time; then it is cancelled.
_GRACE_SECONDS = 25
# Then it puts its things in order, for which the server's own parts have bounds that are shorter.
_END_SECONDS = 15
_LAST_SECONDS = 1.0
_WAITING_CONNECTIONS = 256


@dataclass(frozen=True, slots=True)
class Serving:
    """What one server over HTTP is made from. Every process that serves builds a `server` of its own."""

    registry: Registry
    http: HttpServe  # as the registry has it, or as it was told at the start
    server: Callable[[], McpServer]
    callers: Callers
    workers: int = 1


def serve(serving: Serving) -> int:
    """Serve until the process is told to stop, and return the exit code. Raises StartError before anything is served."""
    try:
        ServedNames(serving.http)
    except ValueError as error:
        raise StartError(str(error)) from None
    sockets = bound(serving.http.host, serving.http.port, loopback_only=not serving.callers.verified)
    _quieten()

    def started() -> None:
        urls = [f"http://{written(opened)}{serving.http.path}" for opened in sockets]
        log.event("info", "serving over HTTP", urls=urls, workers=serving.workers, replies=serving.http.replies)

    if serving.workers == 1:
        return _run(serving, sockets, None, started)
    workers = Workers(
        serving.workers,
        lambda lifeline, ready: _run(serving, sockets, lifeline, ready),
        lambda: close(sockets),
        _GRACE_SECONDS + _END_SECONDS,
    )
    return workers.run(started)


def _run(serving: Serving, sockets: list[socket.socket], lifeline: int | None, started: Callable[[], None]) -> int:
    app = HttpApp(serving.server(), serving.registry, serving.http, serving.callers.authenticate)
    with asyncio.Runner() as runner:
        runner.run(_serve(HttpServer(app, started), serving.callers, sockets, lifeline))
        leave()
    return 0


async def _serve(server: HttpServer, callers: Callers, sockets: list[socket.socket], lifeline: int | None) -> None:
    loop = asyncio.get_running_loop()
    for number in STOPPING:
        if signal.getsignal(number) != signal.SIG_IGN:
            # One of several may be told by its parent and by whoever told that one: only the parent ends it at once.
            loop.add_signal_handler(number, server.stop if lifeline is None else server.finish)
    if lifeline is not None:
        loop.add_reader(lifeline, server.orphaned, lifeline)
    await server.serve(sockets)
    await callers.close()
    await end_tasks(_LAST_SECONDS)


class HttpServer(uvicorn.Server):
    """Uvicorn, told what it may do, and with somebody else who looks after the signals."""

    def __init__(self, app: HttpApp, started: Callable[[], None]) -> None:
        config = uvicorn.Config(
            app,
            http=BoundedConnection,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            workers=1,
            backlog=1,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        super().__init__(config)
        self._tell_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for opened in sockets or []:
            # Asyncio takes as many at once as may wait, which would leave nothing to the other processes.
            opened.listen(_WAITING_CONNECTIONS)
        if self.started:
            self._tell_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def finish(self) -> None:
        """End when what runs has ended, or has had its time."""
        self.should_exit = True

    def stop(self) -> None:
        """Finish; when this is told again, at once."""
        self.force_exit = self.should_exit
        self.finish()

    def orphaned(self, lifeline: int) -> None:
        """Stop, as the process that started this one is gone."""
        asyncio.get_running_loop().remove_reader(lifeline)
        self.finish()


def _quieten() -> None:
    """Leave out what the libraries tell of each start and each request: it is no news, and some of it is the client's."""
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    logging.getLogger("mcp").setLevel(logging.WARNING)
