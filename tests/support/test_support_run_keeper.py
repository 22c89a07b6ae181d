"""Runs that outlive their servers: killed at any write, restarted, two on one folder, and records nobody can use."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from verbc.support.log_tail import length
from verbc.support.process_identity import identity_of, own_identity
from verbc.support.process_stop import Stopped
from verbc.support.run_ends import RunEnds
from verbc.support.run_look import Look, RunLook
from verbc.support.run_record import End, Identity, RunRecord, new_run_id
from verbc.support.run_retention import RunRetention
from verbc.support.run_store import COMPONENT, RunStore
from verbc.support.sqlite_file import SqliteFile
from verbc.support.store import Store, StoreError

from .job_servers import hooks_of
from .jobs import Demo, Fifo, make_tool, serving
from .programs import finish

ROOT = Path(__file__).parent.parent.parent
SERVERS = [sys.executable, "-m", "tests.support.job_servers"]
Line = tuple[str, dict[str, Any]]  # a verb and its arguments
Crash = Callable[..., None]
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{make_tool(tmp_path)}:{os.environ['PATH']}")
    monkeypatch.setattr("verbc.support.run_asking.BETWEEN_ATTEMPTS", 0.0)
    monkeypatch.setattr("verbc.support.run_watch.SECONDS", 0.05)


@pytest.fixture
def gate(tmp_path: Path) -> Fifo:
    return Fifo(tmp_path / "gate")


@pytest.fixture
def up(tmp_path: Path) -> Fifo:
    return Fifo(tmp_path / "up")


@contextmanager
def records(folder: Path) -> Iterator[RunStore]:
    """The records that servers keep, without a server."""
    runs = folder / "state" / "runs"
    runs.parent.mkdir(mode=0o700, exist_ok=True)
    runs.mkdir(mode=0o700, exist_ok=True)
    store = Store(SqliteFile(runs.with_suffix(".db")), [COMPONENT])
    try:
        yield RunStore(store, runs)
    finally:
        store.close()


@contextmanager
def process(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Some process that lives until its input ends."""
    with subprocess.Popen(command or ["cat"], stdin=subprocess.PIPE) as started:
        yield started


@contextmanager
def server(folder: Path, *lines: Line) -> Iterator[subprocess.Popen[str]]:
    """A server in a process of its own, killed in the end if it still lives."""
    command = [*SERVERS, str(folder), *map(json.dumps, lines)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


def said(started: subprocess.Popen[str]) -> Any:
    """What a server says next."""
    assert started.stdout is not None
    return json.loads(started.stdout.readline())


@pytest.fixture(scope="module")
def crashing() -> Iterator[subprocess.Popen[str]]:
    """What lets servers be killed; it has loaded all that they need."""
    with subprocess.Popen(SERVERS, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        yield started
        started.communicate()


@pytest.fixture
def crash(tmp_path: Path, crashing: subprocess.Popen[str]) -> Crash:
    """Let a server be killed at a point of its store that these calls reach."""

    def crash(point: str, *lines: Line) -> None:
        order = {"folder": str(tmp_path), "point": point, "lines": list(map(json.dumps, lines))}
        assert crashing.stdin
        print(json.dumps({**order, "environment": dict(os.environ)}), file=crashing.stdin, flush=True)
        assert said(crashing) == -signal.SIGKILL

    return crash


def submit(script: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "work.submit", {"script": script, "idempotency_key": "k", **arguments}


def told(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["status"], row["outcome"], row["reason_code"]


NEVER = ("failed", "failed", "spawn_failed")
NOBODY_KNOWS = ("exited", "indeterminate", "process_gone_without_outcome")
SUCCEEDED = ("exited", "succeeded", None)
KILLED = ("killed", "cancelled", "killed")


# A server that is killed at a write.


def test_killed_before_a_run_is_on_record(tmp_path: Path, crash: Crash) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            assert await demo.runs() == []

    crash("before reserve", submit(f"echo > {tmp_path}/ran"))
    finish(work())
    assert not (tmp_path / "ran").exists()


def test_killed_before_a_run_is_started(tmp_path: Path, crash: Crash) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            [row] = await demo.runs()
            [row] = await demo.wait(row["run_id"])
            assert told(row) == NEVER
            assert (row["terminal_source"], row["pid"], row["alive"]) == ("spawn_failure", None, False)
            verb, arguments = submit(f"echo ran >> {tmp_path}/ran")
            again = await demo.call(verb, **arguments)  # the key stands for nothing that ran
            assert again["run_id"] != row["run_id"]
            [row] = await demo.wait(again["run_id"])
            assert told(row) == SUCCEEDED

    crash("after reserve", submit(f"echo ran >> {tmp_path}/ran"))
    assert not (tmp_path / "ran").exists()
    finish(work())
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_a_key_of_a_run_that_was_never_started_starts_one_at_once(tmp_path: Path, crash: Crash) -> None:
    async def work() -> None:
        verb, arguments = submit(f"echo ran >> {tmp_path}/ran")
        async with serving(tmp_path) as demo:
            again = await demo.call(verb, **arguments)
            assert again["spawn_state"] == "started"
            await demo.wait(again["run_id"])

    crash("after reserve", submit(f"echo ran >> {tmp_path}/ran"))
    finish(work())
    assert (tmp_path / "ran").read_text() == "ran\n"


@pytest.mark.parametrize("point", ["before started", "after started"])
def test_killed_around_the_record_of_a_start(tmp_path: Path, crash: Crash, gate: Fifo, up: Fifo, point: str) -> None:
    script = f"echo ran >> {tmp_path}/ran; echo $$ > {up}; read x < {gate}"

    async def work() -> None:
        pid = int(await up.read())
        async with serving(tmp_path) as demo:
            [row] = await demo.runs()
            run_id = row["run_id"]
            while (status := await demo.status(run_id))["spawn_state"] != "started":
                pass
            assert (status["status"], status["alive"], status["pid"]) == ("running", True, pid)
            verb, arguments = submit(script)
            assert (await demo.call(verb, **arguments))["run_id"] == run_id
            await gate.write()
            [row] = await demo.wait(run_id)
            assert told(row) == NOBODY_KNOWS
            assert (row["finished_at_precision"], row["exit_code"]) == ("upper_bound", None)

    crash(point, submit(script))
    finish(work())
    assert (tmp_path / "ran").read_text() == "ran\n"


@pytest.mark.parametrize("point", ["before started", "after started"])
def test_a_run_whose_server_was_killed_can_be_killed(
    tmp_path: Path, crash: Crash, gate: Fifo, up: Fifo, point: str
) -> None:
    async def work() -> None:
        await up.read()
        async with serving(tmp_path) as demo:
            [row] = await demo.runs()
            killed = await demo.kill(row["run_id"])
            assert (killed["killed"], killed["reason_code"]) == (True, "signalled")
            [row] = await demo.wait(row["run_id"])
            assert told(row) == KILLED

    crash(point, submit(f"echo > {up}; read x < {gate}"))
    finish(work())


@pytest.mark.parametrize("point", ["before started", "after started"])
def test_a_run_that_ended_with_its_server_killed_ends_as_it_reports(
    tmp_path: Path, crash: Crash, up: Fifo, point: str
) -> None:
    async def work() -> None:
        await up.read()
        (tmp_path / "report").write_text("timed_out")
        async with serving(tmp_path, hooks_of(tmp_path)) as demo:
            [row] = await demo.runs()
            [row] = await demo.wait(row["run_id"])
            assert told(row) == ("timed_out", "failed", None)

    (tmp_path / "settled").touch()
    crash(point, submit(f"echo > {up}"))
    finish(work())


@pytest.mark.parametrize(("point", "end"), [("before spawn failed", NOBODY_KNOWS), ("after spawn failed", NEVER)])
def test_killed_around_the_record_of_a_failed_start(
    tmp_path: Path, crash: Crash, monkeypatch: pytest.MonkeyPatch, point: str, end: tuple[str, ...]
) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            [row] = await demo.runs()
            [row] = await demo.wait(row["run_id"])
            assert told(row) == end

    monkeypatch.setenv("TOOL", "no-such-tool")
    crash(point, submit("true"))
    finish(work())


@pytest.mark.parametrize(
    ("point", "end"),
    [
        ("before exited", NOBODY_KNOWS),
        ("after exited", SUCCEEDED),
        ("before end", SUCCEEDED),
        ("after end", SUCCEEDED),
    ],
)
def test_killed_around_the_record_of_an_end(tmp_path: Path, crash: Crash, point: str, end: tuple[str, ...]) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            [row] = await demo.runs()
            [row] = await demo.wait(row["run_id"])
            assert told(row) == end
            assert (await demo.runs()) == [row]

    crash(point, submit("true"))
    finish(work())


@pytest.mark.parametrize(
    ("point", "told_of"),
    [
        ("before end", 1),
        ("after end", 1),
        ("before details", 2),
        ("after details", 2),
        ("before told", 2),
        ("after told", 1),
    ],
)
def test_hooks_are_told_of_every_end_and_twice_only_where_nobody_knows(
    tmp_path: Path, crash: Crash, point: str, told_of: int
) -> None:
    async def work() -> None:
        async with serving(tmp_path, hooks_of(tmp_path)) as demo:
            [row] = await demo.runs()
            [row] = await demo.wait(row["run_id"])
            assert told(row) == NOBODY_KNOWS  # they could have reported, and did not
            while (await stored(tmp_path, row["run_id"])).told_at is None:
                pass

    (tmp_path / "settled").touch()
    crash(point, submit("true"))
    finish(work())
    assert len((tmp_path / "settled").read_text().splitlines()) == told_of


async def stored(folder: Path, run_id: str) -> RunRecord:
    """A run as it is on record."""

    def look() -> RunRecord:
        with records(folder) as runs:
            record = runs.get(run_id)
        assert record is not None
        return record

    return await asyncio.to_thread(look)


@pytest.mark.parametrize("point", ["before late report", "after late report"])
def test_killed_around_a_late_report(tmp_path: Path, crash: Crash, gate: Fifo, point: str) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            [row] = await demo.runs()
            assert told(row) == KILLED
            late = (await demo.status(row["run_id"]))["late_report"]
            assert (late is None) is point.startswith("before")

    (tmp_path / "settled").touch()
    (tmp_path / "report").write_text("failed")
    crash(point, submit(f"read x < {gate}"), ("job.kill", {"run_id": "<run>"}))
    finish(work())


def test_killed_before_a_stop_is_on_record(tmp_path: Path, crash: Crash, gate: Fifo) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            [row] = await demo.runs()
            assert row["status"] == "running"
            await gate.write()
            [row] = await demo.wait(row["run_id"])
            assert told(row) == NOBODY_KNOWS

    crash("before stop requested", submit(f"read x < {gate}"), ("job.kill", {"run_id": "<run>"}))
    finish(work())


def test_a_stop_whose_server_was_killed_is_taken_up(
    tmp_path: Path, crash: Crash, gate: Fifo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verbc.support.run_watch._FORGOTTEN_AFTER", timedelta(0))

    async def work() -> None:
        async with serving(tmp_path, grace=0.1) as demo:
            [row] = await demo.runs()
            [row] = await demo.wait(row["run_id"])
            assert told(row) == KILLED

    crash("after stop requested", submit(f"read x < {gate}"), ("job.kill", {"run_id": "<run>"}))
    finish(work())


# Servers that come and go, and two at the same time.


def test_a_run_survives_the_restart_of_its_server(tmp_path: Path, gate: Fifo, up: Fifo) -> None:
    async def work(run_id: str) -> None:
        async with serving(tmp_path) as demo:
            status = await demo.status(run_id)
            assert (status["status"], status["alive"], status["pid_identity"]) == ("running", True, "confirmed")
            waiting = asyncio.ensure_future(demo.wait(run_id))
            await gate.write("hello\n")
            [row] = await waiting
            assert told(row) == NOBODY_KNOWS
            assert (await demo.call("job.output", run_id=run_id))["console"] == "hello\n"

    with server(tmp_path, submit(f"echo > {up}; read x < {gate}; echo $x")) as first:
        run_id = said(first)["run_id"]
        up.path.read_text()
    finish(work(run_id))


def test_a_run_that_ended_while_no_server_was_there(tmp_path: Path, gate: Fifo, up: Fifo) -> None:
    async def work(run_id: str) -> None:
        async with serving(tmp_path) as demo:
            # The first look finds it, without a wait.
            page = await demo.call("job.list")
            assert [told(row) for row in page["jobs"]] == [NOBODY_KNOWS]
            assert (await demo.status(run_id))["terminal"]

    with server(tmp_path, submit(f"read x < {gate}; exec > {up}")) as first:
        run_id = said(first)["run_id"]
    gate.path.write_text("go\n")
    up.path.read_text()
    finish(work(run_id))


def test_two_servers_answer_alike_and_an_exit_code_is_never_lost(tmp_path: Path) -> None:
    """A run that ends while both look is gone for neither before its exit code is on record."""

    async def work(first: subprocess.Popen[str]) -> None:
        async with serving(tmp_path, hooks_of(tmp_path)) as demo:
            for _ in range(20):
                run_id = (await asyncio.to_thread(said, first))["run_id"]
                [row] = await demo.wait(run_id)
                assert (row["exit_code"], row["outcome"]) == (3, "failed")
            ended = {row["run_id"]: row for row in await demo.runs()}
            rows = await asyncio.to_thread(said, first)
            known = [row for row in rows["jobs"] if row["terminal"]]  # the last one may have ended since
            assert [ended[row["run_id"]]["finished_at"] for row in known] == [row["finished_at"] for row in known]
            while len((tmp_path / "settled").read_text().splitlines()) < 20:
                await demo.runs()

    (tmp_path / "settled").touch()
    submits = [("work.submit", {"script": "exit 3"})] * 20
    with server(tmp_path, *submits, ("job.list", {})) as first:
        finish(work(first))
    assert len(set((tmp_path / "settled").read_text().splitlines())) == 20


def test_a_run_of_another_server_is_killed_and_that_one_sees_its_exit_code(
    tmp_path: Path, gate: Fifo, up: Fifo
) -> None:
    async def work(run_id: str) -> None:
        async with serving(tmp_path) as demo:
            killed = await demo.kill(run_id)
            assert (killed["killed"], killed["signal"]) == (True, "SIGTERM")
            status = await demo.status(run_id)
            assert told(status) == KILLED
            assert status["exit_code"] == -signal.SIGTERM

    with server(tmp_path, submit(f"echo > {up}; read x < {gate}")) as first:
        run_id = said(first)["run_id"]
        up.path.read_text()
        finish(work(run_id))


# Records that something is odd about.


def add(runs: RunStore, **changes: Any) -> RunRecord:
    """Put a run on record that nobody has started."""
    run_id = new_run_id()
    made = RunRecord(run_id, "work.submit", None, ("tool",), "/", Path(), own_identity(), datetime.now(UTC))
    return runs.reserve(replace(made, **changes), None)


def test_a_recycled_pid_is_recognised(tmp_path: Path) -> None:
    async def work(ids: list[str]) -> None:
        async with serving(tmp_path) as demo:
            killed = await demo.kill(ids[0])
            assert (killed["killed"], killed["reason_code"], killed["signal"]) == (False, "pid_recycled", None)
            for row in await demo.wait(*ids):
                assert told(row) == NOBODY_KNOWS

    with process() as other:
        # The number is that of a living process, which started at another time.
        leader = Identity(other.pid, "another time")
        with records(tmp_path) as runs:
            ids = [add(runs, owner=leader).run_id for _ in range(2)]
            for run_id in ids:
                runs.started(run_id, leader, leader.pid, datetime.now(UTC))
        finish(work(ids))
        assert other.poll() is None


def test_a_start_of_another_server_is_left_alone_while_that_lives(tmp_path: Path) -> None:
    async def work(run_id: str, owner: subprocess.Popen[bytes]) -> None:
        async with serving(tmp_path) as demo:
            status = await demo.status(run_id)
            assert (status["status"], status["spawn_state"], status["alive"]) == ("running", "preparing", None)
            assert status["pid_identity"] == "not_recorded"
            waited = await demo.call("job.wait", run_ids=[run_id], max_wait=0)
            assert waited["pending"] == [run_id]
            killed = await demo.kill(run_id)
            assert (killed["killed"], killed["reason_code"]) == (False, "no_pid_on_record")
            assert not (await demo.status(run_id))["terminal"]
            owner.kill()
            owner.wait()
            [row] = await demo.wait(run_id)
            assert told(row) == NEVER

    with process() as owner:
        with records(tmp_path) as runs:
            record = add(runs, owner=identity_of(owner.pid))
        finish(work(record.run_id, owner))
    with records(tmp_path) as runs:
        now = runs.get(record.run_id)
        assert now is not None
        assert now.stop_reason == "kill"  # whoever starts it sees that


def test_a_start_that_nothing_was_heard_of_for_long_is_not_waited_for(tmp_path: Path) -> None:
    async def work(run_id: str) -> None:
        async with serving(tmp_path) as demo:
            waited = await demo.call("job.wait", run_ids=[run_id], max_wait=50)
            assert waited["unresolved_spawn"] == [run_id]
            assert (waited["pending"], waited["timed_out"], waited["all_terminal"]) == ([], False, False)

    with process() as owner:
        with records(tmp_path) as runs:
            record = add(runs, owner=identity_of(owner.pid), submitted_at=datetime.now(UTC) - DAY)
        finish(work(record.run_id))


def test_a_record_that_cannot_be_read(tmp_path: Path) -> None:
    async def work(good: str, bad: str) -> None:
        async with serving(tmp_path) as demo:
            status = await demo.status(bad)
            assert (status["known"], status["record_state"], status["terminal"]) == (False, "unreadable", False)
            output = await demo.call("job.output", run_id=bad)
            assert (output["known"], output["record_state"]) == (False, "unreadable")
            await demo.wait(good)
            rows = {row["run_id"]: row for row in await demo.runs()}
            assert rows.keys() == {good, bad}
            assert rows[bad]["error"]["kind"] == "record_unusable"
            waited = await demo.call("job.wait", run_ids=[bad], max_wait=50)
            assert waited["runs"] == [rows[bad]]
            assert (waited["all_terminal"], waited["pending"]) == (False, [])
            assert (await demo.kill(bad))["reason_code"] == "job_record_unreadable"

    with records(tmp_path) as runs:
        good, bad = add(runs).run_id, add(runs).run_id
    connection = sqlite3.connect(tmp_path / "state" / "runs.db")
    with connection:
        connection.execute("UPDATE runs SET details = '[' WHERE run_id = ?", [bad])
    connection.close()
    finish(work(good, bad))


def full(*_: object) -> bool:
    raise StoreError("The disk is full.")


def test_a_kill_that_cannot_be_put_on_record_stops_the_run_and_says_so(
    tmp_path: Path, gate: Fifo, monkeypatch: pytest.MonkeyPatch
) -> None:

    async def work() -> None:
        async with serving(tmp_path) as demo:
            run_id = await demo.submit(f"read x < {gate}")
            with monkeypatch.context() as patch:
                patch.setattr(RunStore, "stop_requested", full)
                killed = await demo.kill(run_id)
                assert (killed["killed"], killed["reason_code"]) == (True, "signalled")
                assert "could not be put on record" in killed["reason"]
            [row] = await demo.wait(run_id)
            assert (*told(row), row["exit_code"]) == ("exited", "failed", "exited_nonzero", -signal.SIGTERM)

    finish(work())


def test_a_start_under_way_is_not_stopped_where_the_request_cannot_be_put_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(run_id: str) -> None:
        async with serving(tmp_path) as demo:
            killed = await demo.kill(run_id)
            assert (killed["killed"], killed["reason_code"]) == (False, "kill_not_recorded")

    monkeypatch.setattr(RunStore, "stop_requested", full)
    with process() as owner:
        with records(tmp_path) as runs:
            record = add(runs, owner=identity_of(owner.pid))
        finish(work(record.run_id))


def test_the_limit_of_a_log_holds_when_nothing_can_be_put_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        async with serving(tmp_path, log=1000) as demo:
            with monkeypatch.context() as patch:
                patch.setattr(RunStore, "stop_requested", full)
                run_id = await demo.submit("while :; do echo more and more; done")
                [row] = await demo.wait(run_id)
            assert row["exit_code"] == -signal.SIGTERM

    finish(work())


def test_what_cannot_be_stopped_for_its_log_is_said_once(
    tmp_path: Path, gate: Fifo, monkeypatch: pytest.MonkeyPatch
) -> None:
    said_so: list[tuple[str, str]] = []
    tries: list[None] = []

    def stop(*_: object) -> Stopped:
        tries.append(None)
        return Stopped(False, None, "permission_denied")

    async def work() -> None:
        async with serving(tmp_path, log=10) as demo:
            with monkeypatch.context() as patch:
                patch.setattr("verbc.support.run_stopping.stop", stop)
                run_id = await demo.submit(f"echo more and more; read x < {gate}")
                while len(tries) < 3:  # noqa: ASYNC110 - nothing tells of a try
                    await asyncio.sleep(0)
            assert said_so == [("a run could not be stopped", "permission_denied")]
            while not (await demo.kill(run_id))["killed"]:
                pass  # it joined an attempt of before, which stopped nothing

    def note(_level: str, what: str, **fields: Any) -> None:
        said_so.append((what, fields["reason_code"]))

    monkeypatch.setattr("verbc.support.run_watch.log.event", note)
    finish(work())


def test_the_length_of_a_log_that_its_run_removed_is_known(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(tmp_path, log=100_000) as demo:
            log = tmp_path / "state" / "runs" / "*" / "console.log"
            run_id = await demo.submit(f"rm {log}; while :; do echo more and more; done")
            [row] = await demo.wait(run_id)
            assert row["reason_code"] == "log_limit_exceeded"

    finish(work())


def test_what_lies_in_the_place_of_a_log_is_not_measured(tmp_path: Path, gate: Fifo, up: Fifo) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"x" * 1000)

    async def work() -> None:
        async with serving(tmp_path, log=100) as demo:
            log = tmp_path / "state" / "runs" / "*"
            run_id = await demo.submit(f"cd {log}; ln -sf {other} console.log; echo > {up}; read x < {gate}")
            await up.read()
            folder = tmp_path / "state" / "runs" / run_id
            assert length(folder / "console.log", (await demo.status(run_id))["pid"]) == 0
            await gate.write()
            [row] = await demo.wait(run_id)
            assert told(row) == SUCCEEDED

    finish(work())


def test_a_start_that_cannot_be_put_on_record_is_stopped_at_once(
    tmp_path: Path, gate: Fifo, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            with monkeypatch.context() as patch:
                patch.setattr(RunStore, "started", full)
                refused = await demo.call("work.submit", script=f"read x < {gate}")
                assert refused["kind"] == "unavailable"
            [row] = await demo.wait(refused["detail"]["run_id"])
            assert told(row) == NOBODY_KNOWS

    finish(work())


def test_what_was_put_on_record_before_a_process_went_is_never_missed(tmp_path: Path) -> None:
    """The record that a look begins with is older than the look: its exit code may have come in between."""
    leader = Identity(own_identity().pid, "another time")

    with records(tmp_path) as runs:

        class Late(RunLook):
            def of(self, run_id: str) -> Look:
                found = super().of(run_id)
                runs.stop_requested(run_id, "kill", datetime.now(UTC))
                runs.exited(run_id, 3, datetime.now(UTC))
                return found

        record = add(runs)
        runs.started(record.run_id, leader, leader.pid, datetime.now(UTC))
        finding = RunEnds(runs, Late(runs, "DEMO_MCP_RUN_ID"), reports=False).find(record.run_id)
        assert finding.record is not None
        assert (finding.record.exit_code, finding.record.stop_reason) == (3, "kill")


# What is over goes.


def test_retention_removes_what_ended_long_ago_and_never_a_living_run(tmp_path: Path) -> None:
    folders = tmp_path / "state" / "runs"
    now, done = datetime.now(UTC), End("exited", "succeeded", "exit_code")
    with records(tmp_path) as runs:
        old, young, living = add(runs), add(runs), add(runs, submitted_at=now - 100 * DAY)
        runs.end(old.run_id, done, now - 3 * DAY, "observed")
        runs.end(young.run_id, done, now - DAY, "observed")
        lost, lately_lost = new_run_id(), new_run_id()
        for run_id in (old.run_id, young.run_id, living.run_id, lost, lately_lost):
            (folders / run_id).mkdir()
            (folders / run_id / "console.log").write_text("text")
            os.utime(folders / run_id, (0, 0))
        # A folder whose record is lost may be the one of a living run, as long as its log is not old.
        os.utime(folders / lost / "console.log", (0, 0))
        (folders / "other").mkdir()
        linked = new_run_id()
        (folders / linked).symlink_to(tmp_path)
        retention = RunRetention(runs, folders, keep=2 * DAY.total_seconds())
        retention.tidy(now)
        assert runs.known([old.run_id, young.run_id, living.run_id]) == {young.run_id, living.run_id}
        kept = {young.run_id, living.run_id, lately_lost, "other", linked}
        assert {path.name for path in folders.iterdir()} == kept
        assert (tmp_path / "bin").exists()
        retention.tidy(now - 100 * DAY)  # the clock was set back
        assert runs.known([young.run_id, living.run_id]) == {young.run_id, living.run_id}


@pytest.mark.parametrize("point", ["before forget", "after forget"])
def test_killed_while_old_runs_are_removed(tmp_path: Path, crash: Crash, point: str) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            while await demo.runs() or any((tmp_path / "state" / "runs").iterdir()):
                pass

    with records(tmp_path) as runs:
        old = add(runs)
        runs.end(old.run_id, End("exited", "succeeded", "exit_code"), datetime.now(UTC) - 400 * DAY, "observed")
    (tmp_path / "state" / "runs" / old.run_id).mkdir()
    crash(point, ("job.list", {}))
    finish(work())


def test_a_server_looks_after_runs_without_being_asked(tmp_path: Path, gate: Fifo, up: Fifo) -> None:
    """A run of a server that was killed is settled, and its hooks are told, when nobody reads anything."""

    async def work() -> None:
        async with serving(tmp_path, hooks_of(tmp_path)) as demo:
            await demo.backend._keeper()
            await gate.write()
            while not (tmp_path / "settled").read_text():  # noqa: ASYNC110 - a file is all that tells
                await asyncio.sleep(0)

    (tmp_path / "settled").touch()
    with server(tmp_path, submit(f"echo > {up}; read x < {gate}")) as first:
        run_id = said(first)["run_id"]
        up.path.read_text()
    finish(work())
    assert (tmp_path / "settled").read_text() == f"{run_id} indeterminate\n"


def test_servers_of_one_process_do_not_take_each_others_starts_for_lost(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(tmp_path) as one, serving(tmp_path) as two:
            ids: list[str] = []

            async def submits(demo: Demo) -> None:
                for _ in range(10):
                    ids.append(await demo.submit("true"))

            async def lists(demo: Demo) -> None:
                while len(ids) < 20:
                    await demo.runs()

            await asyncio.gather(submits(one), submits(two), lists(one), lists(two))
            assert {told(row) for row in await one.wait(*ids)} == {SUCCEEDED}

    finish(work())
