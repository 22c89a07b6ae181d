"""What is kept of runs, where it lies, and what a key stands for; over a stand-in for `li`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .mcp_process import McpProcess
from .places import Place, package_with
from .stubs import StubLi
from .submits import ended, refusal, result, submission, submit, wait

SUCCEEDED = "report completed"


@pytest.fixture(scope="module")
def stub_li(tmp_path_factory: pytest.TempPathFactory) -> StubLi:
    return StubLi.made_in(tmp_path_factory.mktemp("li"))


@pytest.fixture(scope="module")
def place(lion_mcp: Path, stub_li: StubLi, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place.made_in(tmp_path_factory.mktemp("place"), stub_li.program)


@pytest.fixture(scope="module")
def lion(place: Place) -> Iterator[McpProcess]:
    """One server for all tests that do not end it."""
    with place.server() as server:
        yield server


def starts_of(stub_li: StubLi, run_id: str) -> list[dict[str, Any]]:
    return [start for start in stub_li.starts() if start["environment"]["LIONAGI_RUN_ID"] == run_id]


def test_two_servers_that_are_sent_one_key_start_one_run(place: Place, lion: McpProcess, stub_li: StubLi) -> None:
    op = submission(lion, "agent.submit", {"query": [SUCCEEDED], "prompt": "x", "idempotency_key": "for two"})
    before = len(stub_li.starts())
    with place.server() as other:
        sent = [
            (server, server.send("tools/call", {"name": "request", "arguments": {"ops": [op]}}))
            for server in (lion, other)
        ]
        replies = [server.reply_to(request)["result"]["structuredContent"]["ops"][0] for server, request in sent]
        first, second = (reply["result"]["run_id"] for reply in replies)
        assert first == second
        assert wait(lion, first)[0]["outcome"] == wait(other, first)[0]["outcome"] == "succeeded"
    assert len(stub_li.starts()) == before + 1
    assert len(starts_of(stub_li, first)) == 1


def test_a_key_belongs_to_one_verb(lion: McpProcess) -> None:
    args: dict[str, Any] = {"query": [SUCCEEDED], "prompt": "x", "idempotency_key": "for one verb"}
    ids = [submit(lion, verb, **args)["run_id"] for verb in ("agent.submit", "fanout.submit", "flow.submit")]
    assert len(set(ids)) == 3
    assert [submit(lion, verb, **args)["run_id"] for verb in ("agent.submit", "fanout.submit", "flow.submit")] == ids
    wait(lion, *ids)


def test_a_refusal_is_not_remembered_under_its_key(lion: McpProcess, tmp_path: Path) -> None:
    args: dict[str, Any] = {"query": [SUCCEEDED], "prompt": "x", "idempotency_key": "refused at first"}
    assert refusal(lion, **args, cwd=str(tmp_path / "none"))["kind"] == "invalid_input"
    run_id = submit(lion, **args, cwd=str(tmp_path))["run_id"]
    assert wait(lion, run_id)[0]["outcome"] == "succeeded"
    assert refusal(lion, **args, cwd="/")["kind"] == "conflict"


def test_a_list_has_the_newest_first(lion: McpProcess, stub_li: StubLi) -> None:
    with stub_li.meeting("listed") as meeting:
        living = submit(lion, query=["hold listed"], prompt="x")["run_id"]
        meeting.begun()
        ids = [submit(lion, query=[step], prompt="x")["run_id"] for step in (SUCCEEDED, "report failed", "exit 3")]
        wait(lion, *ids)
        rows = result(lion, "job.list")["jobs"]
        told = [row["run_id"] for row in rows]
        assert told == sorted(told, reverse=True)
        assert {*told} >= {living, *ids}
        few = result(lion, "job.list", limit=2)
        assert ([row["run_id"] for row in few["jobs"]], few["has_more"]) == (told[:2], True)
        assert result(lion, "job.list", limit=1000)["has_more"] is False
        for status, run_id in zip(("running", "completed", "failed", "exited"), (living, *ids), strict=True):
            found = result(lion, "job.list", status=status)["jobs"]
            assert {row["status"] for row in found} == {status}
            assert run_id in [row["run_id"] for row in found]
        assert result(lion, "job.list", status="Completed")["jobs"] == []
    wait(lion, living)


def test_a_wait_ends_when_its_time_is_up(lion: McpProcess, stub_li: StubLi) -> None:
    with stub_li.meeting("awaited") as meeting:
        run_id = submit(lion, query=["hold awaited"], prompt="x")["run_id"]
        meeting.begun()
        told = result(lion, "job.wait", run_ids=[run_id], max_wait=0.2, poll_interval=0.05)
        assert (told["timed_out"], told["all_terminal"], told["pending"]) == (True, False, [run_id])
        assert (told["max_wait"], told["poll_interval"]) == (0.2, 0.05)
        assert meeting.lasts()
    wait(lion, run_id)


def test_a_run_that_prints_too_much_is_stopped(place: Place, stub_li: StubLi, tmp_path: Path) -> None:
    limited = package_with(tmp_path, log=100_000)
    with place.server(limited) as server, stub_li.meeting("talking") as meeting:
        run_id = submit(server, query=["fill 200000, hold talking"], prompt="x")["run_id"]
        meeting.begun()
        assert meeting.has_ended()
        status = ended(server, run_id)
        assert (status["status"], status["outcome"]) == ("failed", "failed")
        assert (status["reason_code"], status["terminal_source"]) == ("log_limit_exceeded", "log_limit")


def test_a_task_and_the_servers_of_a_run_are_files_of_its_own(place: Place, stub_li: StubLi) -> None:
    servers = {"keep": {"command": "c", "env": {"TOKEN": "a secret value"}}, "drop": {"command": "d"}}
    with place.server() as server:
        (server.log_path.parent / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
        told = submit(server, query=[SUCCEEDED], prompt="a secret task", exclude_mcp_servers=["drop"])
        ended(server, told["run_id"])
    (start,) = starts_of(stub_li, told["run_id"])
    flags = dict(word.split("=", 1) for word in start["argv"] if word.startswith("--") and "=" in word)
    task, kept = Path(flags["--prompt-file"]), Path(flags["--mcp-config"])
    assert {task.parent, kept.parent} == {Path(told["log"]).parent}
    assert task.read_text().rstrip("\n") == "a secret task"
    assert json.loads(kept.read_text())["mcpServers"] == {"keep": servers["keep"]}
    assert "secret" not in json.dumps(start["argv"])
    assert [path.stat().st_mode & 0o777 for path in (task, kept)] == [0o600] * 2


def test_the_state_lies_where_it_is_wanted(place: Place, tmp_path: Path) -> None:
    chosen = ("-m", "lion_mcp", "--state", str(tmp_path / "chosen"))
    for more, program, folder in (
        ({"XDG_STATE_HOME": str(tmp_path / "xdg")}, ("-m", "lion_mcp"), tmp_path / "xdg" / "lion-mcp"),
        ({}, chosen, tmp_path / "chosen"),
    ):
        with place.server(more, program) as server:
            told = submit(server, query=[SUCCEEDED], prompt="x")
            ended(server, told["run_id"])
            assert Path(told["log"]).is_relative_to(folder)
            assert [row["run_id"] for row in result(server, "job.list")["jobs"]] == [told["run_id"]]
            assert folder.stat().st_mode & 0o777 == 0o700


def test_a_state_that_cannot_be_used_is_told_plainly_and_harms_nothing_else(place: Place, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "file").write_text("")
    for name in ("open", "file"):
        with place.server(program=("-m", "lion_mcp", "--state", str(tmp_path / name))) as server:
            error = server.op("job.list")["error"]
            assert error["kind"] == "unavailable"
            assert str(tmp_path / name) in error["message"]
            assert refusal(server, query=[SUCCEEDED], prompt="x")["kind"] == "unavailable"
            assert server.op("runs")["ok"]
    assert [path.name for path in tmp_path.iterdir() if path.is_dir() and list(path.iterdir())] == []
