"""Trees of real processes for tests: started with a marker, known by their reports, and ended with the test."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from verbc.support import process_handle, process_identity, run_processes
from verbc.support.process_identity import identity_of
from verbc.support.processes import Processes
from verbc.support.run_record import Identity

PROGRAM = Path(__file__).parent.parent / "data" / "run_tree.py"
MARKER = ("SAMPLE_RUN_ID", "20260101T000000-abcdef")
HANG_SECONDS = 60


class Lives:
    """`with Lives() as lives:` starts trees, and tells what they report; at the end none of their processes is left."""

    def __init__(self) -> None:
        self._reports, self._report_end = os.pipe()
        self._life_end, self._life = os.pipe()
        self._children: list[subprocess.Popen[bytes]] = []
        self._pending = b""

    def __enter__(self) -> Lives:
        return self

    def __exit__(self, *_: object) -> None:
        for end in (self._life, self._life_end, self._report_end):
            os.close(end)
        for child in self._children:
            child.wait()
        self.await_end()
        os.close(self._reports)

    def start(
        self, tree: Mapping[str, Any], marker: tuple[str, str] | None = MARKER, **options: Any
    ) -> subprocess.Popen[bytes]:
        """Start a tree. Its processes read nothing and print nothing; they hold two pipes of the test."""
        ends = (self._report_end, self._life_end)
        command = [sys.executable, "-I", "-S", str(PROGRAM), *map(str, ends), json.dumps(tree)]
        environment = {"OTHER": "x", **dict([marker] if marker else [])}
        child = subprocess.Popen(command, env=environment, pass_fds=ends, **{"start_new_session": True, **options})
        self._children.append(child)
        return child

    def report(self) -> tuple[str, str, int]:
        """The next report: what, of which node, and its pid."""
        while b"\n" not in self._pending:
            more = self._read()
            assert more, "nobody is left to report"
            self._pending += more
        line, _, self._pending = self._pending.partition(b"\n")
        what, name, pid = line.decode().split()
        return what, name, int(pid)

    def grown(self, *names: str) -> dict[str, Identity]:
        """Wait until these nodes have reported themselves; their identities."""
        pids: dict[str, int] = {}
        while pids.keys() < set(names):
            what, name, pid = self.report()
            assert what == "is"
            pids[name] = pid
        return {name: identity(pid) for name, pid in pids.items()}

    def reports_left(self) -> set[tuple[str, str]]:
        """All that was reported and not read yet."""
        while select.select([self._reports], [], [], 0)[0]:
            if not (more := self._read()):
                break
            self._pending += more
        lines = self._pending.decode().splitlines()
        self._pending = b""
        return {(what, name) for what, name, _ in map(str.split, lines)}

    def forget(self) -> None:
        """Keep no child; they must have ended."""
        self._children.clear()

    def await_end(self) -> None:
        """Wait until no process is left that holds the pipe; the test's own end of it must be closed."""
        while self._read():
            pass

    def _read(self) -> bytes:
        assert select.select([self._reports], [], [], HANG_SECONDS)[0], "the test hangs"
        return os.read(self._reports, 65536)


def identity(pid: int) -> Identity:
    known = identity_of(pid)
    assert known is not None
    return known


def await_exit(pid: int) -> None:
    """Wait until a process has ended, whoever is its parent; it may not be reaped yet."""
    pidfd = os.pidfd_open(pid)
    try:
        assert select.select([pidfd], [], [], HANG_SECONDS)[0], "the test hangs"
    finally:
        os.close(pidfd)


def look_with(monkeypatch: pytest.MonkeyPatch, processes: Processes) -> None:
    """Let everything look at processes in this way."""
    cached = process_identity._own_identity
    monkeypatch.setattr(process_identity, "_own_identity", getattr(cached, "__wrapped__", cached))
    for module in (process_identity, process_handle, run_processes):
        monkeypatch.setattr(module, "system", lambda: processes)
