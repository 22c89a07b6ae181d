"""An MCP server as a child process, spoken to in raw JSON lines: for what a well-behaved client cannot say or see."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

GIVE_UP_AFTER = (
    120.0  # seconds after which a server that does not answer is killed, so that a test fails and does not hang
)


class McpProcess:
    """Starts the server, shakes hands as a 2025 client, and keeps its stdout and stderr apart."""

    def __init__(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> None:
        self._log = (cwd / "server.log").open("wb")
        self._process = subprocess.Popen(
            list(argv),
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self.log_path = cwd / "server.log"
        self._next_id = 0
        self._watchdog = threading.Timer(GIVE_UP_AFTER, self._process.kill)
        self._watchdog.daemon = True
        self._watchdog.start()

    def __enter__(self) -> Self:
        self.greeting = self._greet()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def close(self) -> int:
        """Ends the input, waits for the server to leave, and gives its exit code."""
        self._stdin.close()
        code = self._process.wait()
        self._watchdog.cancel()
        self._stdout.close()
        self._log.close()
        return code

    def send_line(self, line: bytes) -> None:
        self._stdin.write(line.rstrip(b"\n") + b"\n")
        self._stdin.flush()

    def send(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Sends one request and gives its id, without waiting."""
        self._next_id += 1
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": dict(params or {})}
        self.send_line(json.dumps(message).encode())
        return self._next_id

    def receive(self) -> dict[str, Any]:
        """The next line of the server's stdout; fails when that is no JSON object or the server has gone."""
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
        value = self.call({"ops": [{"op": verb} if args is None else {"op": verb, "args": dict(args)}]}).value
        (entry,) = value["ops"]
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
        self.send_line(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
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
