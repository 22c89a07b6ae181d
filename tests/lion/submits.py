"""Runs in the background as a caller starts, awaits and reads them."""

from __future__ import annotations

from typing import Any

from .mcp_process import McpProcess

LONG = 120  # seconds that a test waits for a run before it fails
POLL = 0.05


def fingerprint_of(server: McpProcess, verb: str, playbook: object = None) -> str | None:
    """The fingerprint of the schema that a call is checked against, if help tells one."""
    asked = {"verb": verb} if playbook is None else {"verb": verb, "playbook": playbook}
    told: str | None = server.call({"help": asked}).value.get("schema_fingerprint")
    return told


def submission(server: McpProcess, verb: str, args: dict[str, Any]) -> dict[str, Any]:
    """The op that starts a run, with the fingerprint that belongs to it."""
    playbook = args.get("playbook") if verb in ("flow.submit", "play.submit") else None
    return {"op": verb, "args": args, "schema_fingerprint": fingerprint_of(server, verb, playbook)}


def submit(server: McpProcess, verb: str = "agent.submit", **args: Any) -> dict[str, Any]:
    """Starts a run and gives what is told of it at once."""
    entry = server.op_of(submission(server, verb, args))
    assert entry["ok"], entry
    result: dict[str, Any] = entry["result"]
    return result


def refusal(server: McpProcess, verb: str = "agent.submit", **args: Any) -> dict[str, Any]:
    """What a submit is refused with."""
    entry = server.op_of(submission(server, verb, args))
    assert not entry["ok"], entry
    error: dict[str, Any] = entry["error"]
    return error


def result(server: McpProcess, verb: str, **args: Any) -> dict[str, Any]:
    entry = server.op(verb, args)
    assert entry["ok"], entry
    told: dict[str, Any] = entry["result"]
    return told


def wait(server: McpProcess, *ids: str, patience: float = LONG) -> list[dict[str, Any]]:
    """Waits for runs and gives their rows; fails when one has not ended in time."""
    told = result(server, "job.wait", run_ids=list(ids), max_wait=patience, poll_interval=POLL)
    assert told["all_terminal"], told
    assert not told["timed_out"]
    rows: list[dict[str, Any]] = told["runs"]
    return rows


def ended(server: McpProcess, run_id: str) -> dict[str, Any]:
    """Waits for a run and gives its status in full."""
    (row,) = wait(server, run_id)
    status = result(server, "job.status", run_id=run_id)
    assert plain({key: status[key] for key in row}) == plain(row)
    return status


def plain(told: Any) -> Any:
    """An answer without details: whether somebody could be told of an end joins them a little after the end."""
    if isinstance(told, list):
        return [plain(item) for item in told]
    if isinstance(told, dict):
        return {key: plain(value) for key, value in told.items() if key != "details"}
    return told


def run_ids(server: McpProcess) -> list[str]:
    """All runs on record, newest first."""
    return [row["run_id"] for row in result(server, "job.list")["jobs"]]


def console(server: McpProcess, run_id: str) -> str:
    text: str = result(server, "job.output", run_id=run_id)["console"]
    return text


def waited_and_read(server: McpProcess, run_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Waits for a run and reads its output in ONE request; gives the row and the output."""
    ops = [
        {"op": "job.wait", "args": {"run_ids": [run_id], "max_wait": LONG, "poll_interval": POLL}},
        {"op": "job.output", "args": {"run_id": run_id}},
    ]
    waited, read = server.call({"ops": ops}).value["ops"]
    assert waited["result"]["all_terminal"], waited
    (row,) = waited["result"]["runs"]
    return row, read["result"]
