"""The server is killed at every write of its store; afterwards each run ends once and rightly, and none is started twice."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .mcp_process import McpProcess
from .meetings import Meeting
from .places import Place, package_with
from .stubs import StubLi
from .submits import ended, plain, result, submission, submit

LAUNCHER = str(Path(__file__).with_name("crashing_server.py"))


@dataclass(frozen=True, slots=True)
class Scene:
    """One crash: where servers live, and where the run is met that they start."""

    place: Place
    stub: StubLi
    meeting: Meeting
    folder: Path

    def args(self, *steps: str, **more: Any) -> dict[str, Any]:
        """A submit that can be repeated."""
        row = ", ".join(steps or ("hold run", "report completed"))
        return {"query": [row], "prompt": "x", "idempotency_key": "the key", "label": "crash", **more}

    def doomed(self, point: str, more: dict[str, str] | None = None) -> McpProcess:
        """A server that is killed at this point."""
        return self.place.server(more, program=(LAUNCHER, point, str(self.folder / "noted")))

    def started(self) -> int:
        """How many processes were started so far."""
        return len(self.stub.starts())


@pytest.fixture
def scene(lion_mcp: Path, tmp_path: Path) -> Iterator[Scene]:
    for name in ("li", "place"):
        (tmp_path / name).mkdir()
    stub = StubLi.made_in(tmp_path / "li")
    with stub.meeting("run") as meeting:
        yield Scene(Place.made_in(tmp_path / "place", stub.program), stub, meeting, tmp_path)


def sent(server: McpProcess, *ops: dict[str, Any]) -> None:
    """Sends ops that will not be answered."""
    server.send("tools/call", {"name": "request", "arguments": {"ops": list(ops)}})


def sent_and_died(server: McpProcess, *ops: dict[str, Any]) -> None:
    sent(server, *ops)
    assert server.wait() == -signal.SIGKILL


def rows_of(server: McpProcess) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = result(server, "job.list")["jobs"]
    assert all(row["record_state"] == "ok" and "error" not in row for row in rows)
    return rows


def end_of(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["status"], row["outcome"], row["reason_code"]


def settled(server: McpProcess) -> dict[str, tuple[str, str, str]]:
    """Waits for all runs on record, and gives their ends by id; they are told the same when asked again."""
    for row in rows_of(server):
        ended(server, row["run_id"])
    rows = rows_of(server)
    assert plain(rows_of(server)) == plain(rows)
    return {row["run_id"]: end_of(row) for row in rows}


COMPLETED = ("completed", "succeeded", "run.completed.ok")
KILLED = ("killed", "cancelled", "killed")
NEVER_STARTED = ("failed", "failed", "spawn_failed")
UNKNOWN = ("exited", "indeterminate", "process_gone_without_outcome")
# All that a server writes; each has its test here.
WRITES = (
    "migrate",
    "reserve",
    "started",
    "spawn failed",
    "stop requested",
    "exited",
    "end",
    "details",
    "told",
    "late report",
    "forget",
)
BOTH = pytest.mark.parametrize("when", ["before", "after"])


@BOTH
def test_migrate(scene: Scene, when: str) -> None:
    with scene.doomed(f"{when} migrate") as server:
        sent_and_died(server, submission(server, "agent.submit", scene.args()))
    with scene.place.server() as server:
        assert rows_of(server) == []
        run_id = submit(server, **scene.args())["run_id"]
        scene.meeting.begun()
        scene.meeting.let_go()
        assert settled(server) == {run_id: COMPLETED}
    assert scene.started() == 1


@BOTH
def test_reserve(scene: Scene, when: str) -> None:
    args = scene.args()
    with scene.doomed(f"{when} reserve") as server:
        sent_and_died(server, submission(server, "agent.submit", args))
    assert scene.started() == 0
    with scene.place.server() as server:
        lost = [row["run_id"] for row in rows_of(server)]
        assert len(lost) == (when == "after")
        if lost:
            assert end_of(ended(server, lost[0])) == NEVER_STARTED
        again = submit(server, **args)["run_id"]
        if again not in lost:
            scene.meeting.begun()
        assert submit(server, **args)["run_id"] == again
        scene.meeting.let_go()
        assert settled(server) == {again: COMPLETED, **dict.fromkeys(lost, NEVER_STARTED)}
    assert scene.started() == (again not in lost)


@BOTH
def test_started(scene: Scene, when: str) -> None:
    args = scene.args()
    with scene.doomed(f"{when} started") as server:
        sent_and_died(server, submission(server, "agent.submit", args))
    pid = scene.meeting.begun()
    with scene.place.server() as server:
        run_id = submit(server, **args)["run_id"]
        status = result(server, "job.status", run_id=run_id)
        assert (status["status"], status["alive"], status["pid"]) == ("running", True, pid)
        assert status["spawn_state"] == "started"
        scene.meeting.let_go()
        assert settled(server) == {run_id: COMPLETED}
    assert scene.started() == 1


def test_a_start_that_ended_before_anyone_looked(scene: Scene) -> None:
    args = scene.args("hold run", "exit 3")
    with scene.doomed("before started") as server:
        sent_and_died(server, submission(server, "agent.submit", args))
    scene.meeting.begun()
    scene.meeting.let_go()
    assert scene.meeting.has_ended()
    with scene.place.server() as server:
        run_id = submit(server, **args)["run_id"]
        assert settled(server) == {run_id: UNKNOWN}
    assert scene.started() == 1


@BOTH
def test_spawn_failed(scene: Scene, when: str) -> None:
    args = scene.args()
    with scene.doomed(f"{when} spawn failed") as server:
        assert server.op("handshake")["ok"]
        hidden = scene.stub.program.rename(scene.stub.program.with_name("hidden"))
        sent_and_died(server, submission(server, "agent.submit", args))
    hidden.rename(scene.stub.program)
    with scene.place.server() as server:
        (lost,) = (row["run_id"] for row in rows_of(server))
        again = submit(server, **args)["run_id"]
        if again != lost:
            scene.meeting.begun()
        scene.meeting.let_go()
        ends = settled(server)
    assert ends.pop(lost) in ((NEVER_STARTED,) if when == "after" else (NEVER_STARTED, UNKNOWN))
    assert ends == ({again: COMPLETED} if again != lost else {})
    assert scene.started() == len(ends)
    assert when == "before" or again != lost


@BOTH
def test_stop_requested(scene: Scene, when: str) -> None:
    args = scene.args("hold run")
    with scene.doomed(f"{when} stop requested") as server:
        run_id = submit(server, **args)["run_id"]
        scene.meeting.begun()
        sent_and_died(server, {"op": "job.kill", "args": {"run_id": run_id}})
    with scene.place.server() as server:
        if when == "before":
            assert scene.meeting.lasts()
            assert result(server, "job.status", run_id=run_id)["status"] == "running"
        result(server, "job.kill", run_id=run_id)
        assert not scene.meeting.lasts()
        assert submit(server, **args)["run_id"] == run_id
        assert settled(server) == {run_id: KILLED}
    assert scene.started() == 1


@BOTH
@pytest.mark.parametrize(
    ("steps", "known", "unknown"),
    [
        (("report completed",), COMPLETED, COMPLETED),
        (("exit 3",), ("exited", "failed", "exited_nonzero_without_report"), UNKNOWN),
    ],
    ids=["report", "exit code"],
)
def test_exited(
    scene: Scene, when: str, steps: tuple[str, ...], known: tuple[str, str, str], unknown: tuple[str, str, str]
) -> None:
    args = scene.args("hold run", *steps)
    with scene.doomed(f"{when} exited") as server:
        run_id = submit(server, **args)["run_id"]
        scene.meeting.begun()
        scene.meeting.let_go()
        assert server.wait() == -signal.SIGKILL
    with scene.place.server() as server:
        assert submit(server, **args)["run_id"] == run_id
        assert settled(server) == {run_id: unknown if when == "before" else known}
    assert scene.started() == 1


@BOTH
@pytest.mark.parametrize("point", ["end", "details", "told"])
def test_the_end_and_what_follows_it(scene: Scene, when: str, point: str) -> None:
    told = scene.folder / "told"
    script = scene.folder / "tell"
    script.write_text('#!/bin/sh\necho "$1" >>"${0%/*}/told"\n')
    script.chmod(0o755)
    args = scene.args(notify_command=json.dumps([str(script), "{run_id}"]))
    with scene.doomed(f"{when} {point}") as server:
        run_id = submit(server, **args)["run_id"]
        scene.meeting.begun()
        scene.meeting.let_go()
        assert server.wait() == -signal.SIGKILL
    with scene.place.server() as server:
        assert submit(server, **args)["run_id"] == run_id
        assert settled(server) == {run_id: COMPLETED}
        assert server.close() == 0
    assert scene.started() == 1
    lines = told.read_text().split() if told.exists() else []
    assert lines == [run_id]


@BOTH
def test_late_report(scene: Scene, when: str) -> None:
    args = scene.args("polite failed", "hold run")
    with scene.doomed(f"{when} late report") as server:
        run_id = submit(server, **args)["run_id"]
        scene.meeting.begun()
        sent_and_died(server, {"op": "job.kill", "args": {"run_id": run_id}})
    with scene.place.server() as server:
        assert submit(server, **args)["run_id"] == run_id
        assert settled(server) == {run_id: KILLED}
        first = rows_of(server)
        told = result(server, "job.status", run_id=run_id)["late_report"]
        assert when == "before" or told["status"] == "failed"
    with scene.place.server() as server:
        assert plain(rows_of(server)) == plain(first)
    assert scene.started() == 1


@BOTH
def test_forget(scene: Scene, when: str) -> None:
    args = scene.args()
    with scene.place.server() as server:
        first = submit(server, **args)["run_id"]
        scene.meeting.begun()
        scene.meeting.let_go()
        ended(server, first)
    with scene.doomed(f"{when} forget", dict(package_with(scene.folder / "package", keep=0))) as server:
        sent_and_died(server, {"op": "job.list"})
    with scene.place.server() as server:
        known = result(server, "job.status", run_id=first)["known"]
        assert known == (when == "before")
        again = submit(server, **args)["run_id"]
        assert (again == first) == known
        assert settled(server) == {again: COMPLETED}
    assert scene.started() == (1 if known else 2)


def test_every_write_is_in_the_matrix(scene: Scene) -> None:
    """All that can be written in the life of runs, without a crash."""
    with scene.doomed("nowhere") as server:
        told = submit(server, **scene.args("polite failed", "hold run", notify_command='["/bin/true"]'))
        scene.meeting.begun()
        assert result(server, "job.kill", run_id=told["run_id"])["killed"]
        ended(server, told["run_id"])
        scene.stub.program.unlink()
        assert not server.op_of(submission(server, "agent.submit", {**scene.args(), "idempotency_key": "other"}))["ok"]
        assert server.close() == 0
    noted = set((scene.folder / "noted").read_text().splitlines())
    assert noted == {f"{when} {write}" for when in ("before", "after") for write in WRITES}
