"""libos-mcp as processes: over stdio in raw JSON lines, over HTTP, and as its operator's command."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from tests.warm_starts import Program, Run, start

from .replies import Reply
from .scripted import PATIENCE, Json, poll

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "generated" / "libos-mcp"
KEY_VARIABLE = "LIBOS_MCP_OPERATOR_KEY"
PROGRAM = ("-m", "libos_mcp")


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the server and its commands get."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(GENERATED),
        **(more or {}),
    }


def ended(program: Program, stdin: bytes = b"") -> Run:
    """A program with this input, at its end; what it printed is text."""
    assert program.stdin is not None
    try:
        try:
            program.stdin.write(stdin)
            program.stdin.flush()
        except BrokenPipeError:
            pass
        printed, errors = program.communicate(timeout=PATIENCE)
    finally:
        program.kill()
    return Run(program.args, program.wait(), printed.decode(), errors.decode())


def run_command(
    words: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    stdin: bytes = b"",
    program: Sequence[str] = PROGRAM,
) -> Run:
    """`libos-mcp` with these words, ended."""
    pipe = subprocess.PIPE
    # In a session of its own there is no terminal, so nobody is asked for a key.
    started = start([*program, *words], cwd=cwd, env=env, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
    return ended(started, stdin)


class Gateway:
    """A server over stdio that has shaken hands as a client of 2025; its log is kept in a file."""

    def __init__(
        self, words: Sequence[str], *, env: Mapping[str, str], log: Path, program: Sequence[str] = PROGRAM
    ) -> None:
        self.log = log
        self._errors = log.open("ab")
        self.process = start(
            [*program, *words],
            cwd=log.parent,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._waiting: dict[int, bytes] = {}
        self._next_id = 0
        self.seen: list[bytes] = []  # all that it ever sent

    def __enter__(self) -> Self:
        try:
            client = {"name": "tests", "version": "1"}
            params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
            self.greeting = self.ask("initialize", params)["result"]
            self.notify("notifications/initialized")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def _stdout(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    @contextmanager
    def _watched(self) -> Iterator[None]:
        watchdog = threading.Timer(PATIENCE, self.process.kill)
        watchdog.start()
        try:
            yield
        finally:
            watchdog.cancel()

    def close(self) -> int:
        """The exit code after the end of its input."""
        with suppress(BrokenPipeError):
            self._stdin.close()
        with self._watched():
            code = self.process.wait()
        self._stdout.close()
        self._errors.close()
        return code

    def kill(self) -> None:
        """End it on the spot, as a crash would."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def wait(self) -> int:
        """The exit code, once it has ended by itself."""
        return self.process.wait(PATIENCE)

    def send(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request and give its id, without waiting."""
        self._next_id += 1
        self._write({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": dict(params or {})})
        return self._next_id

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self._write({"jsonrpc": "2.0", "method": method, "params": dict(params or {})})

    def _write(self, message: Json) -> None:
        self._stdin.write(json.dumps(message).encode() + b"\n")
        self._stdin.flush()

    def answer(self, request: int) -> Json:
        """The answer to a request; other answers are kept until they are asked for."""
        while request not in self._waiting:
            with self._watched():
                line = self._stdout.readline()
            assert line, f"the server has gone; its log ends: {self.log.read_bytes()[-3000:].decode(errors='replace')}"
            self.seen.append(line)
            message = json.loads(line)
            if "id" in message and "method" not in message:
                self._waiting[message["id"]] = line
        return dict(json.loads(self._waiting.pop(request)))

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Json:
        return self.answer(self.send(method, params))

    def send_tool(self, tool: str, **arguments: Any) -> int:
        """Call a tool without waiting."""
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def reply(self, request: int) -> Reply:
        """What a call that was sent came to."""
        return Reply.of(self.answer(request))

    def tool(self, tool: str, **arguments: Any) -> Reply:
        """What a call of a tool comes to."""
        return self.reply(self.send_tool(tool, **arguments))

    def send_call(self, server_id: str, tool_id: str, arguments: Any = None) -> int:
        """Call a registered tool without waiting."""
        return self.send_tool("call_mcp_tool", server_id=server_id, tool_id=tool_id, arguments=arguments or {})

    def call(self, server_id: str, tool_id: str, arguments: Any = None) -> Reply:
        """What a call of a registered tool comes to."""
        return self.reply(self.send_call(server_id, tool_id, arguments))


class HttpGateway:
    """A server over HTTP; its log is kept in a file."""

    def __init__(self, words: Sequence[str], *, env: Mapping[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as errors:
            self.process = start(
                [*PROGRAM, "--http", "--port", "0", *words],
                cwd=log.parent,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
            )
        try:
            poll(lambda: self._urls() is not None or self.process.poll() is not None, "a server over HTTP")
            urls = self._urls()
            assert urls is not None, log.read_text()
            self.url = urls[0]
        except BaseException:
            self.close()
            raise

    def _urls(self) -> list[str] | None:
        for line in self.log.read_text().splitlines():
            entry = json.loads(line) if line.startswith("{") and line.endswith("}") else {}
            if "urls" in entry:
                return list(entry["urls"])
        return None

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
