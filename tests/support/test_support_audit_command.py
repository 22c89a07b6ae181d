"""The command `audit`: one JSON object per line, the oldest first, for operators alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from verbc.support.operator_command import main
from verbc.support.registry import Registry

from .asking_calls import ask, begin
from .operators import VARIABLE, Operation, operation


@pytest.fixture
def server(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Operation:
    asking, allowed = {"ask": ["write mcp:*"]}, {"allow": ["write mcp:*"]}
    return operation(registry, tmp_path, monkeypatch, capsys, ada=asking, bob=allowed, eve={"deny": ["write mcp:*"]})


def lines(server: Operation, *options: str) -> list[dict[str, Any]]:
    out = server.run("audit", *options).out
    assert out.isascii()
    return [json.loads(line) for line in out.splitlines()]


def test_nothing_is_on_record_at_first(server: Operation) -> None:
    assert lines(server) == []


def test_every_decision_and_every_call_is_a_line(server: Operation) -> None:
    approval_id = ask(server, {"note": "s3cret"})
    server.run("approvals", "approve", approval_id)
    begin(server, {"note": "s3cret"})
    begin(server, {"note": "s3cret"}, subject="eve")
    found = lines(server)
    assert [(line["kind"], line["subject"], line["outcome"], line["status"]) for line in found] == [
        ("decision", "ada", "pending", None),
        ("approval", "ada", "approved", None),
        ("decision", "ada", "allow", None),
        ("call", "ada", None, "ok"),
        ("decision", "eve", "deny", None),
    ]
    assert [line["id"] for line in found] == sorted({line["id"] for line in found})
    assert found[1]["actor"].startswith("operator:")
    assert "s3cret" not in json.dumps(found)


def test_it_can_be_narrowed(server: Operation) -> None:
    for number in range(3):
        begin(server, {"n": number}, subject="bob")
    begin(server, {}, subject="eve")
    everything = lines(server)
    assert len(everything) == 7
    assert lines(server, "--subject", "eve") == everything[6:]
    assert lines(server, "--subject", "nobody") == []
    assert lines(server, "--limit", "2") == everything[5:]
    assert lines(server, "--after", str(everything[2]["id"])) == everything[3:]
    assert lines(server, "--after", "0", "--limit", "3", "--subject", "bob") == everything[:3]


def test_it_takes_an_operator_key(server: Operation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "no")
    assert server.refused("audit") == f"The operator key is none of those in the policy file {server.policy}."


@pytest.mark.parametrize(
    "words",
    [
        ["more"],
        ["--limit", "0"],
        ["--limit", "100001"],
        ["--limit", "x"],
        ["--after", "-1"],
        ["--after", "9" * 19],
        ["--lim", "1"],
    ],
)
def test_wrong_usage_is_told(words: list[str], server: Operation, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["audit", *words], server.registry)
    assert ended.value.code == 2
    assert "usage: sample-mcp audit" in capsys.readouterr().err


def test_a_store_that_cannot_be_used_is_told(server: Operation) -> None:
    server.state.mkdir(mode=0o700)
    (server.state / "server.db").write_bytes(b"no database at all, but long enough" * 100)
    assert "server.db" in server.refused("audit")
