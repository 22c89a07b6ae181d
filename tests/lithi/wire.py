"""HTTP and JSON-RPC as bytes: requests in parts that a test can put out of order, and whatever comes back."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from http.client import HTTPResponse
from typing import Any

# Longer than anything here takes, on any machine; it only keeps a fault from hanging the tests.
PATIENCE = 60.0  # seconds

LEGACY = "2025-06-18"
MODERN = "2026-07-28"
REVISIONS = (LEGACY, MODERN)

BOTH_TYPES = "application/json, text/event-stream"
CLIENT = {"name": "test", "version": "1"}

_META = "io.modelcontextprotocol/"


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. `headers` are pairs, in order, with names in lower case."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """The value of a header, None without it; there must not be several."""
        values = [value for known, value in self.headers if known == name.lower()]
        assert len(values) <= 1, values
        return values[0] if values else None

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """The error of a JSON-RPC answer."""
        answer = self.json
        assert answer["jsonrpc"] == "2.0", answer
        assert "result" not in answer
        return dict(answer["error"])

    @property
    def result(self) -> dict[str, Any]:
        """The result of a JSON-RPC answer."""
        assert self.status == 200, (self.status, self.text)
        answer = self.json
        assert answer["jsonrpc"] == "2.0", answer
        assert "error" not in answer, answer
        return dict(answer["result"])

    @property
    def work(self) -> dict[str, Any]:
        """The structured content of a call that was done."""
        result = self.result
        assert result["isError"] is False, result
        return dict(result["structuredContent"])

    @property
    def refusal(self) -> dict[str, Any]:
        """The refusal that a call was answered with: kind, message, perhaps detail."""
        result = self.result
        assert result["isError"] is True, result
        assert set(result["structuredContent"]) == {"error"}
        return dict(result["structuredContent"]["error"])

    @property
    def whole(self) -> str:
        """Everything of the reply, headers included."""
        return "\n".join(f"{name}: {value}" for name, value in self.headers) + "\n" + self.body.decode("latin-1")

    def holds(self, marker: str) -> bool:
        """Whether this text stands anywhere in the reply."""
        return marker.lower() in self.whole.lower()


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request in parts. Content-Length is added when it is sent, unless `framed` says that it has its own."""

    headers: tuple[tuple[str, str], ...]
    body: bytes
    method: str = "POST"
    target: str = "/mcp"
    framed: bool = False

    def with_header(self, name: str, *values: str) -> Request:
        """The same with these lines of a header in place of those there are; without values, with none."""
        kept = tuple(pair for pair in self.headers if pair[0].lower() != name.lower())
        return replace(self, headers=(*kept, *((name, value) for value in values)))

    def with_body(self, body: bytes | str) -> Request:
        return replace(self, body=body.encode() if isinstance(body, str) else body)

    def with_json(self, message: Any) -> Request:
        return self.with_body(json.dumps(message))

    def with_method(self, method: str) -> Request:
        return replace(self, method=method)

    def chunked(self, size: int = 16_384) -> Request:
        """The same body, sent in chunks of so many bytes."""
        parts = (self.body[start : start + size] for start in range(0, len(self.body), size))
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
        return replace(self.with_header("Transfer-Encoding", "chunked"), body=body, framed=True)

    def encoded(self) -> bytes:
        headers = self.headers if self.framed else (*self.headers, ("Content-Length", str(len(self.body))))
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        return f"{self.method} {self.target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + self.body


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    """A connection to a port of this machine."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        yield connection


def read_reply(connection: socket.socket, method: str = "POST") -> Reply:
    """The next reply on a connection, whole."""
    response = HTTPResponse(connection, method=method)
    try:
        response.begin()
        body = response.read()
        headers = tuple((name.lower(), value) for name, value in response.getheaders())
        return Reply(response.status, headers, body)
    finally:
        response.close()


def message_of(revision: str, method: str, params: Mapping[str, Any] | None = None, id_: Any = 1) -> dict[str, Any]:
    """A JSON-RPC request as a client of this revision makes it."""
    whole = dict(params or {})
    if revision == MODERN:
        whole["_meta"] = {**meta_of(revision), **whole.get("_meta", {})}
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": whole}


def meta_of(revision: str) -> dict[str, Any]:
    """What each request of 2026-07-28 says about its client."""
    return {f"{_META}protocolVersion": revision, f"{_META}clientCapabilities": {}, f"{_META}clientInfo": CLIENT}


def initialize_of(revision: str = LEGACY, **more: Any) -> dict[str, Any]:
    """The first message of a client of the older kind."""
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": CLIENT, **more}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go, and with which key; None sends none."""

    port: int
    key: str | None = None

    def with_key(self, key: str | None) -> Endpoint:
        return Endpoint(self.port, key)

    def request(self, revision: str, message: Any) -> Request:
        """This message with all the headers that belong to it."""
        headers = [
            ("Host", f"127.0.0.1:{self.port}"),
            ("Content-Type", "application/json"),
            ("Accept", BOTH_TYPES),
            ("MCP-Protocol-Version", revision),
            ("Connection", "close"),
        ]
        if self.key is not None:
            headers.append(("Authorization", f"Bearer {self.key}"))
        if revision == MODERN and isinstance(message, dict):
            headers.append(("Mcp-Method", str(message.get("method"))))
            name = (message.get("params") or {}).get("name")
            headers += [("Mcp-Name", name)] if isinstance(name, str) else []
        return Request(tuple(headers), json.dumps(message).encode())

    def send(self, request: Request) -> Reply:
        """The reply to a request on a connection of its own."""
        with connected(self.port) as connection:
            with suppress(ConnectionError):  # who refuses a body need not read it to its end
                connection.sendall(request.encoded())
            return read_reply(connection, request.method)

    def ask(self, revision: str, method: str, params: Mapping[str, Any] | None = None, id_: Any = 1) -> Reply:
        return self.send(self.request(revision, message_of(revision, method, params, id_)))

    def call_request(self, revision: str, tool: str, arguments: Any) -> Request:
        params = {"name": tool, "arguments": arguments}
        return self.request(revision, message_of(revision, "tools/call", params))

    def call(self, tool: str, arguments: Any, revision: str = MODERN) -> Reply:
        return self.send(self.call_request(revision, tool, arguments))


class Client:
    """Sends many requests over one connection; when the server has closed it, over a new one."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._connection = self._connect()

    def _connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._endpoint.port), timeout=PATIENCE)

    def send(self, request: Request) -> Reply:
        ended, _, _ = select.select([self._connection], [], [], 0)
        if ended:
            self.close()
            self._connection = self._connect()
        self._connection.sendall(request.with_header("Connection").encoded())
        return read_reply(self._connection, request.method)

    def call(self, tool: str, arguments: Any, revision: str = MODERN) -> Reply:
        return self.send(self._endpoint.call_request(revision, tool, arguments))

    def close(self) -> None:
        self._connection.close()


Change = Callable[[Request], Request]
