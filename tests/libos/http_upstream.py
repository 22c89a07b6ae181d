"""The scripted upstream over streamable HTTP, in a thread of the tests.

Beside what `upstream.py` says, a script may have `http`, an object with

    form      `json` (default) or `sse`
    status    the status of every reply to a request
    redirect  where every request is sent on to
    headers   further headers of a reply
    encoding  `gzip`: what the body is packed with
    padding   bytes of blanks before the body, or of a comment before the event
    at        the method that these are for; by default all
"""

from __future__ import annotations

import gzip
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from .scripted import Json, Scripted
from .upstream import Deed, Upstream, noise


@dataclass(frozen=True, slots=True)
class Heard:
    """A request as it came; names of headers in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    message: Json


class ScriptedHttp(Scripted):
    """An upstream at an address."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.heard: list[Heard] = []
        self.sessions: set[str] = set()
        self.last_session = ""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="upstream over HTTP")
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def http(self, **headers: Json) -> Json:
        """How a manifest reaches it."""
        return {"url": self.url, **({"headers": headers} if headers else {})}

    def forget(self) -> None:
        super().forget()
        self.heard.clear()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def scripted_http(folder: Path) -> Iterator[ScriptedHttp]:
    """An upstream that serves while this lasts."""
    upstream = ScriptedHttp(folder)
    try:
        yield upstream
    finally:
        upstream.close()


def _handler(scripted: ScriptedHttp) -> type[BaseHTTPRequestHandler]:
    upstream = Upstream(scripted.folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - it is named so there
            """Print nothing."""

        def do_GET(self) -> None:
            self._note(b"")
            self._send(405, b"", {"Allow": "POST, DELETE"})

        def do_DELETE(self) -> None:
            self._note(b"")
            scripted.sessions.discard(self.headers.get("Mcp-Session-Id", ""))
            upstream.note("end")
            self._send(200, b"", {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            message = self._note(body)
            how = upstream.script.get("http", {})
            if how.get("at") not in (None, message.get("method")):
                how = {}
            if "redirect" in how:
                self._send(307, b"", {"Location": how["redirect"]})
                return
            headers = {}
            if message.get("method") == "initialize":
                session = secrets.token_hex(16)
                scripted.sessions.add(session)
                scripted.last_session = session
                headers["Mcp-Session-Id"] = session
            elif self.headers.get("Mcp-Session-Id") not in scripted.sessions:
                self._send(404, b"", {})
                return
            try:
                reply = upstream.reply(message)
            except Deed as deed:
                self._do(str(deed))
                return
            if reply is None:
                self._send(202, b"", headers)
            else:
                self._reply(reply, how, headers)

        def _reply(self, reply: Json, how: Json, headers: dict[str, str]) -> None:
            text = json.dumps(reply).encode()
            padding = int(how.get("padding", 0))
            if how.get("form") == "sse":
                body = b"event: message\ndata: " + b" " * padding + text + b"\n\n"
                headers["Content-Type"] = "text/event-stream"
            else:
                body = b" " * padding + text
                headers["Content-Type"] = "application/json"
            if how.get("encoding") == "gzip":
                body = gzip.compress(body)
                headers["Content-Encoding"] = "gzip"
            self._send(int(how.get("status", 200)), body, {**headers, **how.get("headers", {})})

        def _do(self, deed: str) -> None:
            if deed.partition(" ")[0] in ("die", "hang"):
                self.close_connection = True
                return
            self._send(200, noise(deed), {"Content-Type": "application/json"})

        def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _note(self, body: bytes) -> Json:
            message = json.loads(body) if body else {}
            headers = {name.lower(): value for name, value in self.headers.items()}
            scripted.heard.append(Heard(self.command, self.path, headers, message))
            return dict(message)

        def handle(self) -> None:
            """As it is there; a caller that goes away is none of the test's business."""
            try:
                super().handle()
            except ConnectionError:
                self.close_connection = True

    return Handler
