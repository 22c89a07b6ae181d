"""A made-up service on loopback: it keeps what it hears, and answers as a test says, well or badly."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from .wire import PATIENCE

HOP_BY_HOP = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class Heard:
    """A request to the service; the names of `headers` are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class Cut(bytes):
    """An answer after which the connection ends, whatever the answer said."""


# What goes back for a request, as bytes of HTTP; None hangs up without a word.
Answer = Callable[[Heard], bytes | None]


def reply(status: int, body: Any = None, **headers: str) -> bytes:
    """An answer with this JSON body, or with these bytes; `_` in the name of a header is a hyphen."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    told = {"Content-Type": "application/json", "Content-Length": str(len(content))}
    told |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    return f"HTTP/1.1 {status} Told\r\n{lines}\r\n".encode() + content


def always(answer: bytes | None) -> Answer:
    return lambda _heard: answer


def forward(url: str, heard: Heard) -> bytes:
    """What the service at `url` answers to the same request."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)
    try:
        headers = {name: value for name, value in heard.headers.items() if name not in HOP_BY_HOP}
        connection.request(heard.method, heard.target, heard.body or None, headers)
        response = connection.getresponse()
        return reply(response.status, response.read())
    finally:
        connection.close()


class Service:
    """The service at `url`; `answer` may be set anew at any time."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.heard: list[Heard] = []
        self._lock = threading.Lock()
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, heard: Heard) -> bytes | None:
        with self._lock:
            self.heard.append(heard)
        return self.answer(heard)

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="made-up service").start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, service: Service) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.service = service

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nothing to talk about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.service.take(Heard(self.command, self.path, headers, body))
        if answer is None or isinstance(answer, Cut):
            self.close_connection = True
        self.wfile.write(answer or b"")

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing is printed."""


@contextmanager
def service(answer: Answer) -> Iterator[Service]:
    """A service that answers so."""
    running = Service(answer)
    running.start()
    try:
        yield running
    finally:
        running.stop()
