"""The command `approvals`: what waits is shown with all that it is bound to, and decided once, by an operator."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from verbc.support.fingerprint import digest
from verbc.support.operator_command import main
from verbc.support.refusal import Refusal
from verbc.support.registry import Registry

from .asking_calls import ask, begin
from .operators import VARIABLE, Operation, operation
from .raw_server import PATIENCE
from .samples import DATA

ARGUMENTS: dict[str, Any] = {"zone": "Europe/Berlin", "at": 7, "note": "\u202e\x1b[31m"}


@pytest.fixture
def server(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Operation:
    asking = {"ask": ["write mcp:*"]}
    return operation(registry, tmp_path, monkeypatch, capsys, ada=asking, bob=asking)


def shown(server: Operation, approval_id: str) -> Any:
    return json.loads(server.run("approvals", "show", approval_id).out)


def rows(server: Operation, *options: str) -> list[list[str]]:
    heading, *lines = (line.split() for line in server.run("approvals", "list", *options).out.splitlines())
    assert heading == ["approval", "state", "until", "approver", "subject", "verb", "rights"]
    return lines


def test_what_waits_is_listed(server: Operation) -> None:
    assert rows(server) == []
    first, second = ask(server, {"n": 1}), ask(server, {"n": 2}, subject="bob")
    found = rows(server)
    assert [(row[0], row[1], row[3], row[4]) for row in found] == [
        (first, "pending", "operator", "ada"),
        (second, "pending", "operator", "bob"),
    ]
    assert found[0][6:] == ["write", "mcp:time:set"]


def test_one_is_shown_with_all_that_it_is_bound_to(server: Operation) -> None:
    approval_id = ask(server, ARGUMENTS)
    verb = server.registry.verbs[0]
    found = shown(server, approval_id)
    assert (
        found.items()
        >= {
            "id": approval_id,
            "subject": "ada",
            "verb": verb.name,
            "contract_digest": verb.digest,
            "arguments_sha256": digest(ARGUMENTS),
            "state": "pending",
            "approver": "operator",
            "decided_by": None,
        }.items()
    )
    assert found["rights"] == ["write mcp:time:set"]
    assert found["target"] == {"server_id": "time", "tool_id": "set"}
    assert found["arguments"] == ARGUMENTS


def test_arguments_are_shown_in_full_and_steer_no_terminal(server: Operation) -> None:
    approval_id = ask(server, {**ARGUMENTS, "long": "x" * 50_000})
    told = server.run("approvals", "show", approval_id)
    assert told.err == ""
    assert told.out.isascii()
    assert "\x1b" not in told.out
    assert '    "note": "\\u202e\\u001b[31m"' in told.out
    assert json.loads(told.out)["arguments"] == {**ARGUMENTS, "long": "x" * 50_000}


def test_what_is_approved_runs_once(server: Operation) -> None:
    approval_id = ask(server, ARGUMENTS)
    told = server.run("approvals", "approve", approval_id).out
    assert told.startswith(f"Approved {approval_id}: `ada` may send the very same call once, until 20")
    assert shown(server, approval_id)["state"] == "approved"
    assert shown(server, approval_id)["decided_by"].startswith("operator:")
    assert begin(server, ARGUMENTS) is None
    assert ask(server, ARGUMENTS) != approval_id
    told_again = server.run("approvals", "show", approval_id)
    assert json.loads(told_again.out)["arguments"] is None
    assert told_again.err == "sample-mcp: The arguments are kept only until an approval is settled.\n"
    assert server.refused("approvals", "approve", approval_id) == f"The approval `{approval_id}` is used already."


def test_what_is_rejected_is_denied(server: Operation) -> None:
    approval_id = ask(server, ARGUMENTS)
    told = server.run("approvals", "reject", approval_id).out
    assert told.startswith(f"Rejected {approval_id}: the very same call of `ada` is denied until 20")
    refusal = begin(server, ARGUMENTS)
    assert isinstance(refusal, Refusal)
    assert refusal.kind == "denied"
    assert shown(server, approval_id)["arguments"] is None
    assert server.refused("approvals", "approve", approval_id) == f"The approval `{approval_id}` is rejected already."


def test_what_has_waited_too_long_is_over(server: Operation) -> None:
    approval_id = ask(server, ARGUMENTS, clock=datetime.now(UTC) - timedelta(minutes=16))
    assert rows(server) == []
    assert server.refused("approvals", "approve", approval_id) == f"The approval `{approval_id}` is expired."
    assert shown(server, approval_id)["arguments"] is None
    with closing(sqlite3.connect(server.state / "server.db")) as stored:
        assert stored.execute("SELECT state, arguments FROM approvals").fetchall() == [("expired", None)]


def test_every_command_wipes_the_arguments_of_what_is_over(server: Operation) -> None:
    ask(server, ARGUMENTS, clock=datetime.now(UTC) - timedelta(minutes=16))
    ask(server, {"n": 1})
    server.run("audit")
    with closing(sqlite3.connect(server.state / "server.db")) as stored:
        found = stored.execute("SELECT state, arguments IS NULL FROM approvals ORDER BY created_at").fetchall()
    assert found == [("expired", 1), ("pending", 0)]


def test_all_of_them_are_listed_on_demand(server: Operation) -> None:
    used, waiting = ask(server, {"n": 1}), ask(server, {"n": 2})
    server.run("approvals", "approve", used)
    assert [row[0] for row in rows(server)] == [waiting]
    assert [(row[0], row[1]) for row in rows(server, "--all")] == [(used, "approved"), (waiting, "pending")]


def test_the_first_characters_of_an_id_are_enough(server: Operation) -> None:
    approval_id = ask(server, ARGUMENTS)
    assert shown(server, approval_id[:6])["id"] == approval_id
    server.run("approvals", "approve", approval_id[:12])
    assert shown(server, approval_id)["state"] == "approved"


def test_several_that_begin_like_it_are_none(server: Operation) -> None:
    ask(server, {"n": 1})
    ask(server, {"n": 2})
    for word in ("show", "approve", "reject"):
        assert server.refused("approvals", word, "appr_")[-1] == "."
    assert {row[1] for row in rows(server)} == {"pending"}


@pytest.mark.parametrize("word", ["show", "approve", "reject"])
@pytest.mark.parametrize("approval_id", ["appr_0123", "appr_%%%%%%", "abc", "", "appr_0123\x1b", "x" * 10_000])
def test_one_that_is_not_there_is_told(word: str, approval_id: str, server: Operation) -> None:
    told = server.refused("approvals", word, approval_id)
    assert told.isprintable()
    assert told.startswith(("There is no approval `", "`"))


KILLED = """
import json, os, sys
from verbc.support import store
from verbc.support.operator_command import main
from verbc.support.registry import from_data

store.fault = lambda place: os._exit(9) if place == sys.argv[2] else None
sys.exit(main(sys.argv[3:], from_data(json.loads(sys.argv[1]))))
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("word", ["approve", "reject"])
def test_a_command_that_is_killed_has_decided_or_not(word: str, when: str, server: Operation) -> None:
    approval_id = ask(server, ARGUMENTS)
    options = ["--policy", str(server.policy), "--state", str(server.state)]
    command = [
        sys.executable,
        "-c",
        KILLED,
        json.dumps(DATA),
        f"{when} {word}",
        "approvals",
        *options,
        word,
        approval_id,
    ]
    assert subprocess.run(command, capture_output=True, timeout=PATIENCE).returncode == 9
    found, recorded = shown(server, approval_id), server.run("audit").out.splitlines()[1:]
    if when == "before":
        assert (found["state"], found["arguments"], recorded) == ("pending", ARGUMENTS, [])
    else:
        assert found["state"] == {"approve": "approved", "reject": "rejected"}[word]
        assert (found["arguments"] is None) is (word == "reject")
        assert [json.loads(line)["outcome"] for line in recorded] == [found["state"]]


@pytest.mark.parametrize("words", [["list"], ["list", "--all"], ["show", "x"], ["approve", "x"], ["reject", "x"]])
def test_everything_takes_an_operator_key(words: list[str], server: Operation, monkeypatch: pytest.MonkeyPatch) -> None:
    approval_id = ask(server, ARGUMENTS)
    monkeypatch.setenv(VARIABLE, server.key.swapcase())
    words = [approval_id if word == "x" else word for word in words]
    assert (
        server.refused("approvals", *words) == f"The operator key is none of those in the policy file {server.policy}."
    )
    monkeypatch.setenv(VARIABLE, server.key)
    assert shown(server, approval_id)["state"] == "pending"


@pytest.mark.parametrize(
    "words", [[], ["nope"], ["show"], ["approve"], ["approve", "appr_1", "appr_2"], ["list", "more"]]
)
def test_wrong_usage_is_told(words: list[str], server: Operation, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["approvals", *words], server.registry)
    assert ended.value.code == 2
    assert "usage: sample-mcp approvals" in capsys.readouterr().err
