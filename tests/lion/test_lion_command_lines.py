"""The command lines that the verbs of lion-mcp become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Misbehave
from .mcp_process import McpProcess
from .spec_of_lion import VERBS

QUERIES = [name for name, facts in VERBS.items() if facts["kind"] == "cli-query"]

ARGV: tuple[tuple[str, dict[str, Any], list[str]], ...] = (
    ("runs", {}, ["runs", "--machine"]),
    ("runs", {"limit": 20}, ["runs", "--machine", "--limit=20"]),
    ("runs", {"limit": 7.0}, ["runs", "--machine", "--limit=7"]),
    ("runs", {"limit": 10**30}, ["runs", "--machine", f"--limit={10**30}"]),
    ("monitor", {"entity_type": "play"}, ["monitor", "--machine", "--type=play"]),
    ("team.receive", {"team": "t", "member": "-m"}, ["team", "receive", "--machine", "--team=t", "--as=-m"]),
    ("dispatch.purge", {"id": "d", "dry_run": True}, ["dispatch", "purge", "--machine", "--dry-run", "--", "d"]),
    ("dispatch.purge", {"id": "d", "dry_run": False}, ["dispatch", "purge", "--machine", "--", "d"]),
    ("dispatch.ack", {"token": "-t", "id": "--"}, ["dispatch", "ack", "--machine", "--", "--", "-t"]),
    (
        "team.send",
        {"content": "-x --machine", "team": "t", "to": "all", "sender": "--from"},
        ["team", "send", "--machine", "--team=t", "--to=all", "--from=--from", "--", "-x --machine"],
    ),
    ("team.show", {"team": ""}, ["team", "show", "--machine", "--", ""]),
    ("team.show", {"team": "a\nb 'c' \"d\" $(e) é🙂"}, ["team", "show", "--machine", "--", "a\nb 'c' \"d\" $(e) é🙂"]),
    (
        "schedule.runs",
        {"id": "s1", "status": ["failed", "-x", ""]},
        ["schedule", "runs", "--machine", "--status=failed", "--status=-x", "--status=", "--", "s1"],
    ),
    ("schedule.runs", {"id": "s1", "status": []}, ["schedule", "runs", "--machine", "--", "s1"]),
    (
        "schedule.create",
        {"name": "-n", "action_command_args": ["-a", "b c"], "once": False, "max_cost_usd": 1.5},
        ["schedule", "create", "--machine", '--action-command-args=["-a", "b c"]', "--max-cost-usd=1.5", "--", "-n"],
    ),
    (
        "schedule.create",
        {"name": "n", "max_cost_usd": 1},
        ["schedule", "create", "--machine", "--max-cost-usd=1", "--", "n"],
    ),
    ("schedule.create", {"name": "n", "once": True}, ["schedule", "create", "--machine", "--once", "--", "n"]),
    (
        "schedule.create",
        {"name": "n", "action_command_args": []},
        ["schedule", "create", "--machine", "--action-command-args=[]", "--", "n"],
    ),
)


@pytest.mark.parametrize(("verb", "args", "argv"), ARGV)
def test_command_lines(server: McpProcess, verb: str, args: dict[str, Any], argv: list[str]) -> None:
    result = server.op(verb, args)["result"]
    assert result == {"contract_version": 1, "data": {"argv": argv}}


@pytest.mark.parametrize("name", QUERIES)
def test_every_verb_runs_its_own_command(server: McpProcess, misbehave: Misbehave, tmp_path: Path, name: str) -> None:
    misbehave(argv=tmp_path / "argv")
    values = {"string": "v", "array": ["v"], "integer": 1, "number": 1, "boolean": True}
    args = {key: values[VERBS[name]["params"][key]["type"]] for key in VERBS[name].get("required", ())}
    assert server.op(name, args)["ok"]
    argv = json.loads((tmp_path / "argv").read_text().splitlines()[-1])
    assert argv[: argv.index("--machine")] == VERBS[name]["cli_path"].split()
    positionals = argv[argv.index("--") + 1 :] if "--" in argv else []
    assert positionals == ["v"] * len(VERBS[name].get("positional_order", ()))
