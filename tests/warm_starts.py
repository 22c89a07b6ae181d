"""Python programs that start at once: forks of a process that has loaded the libraries they stand on.

To load them takes a server longer than most tests take. With COLD_STARTS=1 in the environment, and on other systems than
Linux, each program is started by an interpreter of its own.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeAlias

PARENT = Path(__file__).with_name("data") / "warm_parent.py"
COLD = os.environ.get("COLD_STARTS") == "1" or sys.platform != "linux"
# Those that a program leaves alone when it was started with them ignored.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
LONGEST_WORD = 32  # bytes of a number

File: TypeAlias = int | IO[Any] | None  # as `subprocess.Popen` has them
Run: TypeAlias = subprocess.CompletedProcess[str]


class WarmProgram:
    """A program that has started. What it has in common with `subprocess.Popen` means the same there."""

    def __init__(
        self, arguments: Sequence[str], order: Mapping[str, Any], files: Sequence[File], *, text: bool
    ) -> None:
        self.args = list(arguments)
        self.returncode: int | None = None
        self._text = text
        self._lock = threading.Lock()
        self._told, telling = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ExitStack() as stack, telling:
            ends = [_ends(number, file, stack, text=text) for number, file in enumerate(files)]
            given = [theirs for theirs, _ in ends]
            if files[2] == subprocess.STDOUT:
                given[2] = given[1]
            self.stdin, self.stdout, self.stderr = (own for _, own in ends)
            _parent().order({**order, "arguments": self.args}, [*given, telling.fileno()])
        self.pid = int(self._told.recv(LONGEST_WORD))

    def poll(self) -> int | None:
        """The exit code, minus the number of a signal; None while it runs."""
        self._has_ended(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended. Raises subprocess.TimeoutExpired."""
        if not self._has_ended(timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[Any, Any]:
        """All that is still to be read of stdout and of stderr, once it has ended."""
        if self.stdin is not None:
            self.stdin.close()
        with ThreadPoolExecutor(2) as pool:
            out, errors = (pool.submit(self._rest, stream) for stream in (self.stdout, self.stderr))
            self.wait(timeout)
            return out.result(timeout), errors.result(timeout)

    def send_signal(self, number: int) -> None:
        """Send a signal, if it has not ended."""
        with self._lock:  # its id is its own as long as nobody was told of its end
            if self.returncode is None:
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _rest(self, stream: IO[Any] | None) -> Any:
        if stream is None:
            return None
        if stream.closed:
            return "" if self._text else b""
        with stream:
            return stream.read()

    def _has_ended(self, seconds: float | None) -> bool:
        """Whether it has, after so much time at most."""
        if self.returncode is None and not select.select([self._told], [], [], seconds)[0]:
            return False
        with self._lock:
            if self.returncode is None:
                self.returncode = int(self._told.recv(LONGEST_WORD))
                with self._told:
                    self._told.shutdown(socket.SHUT_WR)
                    self._told.recv(1)  # nothing, once the process is gone for good
        return True


Program: TypeAlias = subprocess.Popen[Any] | WarmProgram


def start(
    arguments: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: File = None,
    stdout: File = None,
    stderr: File = None,
    start_new_session: bool = False,
    text: bool = False,
) -> Program:
    """Python with these arguments, `-m` and a module or a file first; the others are those of `subprocess.Popen`."""
    files = (stdin, stdout, stderr)
    if COLD:
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=start_new_session,
            text=text,
        )
    order = {
        "cwd": str(cwd or Path.cwd()),
        "env": dict(os.environ if env is None else env),
        "session": start_new_session,
        "ignored": [number for number in SIGNALS if signal.getsignal(number) == signal.SIG_IGN],
    }
    return WarmProgram(arguments, order, files, text=text)


def run(
    arguments: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None, timeout: float
) -> Run:
    """The same with an empty stdin, at its end: what it printed is text. Raises subprocess.TimeoutExpired."""
    pipe = subprocess.PIPE
    program = start(arguments, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)
    try:
        printed, errors = program.communicate(timeout=timeout)
    finally:
        program.kill()
    return Run(program.args, program.wait(), printed, errors)


class _Parent:
    """The process that all of them are forks of."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(PARENT), str(theirs.fileno())],
                env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self._close)

    def order(self, order: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        """Have a program started."""
        with self._lock:
            socket.send_fds(self._orders, [json.dumps(order).encode()], descriptors)

    def _close(self) -> None:
        self._orders.close()
        self._process.wait()


_parent = cache(_Parent)


def _ends(number: int, file: File, stack: ExitStack, *, text: bool) -> tuple[int, IO[Any] | None]:
    """The end of a standard file that a program gets, and the other one where it is a pipe."""
    if file in (None, subprocess.STDOUT):
        return number, None
    if file == subprocess.PIPE:
        reading, writing = os.pipe()
        theirs, ours, mode = (reading, writing, "w") if number == 0 else (writing, reading, "r")
        stack.callback(os.close, theirs)
        return theirs, open(ours, mode if text else f"{mode}b", encoding="utf-8" if text else None)
    if file == subprocess.DEVNULL:
        null = os.open(os.devnull, os.O_RDWR)
        stack.callback(os.close, null)
        return null, None
    return file if isinstance(file, int) else file.fileno(), None
