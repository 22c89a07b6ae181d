"""Runs in the background with the real `li` and a `claude` that does what it is told."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .mcp_process import McpProcess
from .meetings import Meeting
from .places import Place
from .stubs import FakeClaude
from .submits import console, ended, fingerprint_of, plain, refusal, result, run_ids, submit, wait, waited_and_read

MODEL = ["claude/opus"]
SUCCEEDED = ("completed", "succeeded", "run.completed.ok")

PLAYBOOK = """\
description: Greets somebody.
model: claude/opus
args:
  who: {type: str, required: true, help: Who is greeted.}
  times: {type: int, default: 2, help: How often.}
  ratio: {type: float, default: 0.5, help: How much of it.}
  loud: {type: bool, default: false, help: Whether to shout.}
  style: {type: str, help: In which manner.}
prompt: "Greet {who} {times} times, ratio {ratio}, loud {loud}. {input}"
"""


@pytest.fixture(scope="module")
def claude(tmp_path_factory: pytest.TempPathFactory) -> FakeClaude:
    return FakeClaude.made_in(tmp_path_factory.mktemp("claude"))


@pytest.fixture(scope="module")
def place(li: Path, lion_mcp: Path, claude: FakeClaude, tmp_path_factory: pytest.TempPathFactory) -> Place:
    made = Place.made_in(tmp_path_factory.mktemp("place"), li, claude.variables)
    for name, text in {
        "agents/reviewer.md": "---\nmodel: claude/opus\n---\n\nYou review with care.\n",
        "playbooks/greet.playbook.yaml": PLAYBOOK,
    }.items():
        (path := made.home / ".lionagi" / name).parent.mkdir(parents=True)
        path.write_text(text)
    return made


@pytest.fixture(scope="module")
def lion(place: Place) -> Iterator[McpProcess]:
    """One server for all tests that do not end it."""
    with place.server() as server:
        yield server


@pytest.fixture
def meeting(claude: FakeClaude, request: pytest.FixtureRequest) -> Iterator[Meeting]:
    """Where this test meets the `claude` that it holds."""
    with claude.meeting("".join(filter(str.isalnum, request.node.name))) as made:
        yield made


def end_of(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["status"], row["outcome"], row["reason_code"]


def held(server: McpProcess, meeting: Meeting, what: str = "hold", **args: Any) -> str:
    """Starts a run that waits in the middle, and gives its id once it does."""
    run_id: str = submit(server, query=MODEL, prompt=f"<<{what} {meeting.name}>>", **args)["run_id"]
    meeting.begun()
    return run_id


# What became of it.


@pytest.fixture(scope="module")
def finished(lion: McpProcess) -> dict[str, Any]:
    """A run that has ended well, as it was told of at its start."""
    told = submit(lion, query=[*MODEL, "<<say it>>"], label="whole")
    assert (told["status"], told["terminal"], told["outcome"], told["reason_code"]) == ("running", False, None, None)
    assert (told["spawn_state"], told["label"]) == ("started", "whole")
    answered(lion, told, "it")
    return told


def answered(server: McpProcess, told: dict[str, Any], answer: str) -> None:
    """Waits for a run and reads its output in ONE request; fails unless the answer is in it."""
    row, read = waited_and_read(server, told["run_id"])
    assert end_of(row) == SUCCEEDED
    assert f"\n{answer}\n" in read["console"]
    assert (read["terminal"], read["truncated"]) == (True, False)
    assert read["log_bytes"] == len(Path(told["log"]).read_bytes()) == len(read["console"].encode())
    assert row["label"] == told["label"]


@pytest.mark.parametrize("way", ["profile", "file"])
def test_wait_and_output_in_one_request_have_the_answer(
    lion: McpProcess, claude: FakeClaude, finished: dict[str, Any], tmp_path: Path, way: str
) -> None:
    (tmp_path / "task").write_text("<<say from a file>>\n")
    ways: dict[str, tuple[dict[str, Any], str]] = {
        "profile": ({"agent": "reviewer", "query": ["<<say as told>>"], "cwd": str(tmp_path)}, "as told"),
        "file": ({"query": MODEL, "prompt_file": str(tmp_path / "task")}, "from a file"),
    }
    args, answer = ways[way]
    answered(lion, submit(lion, **args), answer)
    (prompt,) = (prompt for prompt in claude.prompts() if answer in prompt)
    assert ("You review with care." in prompt) == (way == "profile")


def test_a_finished_run_in_full(lion: McpProcess, finished: dict[str, Any]) -> None:
    run_id = finished["run_id"]
    (row,) = (row for row in result(lion, "job.list")["jobs"] if row["run_id"] == run_id)
    status = ended(lion, run_id)
    assert status["known"]
    assert (status["verb"], status["label"]) == ("agent.submit", "whole")
    assert (status["alive"], status["possibly_orphaned"], status["late_report"]) == (False, False, None)
    assert (status["exit_code"], status["terminal_source"], status["pid_identity"]) == (0, "report", "gone")
    assert (status["pid"], status["submitted_at"]) == (finished["pid"], finished["submitted_at"])
    assert status["finished_at_precision"] == "observed"
    assert status["submitted_at"] <= status["started_at"] <= status["finished_at"]
    assert status["log_tail"] == console(lion, run_id)[-4000:]
    assert plain({key: status[key] for key in row}) == plain(row)
    assert status["details"].items() >= row["details"].items()
    assert "launch" not in status
    launch = result(lion, "job.status", run_id=run_id, detail=True)["launch"]
    assert launch["log"] == finished["log"]
    assert launch["log_bytes"] == len(Path(finished["log"]).read_bytes())
    assert launch["command"][1] == "agent"
    assert launch["command"][-2:] == [*MODEL, "<<say it>>"]


def test_everything_lies_in_the_home_of_the_server(place: Place, finished: dict[str, Any]) -> None:
    assert Path(finished["log"]).is_relative_to(place.state)
    assert place.state.stat().st_mode & 0o777 == 0o700
    assert not (place.home / ".lionagi" / "mcp").exists()
    assert {path.name for path in place.folder.glob("*/*")} == {"server.log"}


def test_runs_that_fail(lion: McpProcess) -> None:
    prompts = ("<<exit 3>>", "<<error>>")
    ids = [submit(lion, query=MODEL, prompt=prompt)["run_id"] for prompt in prompts]
    rows = wait(lion, *ids)
    assert [row["run_id"] for row in rows] == ids
    assert [end_of(row)[:2] for row in rows] == [("failed", "failed")] * 2
    assert [row["reason_code"].split("_")[0] for row in rows] == ["run.failed.exception", "run.failed.provider"]
    assert all("The fake was told to fail." in console(lion, run_id) for run_id in ids)


def test_keys_that_were_left_out_are_made(lion: McpProcess, finished: dict[str, Any]) -> None:
    key = finished["idempotency_key"]
    assert len(key) >= 16
    args: dict[str, Any] = {"query": [*MODEL, "<<say it>>"], "label": "whole"}
    assert submit(lion, **args, idempotency_key=key)["run_id"] == finished["run_id"]


def test_a_run_that_takes_too_long(lion: McpProcess, meeting: Meeting) -> None:
    run_id = held(lion, meeting, timeout=1)
    assert end_of(ended(lion, run_id)) == ("timed_out", "failed", "run.timed_out.deadline")
    assert meeting.has_ended()


# Stopping it.


def test_a_kill(lion: McpProcess, meeting: Meeting) -> None:
    run_id = held(lion, meeting)
    killed = result(lion, "job.kill", run_id=run_id)
    assert (killed["killed"], killed["reason_code"]) == (True, "signalled")
    assert meeting.has_ended()
    status = result(lion, "job.status", run_id=run_id)
    assert (status["terminal"], status["outcome"], status["alive"]) == (True, "cancelled", False)
    assert (status["status"], status["reason_code"]) == ("cancelled", "run.cancelled.sigterm")
    assert (killed["pid"], killed["run_id"]) == (status["pid"], run_id)
    again = result(lion, "job.kill", run_id=run_id)
    assert (again["killed"], again["signal"], again["reason_code"]) == (False, None, "group_gone")
    assert result(lion, "job.status", run_id=run_id)["finished_at"] == status["finished_at"]


@pytest.mark.parametrize("what", ["deaf", "escape", "leave"])
def test_a_kill_that_is_not_so_easy(lion: McpProcess, meeting: Meeting, what: str) -> None:
    run_id = held(lion, meeting, what)
    killed = result(lion, "job.kill", run_id=run_id)
    assert (killed["killed"], killed["reason_code"]) == (True, "signalled")
    assert not meeting.lasts()
    status = ended(lion, run_id)
    assert (status["outcome"], status["alive"]) == ("cancelled", False)


# Nothing that happens to a server or to a request happens to a run.


def test_giving_up_the_wait_leaves_the_run_alone(lion: McpProcess, meeting: Meeting) -> None:
    run_id = held(lion, meeting)
    ops = [{"op": "job.wait", "args": {"run_ids": [run_id], "max_wait": 600}}]
    request = lion.send("tools/call", {"name": "request", "arguments": {"ops": ops}})
    assert result_of(lion, lion.send("tools/call", status_call(run_id)))["status"] == "running"
    lion.notify("notifications/cancelled", {"requestId": request})
    assert result(lion, "job.status", run_id=run_id)["status"] == "running"
    assert meeting.lasts()
    meeting.let_go()
    assert end_of(ended(lion, run_id)) == SUCCEEDED
    assert "\nreleased\n" in console(lion, run_id)


def status_call(run_id: str) -> dict[str, Any]:
    return {"name": "request", "arguments": {"ops": [{"op": "job.status", "args": {"run_id": run_id}}]}}


def result_of(server: McpProcess, request: int) -> dict[str, Any]:
    (entry,) = server.reply_to(request)["result"]["structuredContent"]["ops"]
    told: dict[str, Any] = entry["result"]
    return told


@pytest.mark.parametrize("how", ["ends", "is killed"])
def test_a_run_outlives_its_server(place: Place, meeting: Meeting, how: str) -> None:
    with place.server() as first:
        run_id = held(first, meeting, label=how)
        before = result(first, "job.status", run_id=run_id)
        if how == "ends":
            assert first.close() == 0
        else:
            first.kill()
    assert meeting.lasts()
    with place.server() as second:
        status = result(second, "job.status", run_id=run_id)
        assert (status["status"], status["alive"], status["pid_identity"]) == ("running", True, "confirmed")
        assert plain(status) == plain(before)
        meeting.let_go()
        row, read = waited_and_read(second, run_id)
        assert end_of(row) == SUCCEEDED
        assert "\nreleased\n" in read["console"]
    with place.server() as third:
        assert end_of(result(third, "job.status", run_id=run_id)) == SUCCEEDED


def test_two_servers_answer_alike(place: Place, lion: McpProcess, meeting: Meeting) -> None:
    run_id = held(lion, meeting, label="seen by two")
    with place.server() as other:
        assert plain(result(other, "job.status", run_id=run_id)) == plain(result(lion, "job.status", run_id=run_id))
        ops = {"ops": [{"op": "job.wait", "args": {"run_ids": [run_id], "poll_interval": 0.05}}]}
        requests = [
            (server, server.send("tools/call", {"name": "request", "arguments": ops})) for server in (lion, other)
        ]
        meeting.let_go()
        rows = [result_of(server, request)["runs"][0] for server, request in requests]
        assert end_of(rows[0]) == SUCCEEDED
        for verb, args in {
            "job.status": {"run_id": run_id},
            "job.output": {"run_id": run_id},
            "job.list": {},
            "job.kill": {"run_id": run_id},
        }.items():
            assert plain(result(other, verb, **args)) == plain(result(lion, verb, **args)), verb
    assert plain(rows[0]) == plain(rows[1])


def test_a_kill_from_another_server(place: Place, lion: McpProcess, meeting: Meeting) -> None:
    run_id = held(lion, meeting)
    with place.server() as other:
        assert result(other, "job.kill", run_id=run_id)["killed"]
        assert meeting.has_ended()
        rows = [wait(server, run_id)[0] for server in (lion, other)]
    assert plain(rows[0]) == plain(rows[1])
    assert rows[0]["outcome"] == "cancelled"


def test_two_runs_at_once(claude: FakeClaude, lion: McpProcess, meeting: Meeting) -> None:
    with claude.meeting("another") as another:
        first, second = held(lion, meeting), held(lion, another)
        assert first != second
        another.let_go()
        assert end_of(ended(lion, second)) == SUCCEEDED
        told = result(lion, "job.wait", run_ids=[first, second, first], max_wait=0)
        assert (told["all_terminal"], told["timed_out"], told["pending"]) == (False, True, [first])
        assert [row["terminal"] for row in told["runs"]] == [False, True, False]
        running = result(lion, "job.list", status="running")["jobs"]
        assert [row["run_id"] for row in running] == [first]
        meeting.let_go()
        assert end_of(ended(lion, first)) == SUCCEEDED


# Playbooks, flows, fanouts.


def test_help_with_a_playbook_tells_its_arguments(lion: McpProcess) -> None:
    bare = lion.help("play.submit")["schema"]
    told = lion.call({"help": {"verb": "play.submit", "playbook": "greet"}}).value["schema"]
    more = {name: schema for name, schema in told["properties"].items() if name not in bare["properties"]}
    facts = {name: {key: schema[key] for key in schema.keys() & {"type", "default"}} for name, schema in more.items()}
    assert facts == {
        "who": {"type": "string"},
        "times": {"type": "integer", "default": 2},
        "ratio": {"type": "number", "default": 0.5},
        "loud": {"type": "boolean", "default": False},
        "style": {"type": "string"},
    }
    assert not any("description" in schema for schema in more.values())  # no text of the playbook
    assert (bare["required"], told["required"]) == (["playbook"], ["playbook", "who"])
    assert told["additionalProperties"] is False
    flow = lion.call({"help": {"verb": "flow.submit", "playbook": "greet"}}).value["schema"]
    assert flow["properties"] == told["properties"]


def test_a_playbook_with_arguments(claude: FakeClaude, lion: McpProcess) -> None:
    args: dict[str, Any] = {"playbook": "greet", "who": "Ann", "times": 3, "loud": True, "prompt": "Be brief."}
    error = refusal(lion, "play.submit", **args, playbook_fingerprint="sha256:0")
    assert error["kind"] == "conflict"
    fingerprint = error["detail"]["playbook_fingerprint"]
    told = submit(lion, "play.submit", **args, playbook_fingerprint=fingerprint, dry_run=True)
    assert told["details"]["playbook"]["fingerprint"] == fingerprint
    status = ended(lion, told["run_id"])
    assert end_of(status) == SUCCEEDED
    assert status["verb"] == "play.submit"
    (prompt,) = (prompt for prompt in claude.prompts() if "Greet" in prompt)
    assert "Greet Ann 3 times, ratio 0.5, loud True. Be brief." in prompt


def test_arguments_of_a_playbook_are_checked(lion: McpProcess) -> None:
    before = run_ids(lion)
    for wrong, name in (
        ({}, "who"),
        ({"who": 7}, "who"),
        ({"who": "Ann", "times": "3"}, "times"),
        ({"who": "Ann", "when": "now"}, "when"),
    ):
        error = refusal(lion, "play.submit", playbook="greet", **wrong)
        assert error["kind"] == "invalid_input"
        assert f"`{name}`" in json.dumps(error["detail"]["problems"])
    assert run_ids(lion) == before


def test_a_folder_that_cannot_be_worked_in_is_refused_by_every_submit(lion: McpProcess, tmp_path: Path) -> None:
    """Also where it would have to be looked at for a playbook, before the arguments are."""
    (tmp_path / "file").touch()
    before = run_ids(lion)
    for cwd in (str(tmp_path / "missing"), str(tmp_path / "file"), "here", ""):
        for verb, args in (
            ("agent.submit", {"query": MODEL, "prompt": "x"}),
            ("fanout.submit", {"query": MODEL, "prompt": "x"}),
            ("flow.submit", {"query": MODEL, "prompt": "x"}),
            ("flow.submit", {"playbook": "greet", "who": "Ann"}),
            ("play.submit", {"playbook": "greet", "who": "Ann"}),
        ):
            error = refusal(lion, verb, **args, cwd=cwd)
            assert (error["kind"], error["message"].split()[0]) == ("invalid_input", "cwd"), (verb, cwd, error)
    assert run_ids(lion) == before


def test_a_fingerprint_is_stale_once_the_playbook_is_edited(place: Place, lion: McpProcess) -> None:
    path = place.home / ".lionagi" / "playbooks" / "edited.playbook.yaml"
    path.write_text(PLAYBOOK)
    old = fingerprint_of(lion, "play.submit", "edited")
    path.write_text(PLAYBOOK.replace("default: 2", "default: 3"))
    op = {"op": "play.submit", "args": {"playbook": "edited", "who": "Ann"}, "schema_fingerprint": old}
    error = lion.op_of(op)["error"]
    assert error["kind"] == "stale_schema"
    assert error["detail"]["schema_fingerprint"] == fingerprint_of(lion, "play.submit", "edited") != old
    assert error["schema"]["properties"]["times"]["default"] == 3


def test_a_flow_and_a_fanout(claude: FakeClaude, lion: McpProcess) -> None:
    flow = submit(lion, "flow.submit", query=MODEL, prompt="Plan the flow.", dry_run=True)
    fanout = submit(lion, "fanout.submit", query=MODEL, prompt="Spread it out.", num_workers=1, with_synthesis=True)
    rows = wait(lion, flow["run_id"], fanout["run_id"])
    assert [end_of(row) for row in rows] == [SUCCEEDED] * 2
    assert [row["verb"] for row in rows] == ["flow.submit", "fanout.submit"]
    prompts = " ".join(claude.prompts())
    assert "Plan the flow." in prompts
    assert "Spread it out." in prompts


# The same submit again.


def test_an_idempotency_key_stands_for_one_run(
    place: Place, claude: FakeClaude, lion: McpProcess, meeting: Meeting
) -> None:
    args: dict[str, Any] = {"query": MODEL, "prompt": f"<<hold {meeting.name}>>", "idempotency_key": "key-1"}
    first = submit(lion, **args)
    meeting.begun()
    assert first["idempotency_key"] == "key-1"
    assert submit(lion, **args)["run_id"] == first["run_id"]
    assert refusal(lion, **{**args, "prompt": "x"})["kind"] == "conflict"
    with place.server() as other:
        assert submit(other, **args)["run_id"] == first["run_id"]
    error = refusal(lion, **{**args, "label": "another"})
    assert error["kind"] == "conflict"
    meeting.let_go()
    assert end_of(ended(lion, first["run_id"])) == SUCCEEDED
    again = submit(lion, **args)
    assert (again["run_id"], again["status"], again["terminal"]) == (first["run_id"], "completed", True)
    assert again["idempotency_key"] == "key-1"
    assert sum(f"<<hold {meeting.name}>>" in prompt for prompt in claude.prompts()) == 1


# Who is told.


def test_a_notify_command_is_told_of_the_end(lion: McpProcess, meeting: Meeting, tmp_path: Path) -> None:
    script = tmp_path / "tell"
    up = meeting.path_up
    script.write_text(
        f'#!/bin/sh\nexec 9>{shlex.quote(str(up))}\necho $$ >&9\ncd "${{0%/*}}"\nprintf \'%s\\n\' "$@" >words\ncat >payload\n'
    )
    script.chmod(0o755)
    words = ["{run_id}", "{status}", "{label}", "{target}", "{sender}", "{reason_code}", "--x={status}"]
    told = submit(
        lion,
        query=MODEL,
        prompt="<<say this>>",
        label="the label",
        notify_command=json.dumps([str(script), *words]),
        notify_seat="the seat",
        notify_sender="the sender",
    )
    assert end_of(ended(lion, told["run_id"])) == SUCCEEDED
    meeting.begun()
    assert meeting.has_ended()
    said = (tmp_path / "words").read_text().splitlines()
    run_id = told["run_id"]
    assert said == [run_id, "completed", "the label", "the seat", "the sender", "run.completed.ok", "--x=completed"]
    payload = json.loads((tmp_path / "payload").read_text())
    assert payload["run_id"] == run_id
    assert payload["status"] == "completed"
