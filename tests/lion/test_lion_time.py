"""Requests run side by side, ops in order, and nothing outlives its time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from .conftest import Misbehave
from .hanging import Runs, ended
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
        assert all(ended(run) for run in runs)


def test_cancelling_a_request_ends_its_command(
    lion_mcp: Path, stub: Path, misbehave: Misbehave, hanging: Runs, tmp_path: Path
) -> None:
    with start_ours(tmp_path, tmp_path, stub) as server:
        assert server.op("team.list")["ok"]
        misbehave(mode="family", port=hanging.port)
        request = server.send("tools/call", {"name": "request", "arguments": one({"op": "runs"})})
        run = hanging.next()
        server.notify("notifications/cancelled", {"requestId": request})
        assert ended(run)


def test_ops_of_one_request_run_in_order(
    server: McpProcess, misbehave: Misbehave, hanging: Runs, tmp_path: Path
) -> None:
    misbehave(argv=tmp_path / "argv")
    names = ["runs", "team.list", "state.stats", "doctor", "runs", "schedule.list", "plugin.info", "schedule.limits"]
    ops = [{"op": name, "args": {"name": "p"} if name == "plugin.info" else {}} for name in names]
    entries = server.call({"ops": ops}).value["ops"]
    assert [entry["op"] for entry in entries] == names
    ran = [json.loads(line) for line in (tmp_path / "argv").read_text().splitlines()]
    assert [" ".join(words[: words.index("--machine")]) for words in ran if words[0] != "handshake"] == [
        name.replace(".", " ") for name in names
    ]


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
    runs["limits"]["timeout"] = 0.5
    (package / "lion_mcp" / "registry.json").write_text(json.dumps(registry))
    with start_ours(tmp_path, tmp_path, stub, {"PYTHONPATH": str(package)}) as server:
        assert server.op("team.list")["ok"]
        misbehave(mode="family", port=hanging.port)
        error = server.op("runs")["error"]
        assert ended(hanging.next())
    assert error["kind"] == "unavailable"
    assert "0.5 seconds" in error["message"]
