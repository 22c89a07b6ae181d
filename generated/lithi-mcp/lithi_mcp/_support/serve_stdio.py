"""Serves one client over stdin and stdout: strict about what comes in, and never silent about what it cannot take."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, Self

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from pydantic import BaseModel, ValidationError

from .leaving import end_tasks
from .offering_server import OfferingServer
from .pipes import Lines, LineTooLongError, Output, has_hung_up
from .strict_json import DEPTH, Unacceptable, parse
from .surface import compact_json
from .wire import Wire

# Arguments lie a few levels inside their message; those that are too deep get an answer of their own.
_MESSAGE_DEPTH: Final = DEPTH + 8
# Requests that may wait for their answers; with more of them, reading stops.
_MOST_UNANSWERED: Final = 256
# After the end of input, answers that are ready within this time still go out.
_LAST_ANSWERS_SECONDS: Final = 0.3
_LAST_BYTES_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 5.0
_HANG_UP_CHECK_SECONDS: Final = 1.0


async def serve(server: Server[Any], wire: Wire, body: int) -> None:
    """Serve until the input ends or the process is told to stop; whatever runs then is cancelled.

    A message of more than `body` bytes is dropped and answered with an error.
    """
    connection = _Connection(wire, body)
    options = server.create_initialization_options()
    serving = asyncio.ensure_future(server.run(_Incoming(connection), _Outgoing(connection), options))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # which is what `nohup` is for
            loop.add_signal_handler(number, serving.cancel)
    try:
        await asyncio.wait((serving,))
        await connection.output.drain(_LAST_BYTES_SECONDS)
        if isinstance(server, OfferingServer):
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await server.close()
        await end_tasks(_LAST_BYTES_SECONDS)
    finally:
        for descriptor in (wire.incoming, wire.outgoing):
            os.set_blocking(descriptor, True)  # as it was for whoever shares it
    if not serving.cancelled():
        serving.result()


class _Connection:
    """Both directions of the wire, and the number of requests that wait for an answer."""

    def __init__(self, wire: Wire, body: int) -> None:
        self.lines = Lines(wire.incoming, body)
        self.output = Output(wire.outgoing)
        self._descriptor = wire.incoming
        self._body = body
        self._unanswered = 0
        self._answered = asyncio.Event()

    async def next(self) -> SessionMessage | None:
        """The next message that is one, or None at the end. All others are answered here."""
        while True:
            if self._unanswered >= _MOST_UNANSWERED:
                await self._unless_gone(self._until_unanswered(_MOST_UNANSWERED - 1))
            try:
                line = await self.lines.next()
            except LineTooLongError:
                await self._complain(types.INVALID_REQUEST, f"The message has more than {self._body} bytes.")
                continue
            if line is None:
                await self._last_answers()
                return None
            if line.strip() and (message := await self._read(line)) is not None:
                return message

    async def send(self, message: BaseModel) -> None:
        """Send a message, once there is room. Raises BrokenPipeError."""
        try:
            text = message.model_dump_json(by_alias=True, exclude_unset=True)
            await self.output.write(text.encode() + b"\n")
        finally:
            if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                self._settle()
            if self.output.broken:
                self.lines.close()

    async def settle_unanswered(self) -> None:
        """Note that a request gets no answer, because its caller has cancelled it."""
        self._settle()

    def _settle(self) -> None:
        self._unanswered -= 1
        self._answered.set()

    async def _read(self, line: bytes) -> SessionMessage | None:
        try:
            value = parse(line, _MESSAGE_DEPTH)
        except Unacceptable as error:
            await self._complain(types.PARSE_ERROR, f"The message {error.reason}.", _request_id(error.value))
            return None
        model = _model(value)
        try:
            message = model.model_validate(value) if model else None
        except ValidationError:
            message = None
        if isinstance(message, types.JSONRPCRequest):
            self._unanswered += 1
            return SessionMessage(message, ServerMessageMetadata(on_request_unanswered=self.settle_unanswered))
        if message is not None:
            return SessionMessage(message)  # type: ignore[arg-type]
        if model is not types.JSONRPCResponse and model is not types.JSONRPCError:
            await self._complain(types.INVALID_REQUEST, _not_a_request(value), _request_id(value))
        return None

    async def _complain(self, code: int, message: str, request_id: str | int | None = None) -> None:
        error = {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}
        await self._unless_gone(self.output.write(compact_json(error).encode() + b"\n"))

    async def _last_answers(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(0 if self.output.broken else _LAST_ANSWERS_SECONDS):
                await self._until_unanswered(0)

    async def _until_unanswered(self, most: int) -> None:
        while self._unanswered > most:
            self._answered.clear()
            await self._answered.wait()

    async def _unless_gone(self, waiting: Coroutine[Any, Any, None]) -> None:
        """Wait for room, but not for that of a client that has closed its side: then the input is over."""
        task = asyncio.ensure_future(waiting)
        try:
            while not task.done():
                await asyncio.wait((task,), timeout=_HANG_UP_CHECK_SECONDS)
                if not task.done() and has_hung_up(self._descriptor):
                    self.lines.close()
                    return
            if task.exception() is not None:
                self.lines.close()
        finally:
            task.cancel()


class _Incoming:
    """Messages, as the SDK reads them."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    async def receive(self) -> SessionMessage:
        message = await self._connection.next()
        if message is None:
            raise anyio.EndOfStream
        return message

    async def aclose(self) -> None:
        self._connection.lines.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        message = await self._connection.next()
        if message is None:
            raise StopAsyncIteration
        return message

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


class _Outgoing:
    """Messages, as the SDK writes them."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    async def send(self, item: SessionMessage, /) -> None:
        try:
            await self._connection.send(item.message)
        except BrokenPipeError:
            raise anyio.BrokenResourceError from None

    async def aclose(self) -> None:
        """Nothing: what is left to send is sent when the server has ended."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def _model(value: Any) -> type[BaseModel] | None:
    """What a parsed message has to fit, judged by the keys it has."""
    if not isinstance(value, dict):
        return None
    if "method" in value:
        return types.JSONRPCRequest if "id" in value else types.JSONRPCNotification
    if "result" in value:
        return types.JSONRPCResponse
    return types.JSONRPCError if "error" in value else None


def _not_a_request(value: Any) -> str:
    if isinstance(value, list):
        return "Batches are not taken; send one message on each line."
    return "The message is not a JSON-RPC request."


def _request_id(value: Any) -> str | int | None:
    """The id of a message that is not taken, if it has one that can be sent back."""
    request_id = value.get("id") if isinstance(value, dict) else None
    if type(request_id) is int or (type(request_id) is str and request_id.isprintable()):
        return request_id
    return None
