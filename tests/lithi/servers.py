"""lithi-mcp as processes of its own, with all that they print; and its command for keys."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tests.warm_starts import Program, Run, run, start

from .wire import PATIENCE, Endpoint

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "generated" / "lithi-mcp"
SCOPES = ("compute:quote", "compute:run", "compute:read")


def environment(keys: Path | None = None, core: str | None = None, **more: str) -> dict[str, str]:
    """What the server and its command get."""
    told = {"LITHI_KEYS": str(keys)} if keys else {}
    told |= {"LITHI_CORE_URL": core} if core else {}
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "PYTHONPATH": str(GENERATED),
        **told,
        **more,
    }


def run_command(*words: str, keys: Path | None = None, core: str | None = None) -> Run:
    """`lithi-mcp` with these words, ended."""
    return run(["-m", "lithi_mcp", *words], env=environment(keys, core), timeout=PATIENCE)


def mint(keys: Path, subject: str, account: str | None = None, scopes: Iterable[str] = SCOPES, *more: str) -> str:
    """A new key of lithi-mcp, on record in this file."""
    words = ["keys", "add", "--subject", subject, *more]
    words += [] if account is None else ["--account", account]
    for scope in scopes:
        words += ["--scope", scope]
    done = run_command(*words, keys=keys)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Output:
    """The lines that a process prints, as they come."""

    def __init__(self, stream: IO[str]) -> None:
        self._lines: list[str] = []
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(stream,), name="output of lithi-mcp")
        self._thread.start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_for(self, found: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first line that is such an entry of the log; fails when the output ends without it."""
        seen = 0
        with self._changed:
            while True:
                for line in self._lines[seen:]:
                    entry = _entry(line)
                    if entry is not None and found(entry):
                        return entry
                seen = len(self._lines)
                assert not self._ended, f"no such line in:\n{''.join(self._lines)}"
                assert self._changed.wait(PATIENCE), "no such line came"

    @property
    def text(self) -> str:
        with self._changed:
            return "".join(self._lines)

    def whole(self) -> str:
        """All of it, once the processes have ended."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        return self.text


def _entry(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


class Server:
    """A lithi-mcp that serves."""

    def __init__(self, process: Program) -> None:
        self.process = process
        assert process.stdout is not None
        self.output = Output(process.stdout)
        try:
            (url,) = self.output.wait_for(lambda entry: "urls" in entry)["urls"]
        except BaseException:
            self.close()
            raise
        self.url = str(url)

    @property
    def port(self) -> int:
        return int(self.url.removesuffix("/mcp").rpartition(":")[2])

    def endpoint(self, key: str | None = None) -> Endpoint:
        return Endpoint(self.port, key)

    def terminate(self) -> int:
        """The exit code, after it was told to end."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        """End it if it still runs; then all that it printed is in `output`."""
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            self.output.whole()
            assert self.process.stdout is not None
            self.process.stdout.close()


@contextmanager
def heeding_interrupts() -> Iterator[None]:
    """Whoever is started meanwhile heeds SIGINT, also where this process was told to ignore it, as in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def serving(keys: Path | None, core: str, *words: str, more: Mapping[str, str] | None = None) -> Iterator[Server]:
    """lithi-mcp with this keys file, in front of the service at `core`; `words` are further ones of its command."""
    with heeding_interrupts():
        process = start(
            ["-m", "lithi_mcp", "--port", "0", *words],
            env=environment(keys, core, **(more or {})),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # nothing is to be printed that is no line of the log
            text=True,
        )
    server = Server(process)
    try:
        yield server
    finally:
        server.close()
