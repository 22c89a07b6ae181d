"""A server over HTTP in a thread of its own, on a port that the system chose, and what a client of raw sockets needs."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from verbc.support.call import LOCAL
from verbc.support.http_app import HttpApp
from verbc.support.http_callers import anybody
from verbc.support.http_gate import Authenticate
from verbc.support.http_sockets import bound
from verbc.support.registry import Registry
from verbc.support.serve_http import HttpServer
from verbc.support.server_mcp import build_server

from .raw_server import PATIENCE
from .samples import Functions, Work

MODERN = "2026-07-28"
OLDER = "2025-06-18"
NAMED = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


class HttpThread:
    """A server over `Functions`; `http` are changes to how the registry has it served."""

    def __init__(
        self,
        registry: Registry,
        *,
        works: Mapping[str, Work] | None = None,
        authenticate: Authenticate | None = None,
        **http: Any,
    ) -> None:
        assert registry.serve.http is not None
        self.backend = Functions(works or {})
        server = build_server(registry, {"local": self.backend, "li": self.backend})
        app = HttpApp(
            server, registry, replace(registry.serve.http, **http), authenticate or anybody(LOCAL).authenticate
        )
        (self._socket,) = bound("127.0.0.1", 0, loopback_only=True)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._started = threading.Event()
        self.server = HttpServer(app, self._started.set)
        self._thread = threading.Thread(target=self._run)
        self.loop: asyncio.AbstractEventLoop
        self.error: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(PATIENCE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        """Tell it to end, if it has not ended yet."""
        with suppress(RuntimeError):  # its loop is closed
            self.loop.call_soon_threadsafe(self.server.stop)

    def connect(self, *, receive_buffer: int | None = None) -> RawConnection:
        return RawConnection(self.port, receive_buffer)

    def exchange(self, request: bytes) -> Reply:
        """The answer to one request on a connection of its own."""
        with self.connect() as connection:
            return connection.exchange(request)

    def post(self, message: Any, *lines: str, revision: str | None = OLDER, **how: Any) -> Reply:
        """The answer to a message that is sent as a client should."""
        return self.exchange(post(message, *lines, revision=revision, **how))

    def move_clock(self, seconds: float) -> None:
        """Let the server believe that `seconds` have passed."""

        def move() -> None:
            now = self.loop.time
            self.loop.time = lambda: now() + seconds  # type: ignore[method-assign]

        self.loop.call_soon_threadsafe(move)

    @property
    def connections(self) -> int:
        return len(self.server.server_state.connections)

    def turn(self) -> None:
        """Let the server read what was sent before: it answers others after that."""
        for _ in range(2):
            assert self.post(listing()).status == 200

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that the server does by itself, one turn after the other."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end
            self.turn()

    def _run(self) -> None:
        try:
            with asyncio.Runner() as runner:
                self.loop = runner.get_loop()
                runner.run(self.server.serve([self._socket]))
        except BaseException as error:
            self.error = error
            self._started.set()


@dataclass(frozen=True)
class Reply:
    """What came back. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, Sequence[str]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, int]:
        """The status, and the code of the JSON-RPC error."""
        return self.status, self.json["error"]["code"]

    @property
    def result(self) -> Any:
        assert self.status == 200, self.body
        return self.json["result"]

    def header(self, name: str) -> str | None:
        lines = self.headers.get(name, [])
        assert len(lines) <= 1
        return lines[0] if lines else None


class RawConnection:
    """One TCP connection, over which exactly those bytes go that it is given."""

    def __init__(self, port: int, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(PATIENCE)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def exchange(self, request: bytes) -> Reply:
        self.send(request)
        return self.reply(with_body=not request.startswith(b"HEAD "))

    def head(self) -> tuple[int, dict[str, list[str]]]:
        """The status and the headers of the next answer; those that only say to go on are passed over."""
        status = 100
        headers: dict[str, list[str]] = {}
        while status == 100:
            status = int(self._file.readline().split()[1])
            headers = {}
            while line := self._file.readline().strip():
                name, _, value = line.decode("latin-1").partition(":")
                headers.setdefault(name.lower(), []).append(value.strip())
        return status, headers

    def reply(self, *, with_body: bool = True) -> Reply:
        """The next answer."""
        status, headers = self.head()
        if not with_body:
            return Reply(status, headers, b"")
        if headers.get("transfer-encoding") == ["chunked"]:
            return Reply(status, headers, b"".join(iter(self.chunk, b"")))
        size = headers.get("content-length", [None if headers.get("connection") == ["close"] else "0"])[0]
        return Reply(status, headers, self._file.read(None if size is None else int(size)))

    def chunk(self) -> bytes:
        """The next piece of a body that comes in pieces, empty at its end."""
        size = int(self._file.readline(), 16)
        data = self._file.read(size)
        self._file.readline()
        return data

    def read(self, size: int) -> bytes:
        return self._file.read(size)

    def rest(self) -> int:
        """How many bytes still come before the connection is over."""
        size = 0
        try:
            while data := self._file.read1():
                size += len(data)
        except ConnectionResetError:
            pass
        return size

    def is_over(self) -> bool:
        """Wait for the server to close; whether it said nothing more before."""
        try:
            return self._file.read() == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def until_refused(port: int) -> None:
    """Wait until nobody listens any more."""
    with suppress(ConnectionError):
        while True:
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE).close()


def calling(tool: str, arguments: Any = None, request_id: Any = 1, **meta: Any) -> dict[str, Any]:
    """A request that calls a tool."""
    params = {"name": tool, "arguments": arguments or {}, **({"_meta": meta} if meta else {})}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


def listing(request_id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/list", "params": {}}


def initializing(revision: str = OLDER) -> dict[str, Any]:
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


def modern(message: dict[str, Any], revision: str = MODERN) -> dict[str, Any]:
    """A message of the newer era: it names its revision itself."""
    params = message.get("params", {})
    meta = {**params.get("_meta", {}), NAMED: revision, CAPABILITIES: {}}
    return {**message, "params": {**params, "_meta": meta}}


def modern_lines(message: dict[str, Any]) -> list[str]:
    """The headers that go with a message of the newer era, beside that of its revision."""
    name = message.get("params", {}).get("name")
    return [f"Mcp-Method: {message['method']}", *([f"Mcp-Name: {name}"] if name else [])]


def post(
    message: Any,
    *lines: str,
    revision: str | None = OLDER,
    target: str = "/mcp",
    without: Sequence[str] = (),
    chunks: Sequence[int] | None = None,
) -> bytes:
    """A POST of a message, or of bytes as they are.

    `lines` come after the usual headers, of which those in `without` are left out; `chunks` are the sizes of the pieces
    in which the body is sent.
    """
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    framing = "Transfer-Encoding: chunked" if chunks is not None else f"Content-Length: {len(body)}"
    usual = [
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        framing,
        *([f"MCP-Protocol-Version: {revision}"] if revision is not None else []),
    ]
    if isinstance(message, dict) and revision == MODERN and "method" in message:
        usual += modern_lines(message)
    kept = [line for line in usual if line.partition(":")[0].lower() not in [name.lower() for name in without]]
    head = "\r\n".join([f"POST {target} HTTP/1.1", *kept, *lines, "", ""]).encode("latin-1")
    return head + (body if chunks is None else chunked(body, chunks))


def chunked(body: bytes, sizes: Sequence[int]) -> bytes:
    """A body in pieces of these sizes, and one of what is left."""
    pieces = []
    for size in sizes:
        pieces.append(body[:size])
        body = body[size:]
    return (
        b"".join(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in [*pieces, body] if piece) + b"0\r\n\r\n"
    )
