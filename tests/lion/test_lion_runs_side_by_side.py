"""The real `li mcp` and lion-mcp are asked the same about background runs; they agree, but for `differences.py`."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Pair, Side
from .differences import check
from .mcp_process import McpProcess
from .outlines import outline
from .servers import start_ours, start_theirs
from .spec_of_lion import FACTS
from .stubs import FakeClaude
from .submits import LONG, POLL, fingerprint_of, plain, result, run_ids, submission, submit

UNKNOWN = "20260101T000000-abcdef"
MODEL: dict[str, Any] = {"query": ["claude/opus"]}
TASK: dict[str, Any] = {**MODEL, "prompt": "x"}
VERBS = [name for name, facts in FACTS["verbs"].items() if facts["kind"] in ("spawn", "job")]
SPAWNING = [name for name in VERBS if name.endswith(".submit")]

HOME = {
    "agents/reviewer.md": "---\nmodel: claude/opus\n---\n\nYou review.\n",
    "agents/tri-b-c.md": "dashes",
    "agents/tri_b_c.md": "underscores",
    "playbooks/greet.playbook.yaml": 'prompt: "Greet {who}."\nargs: {who: {type: str}}\n',
    "playbooks/unclosed.playbook.yaml": "prompt: [unclosed",
    "playbooks/list.playbook.yaml": "- a",
    "playbooks/odd.playbook.yaml": "prompt: x\nargs: {n: {type: zzz}}\n",
}
FOLDER = {
    "blank": "  \n",
    "task": "a task",
    "sub/task": "a task",
}


@pytest.fixture(scope="module")
def claude(tmp_path_factory: pytest.TempPathFactory) -> FakeClaude:
    return FakeClaude.made_in(tmp_path_factory.mktemp("claude"))


@pytest.fixture(scope="module")
def pair(li: Path, lion_mcp: Path, claude: FakeClaude, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both servers, each in a home with the same profiles and playbooks."""
    with contextlib.ExitStack() as stack:
        sides = []
        for name in ("theirs", "ours"):
            home, folder = (tmp_path_factory.mktemp(f"{name}-{what}") for what in ("home", "folder"))
            write(home / ".lionagi", HOME)
            write(folder, FOLDER)
            (folder / "latin").write_bytes(b"\xff\xfe")
            more = claude.variables
            server = start_theirs(home, folder, more) if name == "theirs" else start_ours(home, folder, more=more)
            sides.append(Side(stack.enter_context(server), home, folder))
        yield Pair(*sides)


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


# Help.


def help_of(server: McpProcess, verb: str) -> dict[str, Any]:
    told = server.help(verb)
    schema = told["schema"]
    return {
        "refused": sorted(told.get("refused") or schema.get("x-refused") or ()),
        "varies with": told.get("schema_fingerprint_varies_with"),
        "fingerprint": "schema_fingerprint" in told,
        "its fingerprint": told.get("schema_fingerprint") in (None, computed(schema)),
    }


def computed(schema: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(schema, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]


def test_what_help_tells_beside_the_parameters(pair: Pair) -> None:
    check("run help", *pair.both(lambda side: {verb: help_of(side.server, verb) for verb in VERBS}))


def test_synonyms_mean_the_same(pair: Pair) -> None:
    check("synonyms", *pair.both(lambda side: {name: side.server.help(name)["verb"] for name in FACTS["synonyms"]}))
    assert pair.ours.server.help("submit_agent")["verb"] == "agent.submit"


# Submits that nothing comes of.

REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "nothing": ("agent.submit", {}),
    "no model": ("agent.submit", {"prompt": "x"}),
    "only a model": ("agent.submit", MODEL),
    "three positionals": ("agent.submit", {"query": ["a", "b", "c"]}),
    "two positionals and a prompt": ("agent.submit", {"query": ["a", "b"], "prompt": "x"}),
    "empty profile": ("agent.submit", {"agent": "", "prompt": "x"}),
    "prompt and file": ("agent.submit", {**TASK, "prompt_file": "<folder>/task"}),
    "file is stdin": ("agent.submit", {**MODEL, "prompt_file": "-"}),
    "file is relative": ("agent.submit", {**MODEL, "prompt_file": "task"}),
    "file is missing": ("agent.submit", {**MODEL, "prompt_file": "<folder>/none"}),
    "file is blank": ("agent.submit", {**MODEL, "prompt_file": "<folder>/blank"}),
    "file is a folder": ("agent.submit", {**MODEL, "prompt_file": "<folder>/sub"}),
    "file is no text": ("agent.submit", {**MODEL, "prompt_file": "<folder>/latin"}),
    "folder is missing": ("agent.submit", {**TASK, "cwd": "<folder>/none"}),
    "folder is a file": ("agent.submit", {**TASK, "cwd": "<folder>/task"}),
    "folder of a flow is missing": ("flow.submit", {**TASK, "cwd": "<folder>/none"}),
    "folder of a fanout is missing": ("fanout.submit", {**TASK, "cwd": "<folder>/none"}),
    "folder of a play is missing": ("play.submit", {"playbook": "greet", "who": "Ann", "cwd": "<folder>/none"}),
    "unknown profile": ("agent.submit", {**TASK, "agent": "nobody"}),
    "ambiguous profile": ("agent.submit", {**TASK, "agent": "tri-b_c"}),
    "profile is a path": ("agent.submit", {**TASK, "agent": "../reviewer"}),
    "excludes where there is none": ("agent.submit", {**TASK, "exclude_mcp_servers": ["a"]}),
    "excludes and has none": ("agent.submit", {**TASK, "exclude_mcp_servers": ["a"], "no_mcp_config": True}),
    "excludes from a file": ("agent.submit", {**TASK, "exclude_mcp_servers": ["a"], "mcp_config": "<folder>/task"}),
    "excludes twice": ("agent.submit", {**TASK, "exclude_mcp_servers": ["a", "a"]}),
    "excludes nobody": ("agent.submit", {**TASK, "exclude_mcp_servers": [""]}),
    "long prompt": ("agent.submit", {**MODEL, "prompt": "x" * 262_145}),
    "long positional": ("agent.submit", {"query": ["claude/opus", "x" * 140_000]}),
    "long prompt of a flow": ("flow.submit", {**MODEL, "prompt": "x" * 140_000}),
    "long prompt of a fanout": ("fanout.submit", {**MODEL, "prompt": "x" * 140_000}),
    "no time": ("agent.submit", {**TASK, "idle_timeout": 0}),
    "time as text": ("agent.submit", {**TASK, "timeout": "3"}),
    "unknown preset": ("agent.submit", {**TASK, "preset": "zzz"}),
    "unknown parameter": ("agent.submit", {**TASK, "nope": 1}),
    **{f"agent {name}": ("agent.submit", {**TASK, name: "x"}) for name in FACTS["verbs"]["agent.submit"]["refused"]},
    **{
        f"play {name}": ("play.submit", {"playbook": "greet", name: "x"})
        for name in FACTS["verbs"]["play.submit"]["refused"]
    },
    "no prompt for a flow": ("flow.submit", {}),
    "three positionals of a flow": ("flow.submit", {"query": ["a", "b", "c"]}),
    "prompt twice for a flow": ("flow.submit", {"query": ["claude/opus", "p"], "prompt": "x"}),
    "no prompt for a fanout": ("fanout.submit", {}),
    "three positionals of a fanout": ("fanout.submit", {"query": ["a", "b", "c"]}),
    "playbook for a fanout": ("fanout.submit", {**TASK, "playbook": "greet"}),
    "background fanout": ("fanout.submit", {**TASK, "background": True}),
    "no playbook": ("play.submit", {}),
    "team_mode false": ("flow.submit", {**TASK, "team_mode": False}),
    "number for a playbook": ("flow.submit", {"playbook": 7}),
    "unknown playbook": ("flow.submit", {"playbook": "none"}),
    "unknown playbook to play": ("play.submit", {"playbook": "none"}),
    "playbook is a path": ("flow.submit", {"playbook": "../greet"}),
    "playbook without a name": ("flow.submit", {"playbook": ""}),
    "playbook that cannot be read": ("flow.submit", {"playbook": "unclosed"}),
    "playbook that is a list": ("flow.submit", {"playbook": "list"}),
    "playbook with an odd type": ("flow.submit", {"playbook": "odd"}),
    "number for an argument of a playbook": ("play.submit", {"playbook": "greet", "who": 7}),
    "unknown argument of a playbook": ("play.submit", {"playbook": "greet", "when": "now"}),
}


def refused(side: Side, verb: str, args: dict[str, Any]) -> str:
    """The outline of a submit that carries the right fingerprint where there is one."""
    filled = json.loads(json.dumps(args).replace("<folder>", str(side.folder)))
    op = {"op": verb, "args": filled}
    playbook = args.get("playbook")
    asked = (
        {"verb": verb}
        if not isinstance(playbook, str) or verb == "fanout.submit"
        else {"verb": verb, "playbook": playbook}
    )
    told = side.server.call({"help": asked})
    fingerprint = None if told.failed else told.value.get("schema_fingerprint")
    return outline(
        side.server.call({"ops": [op if fingerprint is None else {**op, "schema_fingerprint": fingerprint}]})
    )


def test_the_same_submits_are_refused_alike(pair: Pair) -> None:
    before = pair.both(lambda side: run_ids(side.server))
    check("submits", *pair.both(lambda side: {name: refused(side, *REFUSED[name]) for name in REFUSED}))
    assert pair.both(lambda side: run_ids(side.server)) == before
    assert not list((pair.ours.home / ".local").glob("**/console.log"))


# A `.mcp.json` beside the server, and what is asked of its servers.
CONFIGURED: dict[str, tuple[str, dict[str, Any]]] = {
    "unclosed": ("{", {}),
    "a list": ("[]", {}),
    "servers are a list": ('{"mcpServers": []}', {}),
    "excludes one that is not there": ('{"mcpServers": {"a": {"command": "x"}}}', {"exclude_mcp_servers": ["a", "b"]}),
}


def with_configuration(side: Side, text: str, args: dict[str, Any]) -> str:
    (path := side.folder / ".mcp.json").write_text(text)
    try:
        return refused(side, "agent.submit", {**TASK, **args})
    finally:
        path.unlink()


def test_the_same_configurations_are_refused_alike(pair: Pair) -> None:
    check(
        "mcp servers",
        *pair.both(lambda side: {at: with_configuration(side, *asked) for at, asked in CONFIGURED.items()}),
    )


def gated(side: Side) -> dict[str, str]:
    fingerprint = fingerprint_of(side.server, "agent.submit")
    empty = {"op": "agent.submit", "args": {}}
    ops: dict[str, dict[str, Any]] = {
        "none": empty,
        "wrong": {**empty, "schema_fingerprint": "0" * 16},
        "a number": {**empty, "schema_fingerprint": 7},
        "among the arguments": {"op": "agent.submit", "args": {"schema_fingerprint": fingerprint}},
        "among the arguments too": {
            "op": "agent.submit",
            "args": {"schema_fingerprint": fingerprint},
            "schema_fingerprint": fingerprint,
        },
        "of another verb": {"op": "fanout.submit", "args": {}, "schema_fingerprint": fingerprint},
        "by a synonym": {"op": "submit_agent", "args": {}},
        "where none is needed": {"op": "job.list", "schema_fingerprint": "0"},
        "for a playbook that is missing": {"op": "play.submit", "args": {}},
        "for a playbook": {"op": "play.submit", "args": {"playbook": "greet"}},
    }
    found = {name: outline(side.server.call({"ops": [op]})) for name, op in ops.items()}
    stale = side.server.op_of(empty)["error"]["detail"]
    return {**found, "the detail tells it": str(stale["schema_fingerprint"] == fingerprint)}


def test_fingerprints_are_wanted_alike(pair: Pair) -> None:
    check("fingerprints", *pair.both(gated))


# Ids that stand for no run, and other looks that find nothing.

LOOKS: dict[str, tuple[str, dict[str, Any]]] = {
    "status": ("job.status", {"run_id": UNKNOWN}),
    "status in detail": ("job.status", {"run_id": UNKNOWN, "detail": True}),
    "output": ("job.output", {"run_id": UNKNOWN}),
    "kill": ("job.kill", {"run_id": UNKNOWN}),
    "wait": ("job.wait", {"run_ids": [UNKNOWN, UNKNOWN]}),
    "wait for nothing": ("job.wait", {"run_ids": []}),
    "wait without patience": ("job.wait", {"run_ids": [UNKNOWN], "max_wait": 0, "poll_interval": 0.05}),
    "list of a status": ("job.list", {"status": "zzz"}),
    "list of none": ("job.list", {"limit": 0}),
    "tail of 0": ("job.output", {"run_id": UNKNOWN, "tail_chars": 0}),
    "tail of less": ("job.output", {"run_id": UNKNOWN, "tail_chars": -5}),
    "wait below no time": ("job.wait", {"run_ids": [], "max_wait": -1}),
    "wait beyond all time": ("job.wait", {"run_ids": [], "max_wait": 601}),
    "no id": ("job.status", {}),
    "id is a number": ("job.status", {"run_id": 7}),
    "id is a path": ("job.status", {"run_id": "../../../evil"}),
    "id is empty": ("job.kill", {"run_id": ""}),
    "ids are one": ("job.wait", {"run_ids": UNKNOWN}),
}
# What both tell of a run.
TOLD = frozenset(
    "run_id known record_state label status terminal outcome reason_code reason_detail spawn_state possibly_orphaned terminal_source "
    "terminal_evidence late_report alive finished_at finished_at_precision log_tail".split()
)
# What both tell of it in the answer to a wait.
ROW = TOLD & set("run_id label status terminal outcome reason_code reason_detail possibly_orphaned spawn_state".split())
# What both tell besides, in some answer or other.
ANSWERS = TOLD | set(
    "killed jobs all_terminal timed_out pending stopped_without_end unresolved_spawn max_wait poll_interval".split()
)


def told_of(result: dict[str, Any]) -> dict[str, Any]:
    """What both servers tell, without what only one of them does; of an error in a row only its kind."""
    told = {key: value for key, value in result.items() if key in ANSWERS}
    for number, row in enumerate(result.get("runs", ())):
        told |= {f"{number} {key}": value for key, value in row.items() if key in ROW}
        told[f"{number} error"] = row["error"]["kind"]
    return told


def looks(side: Side) -> dict[str, dict[str, Any]]:
    return {name: side.server.op(*LOOKS[name]) for name in LOOKS}


def test_what_is_not_there_is_told_alike(pair: Pair) -> None:
    both = pair.both(looks)
    answered = [{name: entry["ok"] or entry["error"]["kind"] for name, entry in side.items()} for side in both]
    check("looks", *answered)
    common = [name for name in LOOKS if answered[0][name] is answered[1][name] is True]
    assert len(common) >= 8
    told = ({name: told_of(side[name]["result"]) for name in common} for side in both)
    check("told", *({f"{name}: {key}": value for name in side for key, value in side[name].items()} for side in told))


# Runs to the end.


def finished(side: Side, prompt: str) -> dict[str, Any]:
    """What is told of a run once its process has gone."""
    told = submit(side.server, **MODEL, prompt=prompt, label="its label")
    start = {key: told[key] for key in ("status", "terminal", "outcome", "reason_code", "spawn_state")}
    waited = result(side.server, "job.wait", run_ids=[told["run_id"]], max_wait=LONG, poll_interval=POLL)
    end = time.monotonic() + LONG
    while (status := result(side.server, "job.status", run_id=told["run_id"]))["alive"]:
        assert time.monotonic() < end
    assert all(status[key] is not None for key in ("finished_at", "submitted_at", "pid"))
    kept = {key: value for key, value in told_of(status).items() if key not in ("run_id", "finished_at", "log_tail")}
    (row,) = waited["runs"]
    return {
        **{f"at first {key}": value for key, value in start.items()},
        **kept,
        **{f"row {key}": row[key] for key in ("status", "terminal", "outcome", "reason_code", "label")},
        "all terminal": waited["all_terminal"],
        "it says so": prompt_answer(prompt) in result(side.server, "job.output", run_id=told["run_id"])["console"],
        "killed afterwards": told_of(result(side.server, "job.kill", run_id=told["run_id"]))["killed"],
        "and why not": result(side.server, "job.kill", run_id=told["run_id"])["reason_code"],
    }


def prompt_answer(prompt: str) -> str:
    return {"<<say the end>>": "the end", "<<exit 3>>": "The fake was told to fail."}[prompt]


@pytest.mark.parametrize(("area", "prompt"), [("a finished run", "<<say the end>>"), ("a failed run", "<<exit 3>>")])
def test_a_run_that_has_ended_is_told_alike(pair: Pair, area: str, prompt: str) -> None:
    check(area, *pair.both(lambda side: finished(side, prompt)))


def killed(side: Side, claude: FakeClaude) -> dict[str, Any]:
    name = "".join(filter(str.isalnum, side.home.name))
    with claude.meeting(name) as meeting:
        run_id = submit(side.server, **MODEL, prompt=f"<<hold {name}>>")["run_id"]
        meeting.begun()
        waited = result(side.server, "job.wait", run_ids=[run_id, run_id], max_wait=0)
        listed = result(side.server, "job.list", status="running")["jobs"]
        answer = result(side.server, "job.kill", run_id=run_id)
        assert meeting.has_ended()
        status = result(side.server, "job.status", run_id=run_id)
    return {
        **{key: waited[key] for key in ("all_terminal", "timed_out", "stopped_without_end", "unresolved_spawn")},
        "rows": len(waited["runs"]),
        "pending": len(waited["pending"]),
        "listed": [row["run_id"] for row in listed] == [run_id],
        **{key: answer[key] for key in ("killed", "reason_code")},
        **{f"then {key}": status[key] for key in ("status", "terminal", "outcome", "reason_code", "terminal_source")},
    }


def test_a_run_that_was_killed_is_told_alike(pair: Pair, claude: FakeClaude) -> None:
    check("a killed run", *pair.both(lambda side: killed(side, claude)))


def test_a_finished_run_is_told_the_same_after_a_restart(pair: Pair, claude: FakeClaude) -> None:
    (row, *_) = (row for row in result(pair.ours.server, "job.list")["jobs"] if row["outcome"] == "succeeded")
    with start_ours(pair.ours.home, pair.ours.folder, more=claude.variables) as another:
        rows = result(another, "job.wait", run_ids=[row["run_id"]])["runs"]
    assert plain(rows) == plain([row])
    assert submission(pair.ours.server, "agent.submit", {})["schema_fingerprint"]
