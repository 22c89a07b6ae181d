"""Children that are watched: their exit code is on record before they are reaped, and nothing stays behind."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from verbc.support import exit_watch, log
from verbc.support.exit_watch import ExitWatch
from verbc.support.process_identity import identity_of, own_identity, sight

from .lives import HANG_SECONDS, Lives
from .programs import assert_reaped


@pytest.fixture
def lives() -> Iterator[Lives]:
    with Lives() as started:
        yield started


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """What was logged: what happened, and to which run."""
    logged: list[tuple[str, Any]] = []
    monkeypatch.setattr(log, "failure", lambda what, error, **fields: logged.append((what, fields.get("run_id"))))
    return logged


class Records:
    """A place for exit codes that refuses a number of times."""

    def __init__(self, refusals: int = 0) -> None:
        self.kept: list[tuple[str, int, datetime]] = []
        self.tries = 0
        self._refusals = refusals

    def record(self, run_id: str, code: int, at: datetime) -> None:
        self.tries += 1
        if self.tries <= self._refusals:
            raise OSError("disk full")
        self.kept.append((run_id, code, at))


def ended(watch: ExitWatch, run_id: str = "run") -> None:
    assert watch.wait_gone(run_id, HANG_SECONDS), "the test hangs"


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_exit_code_and_the_moment_are_put_on_record(lives: Lives, code: int) -> None:
    records, before = Records(), datetime.now(UTC)
    watch = ExitWatch(records.record)
    child = lives.start({"name": "a", "leaves": True, "code": code})
    watch.watch("run", child)
    ended(watch)
    [(run_id, recorded, at)] = records.kept
    assert (run_id, recorded) == ("run", code)
    assert before <= at <= datetime.now(UTC)
    assert at.utcoffset() == timedelta(0)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_a_signal_shows_as_a_negative_code(lives: Lives, number: int) -> None:
    records = Records()
    watch = ExitWatch(records.record)
    child = lives.start({"name": "a", "default": True})
    lives.report()
    watch.watch("run", child)
    os.kill(child.pid, number)
    ended(watch)
    assert [code for _, code, _ in records.kept] == [-number]


def test_the_child_is_reaped_only_when_its_exit_code_is_on_record(lives: Lives) -> None:
    started, go_on = threading.Event(), threading.Event()

    def record(*_: object) -> None:
        started.set()
        go_on.wait(HANG_SECONDS)

    watch = ExitWatch(record)
    child = lives.start({"name": "a", "leaves": True})
    watch.watch("run", child)
    assert started.wait(HANG_SECONDS)
    leader = identity_of(child.pid)
    assert sight(leader, own_identity()).alive
    assert os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    assert not watch.wait_gone("run", 0)
    go_on.set()
    ended(watch)
    assert sight(leader, own_identity()).alive is False
    assert_reaped(child.pid)


def test_nothing_is_said_of_a_watched_child_that_nobody_else_keeps(lives: Lives) -> None:
    watch = ExitWatch(Records().record)
    child: subprocess.Popen[bytes] | None = lives.start({"name": "a", "leaves": True, "code": 3})
    assert child is not None
    watch.watch("run", child)
    ended(watch)
    assert child.returncode == 3
    child = None
    lives.forget()
    gc.collect()  # a child that was not waited for would warn, and warnings are errors


def test_whoever_waits_is_told_after_the_child_is_reaped(lives: Lives) -> None:
    told: list[tuple[str, int | None]] = []
    done = threading.Event()
    child = lives.start({"name": "a", "leaves": True, "code": 3})

    def on_gone(run_id: str) -> None:
        told.append((run_id, child.returncode))
        done.set()

    ExitWatch(Records().record, on_gone).watch("run", child)
    assert done.wait(HANG_SECONDS)
    assert told == [("run", 3)]


def test_a_child_that_is_not_watched_is_not_waited_for() -> None:
    assert ExitWatch(Records().record).wait_gone("unknown", FOR_EVER)


FOR_EVER = 1_000_000.0


def test_a_record_that_fails_is_tried_again(lives: Lives, failures: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exit_watch, "RETRY_SECONDS", (0, 0, 0))
    records = Records(refusals=3)
    watch = ExitWatch(records.record)
    watch.watch("run", lives.start({"name": "a", "leaves": True, "code": 3}))
    ended(watch)
    assert [code for _, code, _ in records.kept] == [3]
    assert failures == []


def test_the_waits_between_tries_grow_and_can_be_cut(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(exit_watch.RETRY_SECONDS) == sorted(exit_watch.RETRY_SECONDS)
    monkeypatch.setattr(exit_watch, "RETRY_SECONDS", (FOR_EVER, FOR_EVER))
    failed = threading.Event()
    records = Records(refusals=2)

    def record(*record: Any) -> None:
        try:
            records.record(*record)
        finally:
            failed.set()

    watch = ExitWatch(record)
    watch.watch("run", lives.start({"name": "a", "leaves": True}))
    assert failed.wait(HANG_SECONDS)
    assert not watch.wait_gone("run", 0)
    watch.hurry()
    ended(watch)
    assert len(records.kept) == 1


def test_a_record_that_fails_for_good_is_logged_and_the_child_reaped(lives: Lives, failures: list[Any]) -> None:
    records = Records(refusals=100)
    watch = ExitWatch(records.record)
    watch.hurry()
    child = lives.start({"name": "a", "leaves": True})
    watch.watch("run", child)
    ended(watch)
    assert records.tries == len(exit_watch.RETRY_SECONDS) + 1
    assert failures == [("exit code not recorded", "run")]
    assert_reaped(child.pid)


def test_a_failure_of_whoever_is_told_harms_nothing(lives: Lives, failures: list[Any]) -> None:
    told = threading.Event()

    def on_gone(_: str) -> None:
        told.set()
        raise ValueError

    watch = ExitWatch(Records().record, on_gone)
    watch.watch("run", lives.start({"name": "a", "leaves": True}))
    assert told.wait(HANG_SECONDS)
    join_threads()
    assert failures == [("end of a child not told", "run")]


def test_many_children_are_watched_at_a_time_each_for_itself(lives: Lives) -> None:
    records = Records()
    watch = ExitWatch(records.record)
    running = lives.start({"name": "running"})
    watch.watch("running", running)
    for code in range(8):
        watch.watch(f"run{code}", lives.start({"name": "a", "leaves": True, "code": code}))
    for code in range(8):
        ended(watch, f"run{code}")
    assert {run_id: code for run_id, code, _ in records.kept} == {f"run{code}": code for code in range(8)}
    running.kill()
    ended(watch, "running")


def test_a_watch_keeps_nobody_from_ending() -> None:
    script = (
        "import subprocess, sys; from verbc.support.exit_watch import ExitWatch\n"
        "child = subprocess.Popen(['cat'], stdin=0, stdout=subprocess.DEVNULL)\n"
        "ExitWatch(print).watch('run', child)\n"
        "print('done')"
    )
    reading, writing = os.pipe()
    done = subprocess.run([sys.executable, "-c", script], stdin=reading, stdout=subprocess.PIPE, check=True, timeout=60)
    os.close(reading)
    os.close(writing)
    assert done.stdout == b"done\n"


def test_a_child_without_an_exit_code_gets_none(lives: Lives, failures: list[Any]) -> None:
    records = Records()
    watch = ExitWatch(records.record)
    child = lives.start({"name": "a", "leaves": True})
    os.waitpid(child.pid, 0)  # somebody else has taken it
    watch.watch("run", child)
    ended(watch)
    assert (records.kept, failures) == ([], [])


def test_the_exit_code_of_a_child_that_was_waited_for_already_is_kept(lives: Lives) -> None:
    records = Records()
    watch = ExitWatch(records.record)
    child = lives.start({"name": "a", "leaves": True, "code": 3})
    child.wait()
    watch.watch("run", child)
    ended(watch)
    assert [code for _, code, _ in records.kept] == [3]


def test_where_the_system_cannot_look_first_the_exit_code_is_put_on_record_all_the_same(
    lives: Lives, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "waitid")
    records = Records()
    watch = ExitWatch(records.record)
    watch.watch("run", lives.start({"name": "a", "leaves": True, "code": 3}))
    ended(watch)
    assert [code for _, code, _ in records.kept] == [3]


def test_exit_codes_are_true_where_the_server_inherited_ignored_child_signals() -> None:
    script = (
        "import json, subprocess, sys; from verbc.support.exit_watch import ExitWatch\n"
        "codes = []\n"
        "watch = ExitWatch(lambda run_id, code, at: codes.append(code))\n"
        "watch.watch('run', subprocess.Popen([sys.executable, '-I', '-S', '-c', 'raise SystemExit(7)']))\n"
        "watch.wait_gone('run', 60)\n"
        "print(json.dumps(codes))"
    )
    ignore = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", ignore, sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (json.loads(done.stdout), done.stderr) == ([7], "")


def test_a_thread_that_cannot_be_had_is_told(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    watch = ExitWatch(Records().record)
    with pytest.raises(RuntimeError):
        watch.watch("run", lives.start({"name": "a", "leaves": True}))
    assert watch.wait_gone("run", FOR_EVER)


def join_threads() -> None:
    for thread in threading.enumerate():
        if thread.name == "exit-watch":
            thread.join(HANG_SECONDS)
