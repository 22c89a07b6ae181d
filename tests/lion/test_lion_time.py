"""Requests run side by side, ops in order, and nothing outlives its time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from .conftest import Misbehave
from .hanging import Runs
from .mcp_process import McpProcess
from .mistakes import one
from .servers import GENERATED, start_ours


def test_requests_run_side_by_side(
    lion_mcp: Path, stub: Path, misbehave: Misbehave, hanging: Runs, tmp_path: Path
) -> None:
    with start_ours(tmp_path, tmp_path, stub) as server:
        assert server.op("team.list")["ok"]
        misbehave(mode="hang", port=hanging.port)
        for _ in range(2):
            server.send("tools/call", {"name": "request", "arguments": one({"op": "runs"})})
        runs = [hanging.next(), hanging.next()]
        misbehave(mode="ok")
        third = server.send(
            "tools/call", {"name": "request", "arguments": {"ops": [{"op": "team.list"}, {"op": "server.info"}]}}
        )
        (content,) = server.reply_to(third)["result"]["content"]
        assert [entry["ok"] for entry in json.loads(content["text"])["ops"]] == [True, True]
        assert server.close() == 0
        assert all(run.has_ended() for run in runs)


def test_cancelling_a_request_ends_its_command(
    lion_mcp: Path, stub: Path, misbehave: Misbehave, hanging: Runs, tmp_path: Path
) -> None:
    with start_ours(tmp_path, tmp_path, stub) as server:
        assert server.op("team.list")["ok"]
        misbehave(mode="family", port=hanging.port)
        request = server.send("tools/call", {"name": "request", "arguments": one({"op": "runs"})})
        run = hanging.next()
        server.notify("notifications/cancelled", {"requestId": request})
        assert run.has_ended()


def test_ops_of_one_request_run_one_after_the_other(
    server: McpProcess, misbehave: Misbehave, hanging: Runs, tmp_path: Path
) -> None:
    assert server.op("team.list")["ok"]
    names = ["runs", "team.list", "state.stats", "doctor", "schedule.list", "schedule.limits", "runs"]
    misbehave(mode="hang", port=hanging.port)
    request = server.send("tools/call", {"name": "request", "arguments": {"ops": [{"op": name} for name in names]}})
    first = hanging.next()
    misbehave(argv=tmp_path / "argv")  # had another op begun by now, it would hang as well, and there were no reply
    first.kill()
    assert first.has_ended()
    (content,) = server.reply_to(request)["result"]["content"]
    entries = json.loads(content["text"])["ops"]
    assert [(entry["op"], entry["ok"]) for entry in entries] == [(name, index > 0) for index, name in enumerate(names)]
    ran = [json.loads(line) for line in (tmp_path / "argv").read_text().splitlines()]
    assert [".".join(words[:-1]) for words in ran] == names[1:]


def test_a_command_that_takes_too_long_is_ended(
    lion_mcp: Path, stub: Path, misbehave: Misbehave, hanging: Runs, tmp_path: Path
) -> None:
    """The 60 seconds are the registry's; how they end is shown with fewer."""
    package = tmp_path / "package"
    shutil.copytree(GENERATED / "lion_mcp", package / "lion_mcp")
    registry = json.loads((package / "lion_mcp" / "registry.json").read_text())
    (runs,) = (verb for verb in registry["verbs"] if verb["name"] == "runs")
    assert runs["limits"]["timeout"] == 60
    assert runs["limits"]["output"] == 1_000_000
    runs["limits"]["timeout"] = 2
    (package / "lion_mcp" / "registry.json").write_text(json.dumps(registry))
    with start_ours(tmp_path, tmp_path, stub, {"PYTHONPATH": str(package)}) as server:
        assert server.op("team.list")["ok"]
        misbehave(mode="family", port=hanging.port)
        error = server.op("runs")["error"]
        assert hanging.next().has_ended()
    assert error["kind"] == "unavailable"
    assert "2 seconds" in error["message"]
