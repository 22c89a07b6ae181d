"""Services for tests of requests: one that says byte for byte what a test wants, and a well-behaved one that echoes."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send


@dataclass(frozen=True, slots=True)
class Heard:
    """A request as it came over the wire; the names of headers in lower case."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The one value of a header; None when it is not there."""
        values = [value for key, value in self.headers if key == name]
        assert len(values) <= 1
        return values[0] if values else None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request, and the connection that it came over."""

    heard: Heard
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def say(self, text: bytes) -> None:
        self.writer.write(text)
        await self.writer.drain()


Answer: TypeAlias = Callable[[Exchange], Awaitable[None]]


def reply(status: int = 200, body: Any = None, *headers: str) -> bytes:
    """A whole reply; a body that is not bytes goes as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(content)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + content


class RawService:
    """Answers each request with the next of `answers`, the last one over and over.

    Bytes are sent as they are, and the connection stays open when they are a whole reply. A `hasty` service does not
    wait for the bodies of requests.
    """

    def __init__(self, *answers: bytes | Answer, tls: ssl.SSLContext | None = None, hasty: bool = False) -> None:
        self._answers = [*answers]
        self._tls = tls
        self._hasty = hasty
        self._tasks: set[asyncio.Task[Any]] = set()
        self.heard: list[Heard] = []
        self.connections = 0
        self.ended = asyncio.Event()  # a client has gone away

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while not writer.is_closing() and (heard := await _request(reader, with_body=not self._hasty)) is not None:
                self.heard.append(heard)
                await self._answer(Exchange(heard, reader, writer))
        except (ConnectionError, ssl.SSLError, asyncio.CancelledError):
            pass  # the client or the test has had enough
        finally:
            self.ended.set()
            writer.transport.abort()
            self._tasks.discard(task)

    async def _answer(self, exchange: Exchange) -> None:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        await (exchange.say(answer) if isinstance(answer, bytes) else answer(exchange))


async def _request(reader: asyncio.StreamReader, *, with_body: bool) -> Heard | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    length = int(dict(headers).get("content-length", "0")) if with_body else 0
    return Heard(method, target, headers, await reader.readexactly(length))


async def hang_up(exchange: Exchange) -> None:
    """Take the request, and close the connection."""
    exchange.writer.close()


async def say_nothing(exchange: Exchange) -> None:
    """Take the request, and leave it at that, until the client goes away."""
    await exchange.reader.read()
    exchange.writer.close()


def saying(text: bytes, then: Answer = hang_up) -> Answer:
    """Say something, and then do something else."""

    async def answer(exchange: Exchange) -> None:
        await exchange.say(text)
        await then(exchange)

    return answer


def endless(start: bytes, piece: bytes) -> Answer:
    """Say the same for as long as somebody listens."""

    async def answer(exchange: Exchange) -> None:
        await exchange.say(start)
        while True:
            await exchange.say(piece)

    return answer


@contextmanager
def echoing_service() -> Iterator[str]:
    """The address of a service under uvicorn that tells what reached it: method, raw path, query, body and headers."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(_echo, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


async def _echo(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope, receive)  # without a router, whose patterns take no line breaks
    body = await request.body()
    response = JSONResponse(
        {
            "method": request.method,
            "path": request.scope["raw_path"].decode(),
            "query": request.scope["query_string"].decode(),
            "pairs": request.query_params.multi_items(),
            "body": json.loads(body) if body else None,
            "headers": dict(request.headers.items()),
        }
    )
    await response(scope, receive, send)
