"""A client so plain that its own cost hardly counts: JSON lines over two pipes, one request at a time."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

_PATIENCE_SECONDS: Final = 300.0
_READ_BYTES: Final = 1 << 18
_GREETING: Final = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}


class AnswerError(Exception):
    """Raised when a server does not answer, or not as it should."""


class Client:
    """A server as a child process, ended with the `with` block; then `processor` has the seconds of its processor time."""

    def __init__(self, argv: Sequence[str | Path], environment: Mapping[str, str], folder: Path) -> None:
        self._process = subprocess.Popen(
            argv,
            env=environment,
            cwd=folder,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdin is not None  # noqa: S101
        assert self._process.stdout is not None  # noqa: S101
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._rest = b""
        self._id = 0
        self.processor = 0.0
        self._name = " ".join(map(str, argv))
        self._watchdog = threading.Timer(_PATIENCE_SECONDS, self._process.kill)
        self._watchdog.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._process:
            self._process.kill()
            _, status, usage = os.wait4(self._process.pid, 0)
            self._process.returncode = os.waitstatus_to_exitcode(status)
            self.processor = usage.ru_utime + usage.ru_stime
        self._watchdog.cancel()

    def greet(self) -> None:
        """Shake hands as a client of the 2025 protocol."""
        self.ask("initialize", _GREETING)
        os.write(self._stdin, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def ask(self, method: str, params: Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
        """Send a request; the seconds from there to the end of its reply, and its result.

        Raises AnswerError, also when the reply is an error.
        """
        self._id += 1
        request = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        line = json.dumps(request, separators=(",", ":")).encode() + b"\n"
        began = time.perf_counter()
        os.write(self._stdin, line)
        while True:
            reply = self._line()
            seconds = time.perf_counter() - began
            message = json.loads(reply)
            if message.get("id") == self._id:
                break
        if "result" not in message:
            raise AnswerError(f"{self._name} answered {method} with {message}")
        return seconds, message["result"]

    def _line(self) -> bytes:
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            part = os.read(self._stdout, _READ_BYTES)
            if not part:
                raise AnswerError(f"{self._name} ended without an answer")
            parts.append(part)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line
