"""An MCP server as a child process, spoken to in raw JSON lines: for what a well-behaved client cannot say or see."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from tests.warm_starts import Program

# Seconds a server may take to answer; then it is killed, so that a test fails and does not hang.
GIVE_UP_AFTER = 120.0


class McpProcess:
    """Starts the server, shakes hands as a 2025 client, and keeps its stdout and stderr apart."""

    def __init__(self, start: Callable[..., Program], cwd: Path) -> None:
        """`start` takes what `subprocess.Popen` takes of where a program works, and of its files."""
        self._log = (cwd / "server.log").open("wb")
        self._process = start(cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log)
        self.log_path = cwd / "server.log"
        self._next_id = 0

    def __enter__(self) -> Self:
        try:
            self.greeting = self._greet()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        watchdog = threading.Timer(GIVE_UP_AFTER, self._process.kill)
        watchdog.start()
        try:
            yield
        finally:
            watchdog.cancel()

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def close(self) -> int:
        """Ends the input, waits for the server to leave, and gives its exit code. Once closed it stays closed."""
        self._stdin.close()
        with self._watched():
            code = self._process.wait()
        self._stdout.close()
        self._log.close()
        return code

    def kill(self) -> None:
        """Ends the server on the spot, as a crash would."""
        self._process.kill()
        self.wait()

    def wait(self) -> int:
        """Waits until the server has gone by itself, and gives its exit code."""
        return self._process.wait(GIVE_UP_AFTER)

    @property
    def pid(self) -> int:
        return self._process.pid

    def send_line(self, line: bytes) -> None:
        self._stdin.write(line.rstrip(b"\n") + b"\n")
        self._stdin.flush()

    def send(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Sends one request and gives its id, without waiting."""
        self._next_id += 1
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": dict(params or {})}
        self.send_line(json.dumps(message).encode())
        return self._next_id

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self.send_line(json.dumps({"jsonrpc": "2.0", "method": method, "params": dict(params or {})}).encode())

    def receive(self) -> dict[str, Any]:
        """The next line of the server's stdout; fails when that is no JSON object or the server has gone."""
        with self._watched():
            line = self._stdout.readline()
        assert line, f"the server has gone; its log ends: {self.log_path.read_bytes()[-2000:]!r}"
        message: Any = json.loads(line)
        assert isinstance(message, dict)
        return message

    def reply_to(self, request: int) -> dict[str, Any]:
        """The reply to one request; notifications before it are passed over, other replies are a fault."""
        while True:
            message = self.receive()
            if "id" in message:
                assert message["id"] == request, message
                return message

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self.reply_to(self.send(method, params))

    def call(self, arguments: Mapping[str, Any]) -> ToolReply:
        """Calls the tool `request`."""
        return ToolReply(self.ask("tools/call", {"name": "request", "arguments": dict(arguments)}))

    def help(self, verb: str | bool = True) -> dict[str, Any]:
        return self.call({"help": verb}).value

    def op(self, verb: str, args: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Runs one verb and gives its entry of the reply."""
        return self.op_of({"op": verb} if args is None else {"op": verb, "args": dict(args)})

    def op_of(self, op: Mapping[str, Any]) -> dict[str, Any]:
        """Runs one op as it is and gives its entry of the reply."""
        (entry,) = self.call({"ops": [dict(op)]}).value["ops"]
        assert isinstance(entry, dict)
        return entry

    def _greet(self) -> dict[str, Any]:
        greeting = self.ask(
            "initialize",
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "side-by-side", "version": "1"},
            },
        )
        self.notify("notifications/initialized")
        result = greeting["result"]
        assert isinstance(result, dict)
        return result


class ToolReply:
    """What a call of the tool `request` gave."""

    def __init__(self, message: Mapping[str, Any]) -> None:
        self.message = message

    @property
    def result(self) -> dict[str, Any]:
        result = self.message["result"]
        assert isinstance(result, dict)
        return result

    @property
    def failed(self) -> bool:
        return self.result.get("isError") is True

    @property
    def text(self) -> str:
        (block,) = self.result["content"]
        text = block["text"]
        assert isinstance(text, str)
        return text

    @property
    def value(self) -> dict[str, Any]:
        """The JSON object that a call brought back; fails when the whole call was refused."""
        assert not self.failed, self.text
        value = json.loads(self.text)
        assert isinstance(value, dict)
        return value
