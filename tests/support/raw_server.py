"""A server in a process of its own, spoken to line by line."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from tests.warm_starts import start

# Longer than anything here takes, on any machine; it only keeps a fault from hanging the tests.
PATIENCE = 60.0  # seconds

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def calling(request_id: Any, tool: str, arguments: Any = None, **meta: Any) -> dict[str, Any]:
    """A request that calls a tool."""
    params = {"name": tool, "arguments": arguments or {}, **({"_meta": meta} if meta else {})}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


class RawServer:
    """`sample_mcp`, started in the folder that holds it; its stderr is kept in a file."""

    def __init__(
        self, package: Path, folder: Path, *arguments: str, stdin: Any = subprocess.PIPE, stderr: int | None = None
    ) -> None:
        self.trace = folder / "trace"
        self._errors = folder / "stderr"
        with self._errors.open("wb") as errors:
            self.process = start(
                ["-m", "sample_mcp", *arguments],
                cwd=package,
                env={**os.environ, "TRACE": str(self.trace)},
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=errors if stderr is None else stderr,
            )

    @property
    def stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def send(self, *messages: Any) -> None:
        """Send objects as lines, and bytes as they are."""
        for message in messages:
            self.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        self.stdin.flush()

    def receive(self) -> Any:
        """The next line, parsed; None at the end."""
        line = self.stdout.readline()
        return json.loads(line) if line else None

    def handshake(self) -> Self:
        self.send(INITIALIZE, INITIALIZED)
        assert self.receive()["id"] == 0
        return self

    def until_traced(self, text: str) -> None:
        """Wait until a handler has left this trace; each look is a round trip, so nothing sleeps."""
        while not self.trace.exists() or self.trace.read_text() != text:
            self.send({"jsonrpc": "2.0", "id": "look", "method": "ping"})
            assert self.receive()["id"] == "look"

    def ended(self) -> int:
        """The exit code, once the process is gone."""
        return self.process.wait(PATIENCE)

    def errors(self) -> str:
        return self._errors.read_text(encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(BrokenPipeError):
                if stream is not None:
                    stream.close()
