"""Processes that do the same work: how they start, how they are replaced, and how all of them end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .raw_server import PATIENCE

# Each process says who it is, and how it ends; every line is written at once.
PROGRAM = """
import os, select, signal, sys, time

from verbc.support import log
from verbc.support.http_workers import Workers


def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())


def work(lifeline, ready):
    def stop(*_):
        say("told", os.getpid())
        if {deaf}:
            return
        os._exit(0)

    if {broken} and os.path.exists(sys.argv[1]):
        raise RuntimeError("secret")
    signal.signal(signal.SIGTERM, stop)
    if not {unready}:
        ready()
    say("working", os.getpid())
    while True:
        if select.select([lifeline], [], [])[0]:
            say("orphaned", os.getpid())
            return 7


log.configure()
sys.exit(Workers({count}, work, lambda: say("released"), {seconds}).run(lambda: say("started")))
"""


class Running:
    """The program, with what it says."""

    def __init__(self, tmp_path: Path, *, count: int = 2, seconds: int = 1000, **how: bool) -> None:
        self.flag = tmp_path / "flag"
        program = PROGRAM.format(
            count=count, seconds=seconds, **{name: how.get(name, False) for name in ("deaf", "broken", "unready")}
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, str(self.flag)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def hear(self, count: int) -> list[list[str]]:
        """The next lines, in words."""
        assert self.process.stdout is not None
        return [self.process.stdout.readline().split() for _ in range(count)]

    def working(self, count: int, *, first: bool = False) -> list[int]:
        """The processes that now work, once they say so; with the first ones, the program says that it has started."""
        lines = self.hear(count + first)
        if first:
            lines.remove(["started"])
        assert [line[0] for line in lines] == ["working"] * count
        return [int(line[1]) for line in lines]

    def ended(self) -> tuple[int, list[str], str]:
        """The exit code, the rest of what is said, sorted, and the log, once nothing of it is left."""
        out, log = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, sorted(out.split("\n"))[1:], log

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)


def told(*processes: int) -> list[str]:
    return sorted(f"told {process}" for process in processes)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_all_work_until_they_are_told_to_stop(tmp_path: Path, number: signal.Signals) -> None:
    with Running(tmp_path, count=3) as running:
        processes = running.working(3, first=True)
        running.process.send_signal(number)
        assert running.ended() == (0, ["released", *told(*processes)], "")


def test_one_that_ends_is_replaced(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        processes = running.working(2, first=True)
        for _ in range(3):
            os.kill(processes.pop(0), signal.SIGKILL)
            processes += running.working(1)
        running.process.terminate()
        code, said, log = running.ended()
    assert (code, said) == (0, ["released", *told(*processes)])
    assert log.count("a worker ended") == 3


def test_one_that_cannot_work_stops_all(tmp_path: Path) -> None:
    with Running(tmp_path, broken=True) as running:
        gone, left = running.working(2, first=True)
        running.flag.touch()
        os.kill(gone, signal.SIGKILL)
        code, said, log = running.ended()
    assert (code, said) == (1, ["released", *told(left)])
    assert '"event": "a worker failed"' in log
    assert "secret" not in log


def test_none_is_started_where_the_first_cannot_work(tmp_path: Path) -> None:
    (tmp_path / "flag").touch()
    with Running(tmp_path, broken=True) as running:
        code, said, _ = running.ended()
    assert (code, said) == (1, ["released"])


def test_they_can_be_stopped_before_they_serve(tmp_path: Path) -> None:
    with Running(tmp_path, unready=True) as running:
        processes = running.working(2)
        running.process.terminate()
        assert running.ended() == (0, ["released", *told(*processes)], "")


def test_they_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        processes = running.working(2, first=True)
        running.process.kill()
        code, said, _ = running.ended()
    assert code == -signal.SIGKILL
    assert said == sorted(f"orphaned {process}" for process in processes)


@pytest.mark.parametrize("seconds", [1, 1000])
def test_those_that_do_not_end_are_ended(tmp_path: Path, seconds: int) -> None:
    with Running(tmp_path, deaf=True, seconds=seconds) as running:
        processes = running.working(2, first=True)
        running.process.terminate()
        if seconds == 1000:
            heard: list[Any] = running.hear(3)
            assert sorted(" ".join(words) for words in heard) == ["released", *told(*processes)]
            running.process.terminate()
        code, _, _ = running.ended()
    assert code == 0
