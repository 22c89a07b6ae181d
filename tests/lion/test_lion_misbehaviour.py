"""What a command line can do wrong is one refusal of one op, each with a message of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Misbehave
from .mcp_process import McpProcess
from .servers import start_ours

MISBEHAVIOUR: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"mode": "refuse"}, "conflict", "The stub was told to refuse."),
    ({"mode": "refuse", "exit": 4}, "conflict", "The stub was told to refuse."),
    ({"mode": "refuse", "kind": "not_found"}, "not_found", "The stub was told to refuse."),
    ({"mode": "bogus-kind"}, "internal", "not declared"),
    ({"mode": "no-error"}, "internal", "without saying why"),
    ({"mode": "no-data"}, "internal", "lacks its result"),
    ({"mode": "no-ok"}, "internal", "does not say whether"),
    ({"mode": "no-contract"}, "internal", "does not know"),
    ({"mode": "ok", "contract": 2}, "internal", "does not know"),
    ({"mode": "refuse", "contract": 2}, "internal", "does not know"),
    ({"mode": "no-object"}, "internal", ""),
    ({"mode": "ok", "exit": 3}, "internal", "exit code 3"),
    ({"mode": "not-json", "exit": 2}, "internal", "`state stats`"),
    ({"mode": "not-json"}, "internal", "`state stats`"),
    ({"mode": "two-lines"}, "internal", "more than one"),
    ({"mode": "nan"}, "internal", "`state stats`"),
    ({"mode": "infinity"}, "internal", "`state stats`"),
    ({"mode": "twice"}, "internal", "`state stats`"),
    ({"mode": "surrogate"}, "internal", "`state stats`"),
    ({"mode": "deep"}, "internal", "`state stats`"),
    ({"mode": "empty"}, "internal", "without a reply"),
    ({"mode": "empty", "exit": 78}, "internal", "exit code 78"),
    ({"mode": "die"}, "internal", "signal 9"),
    ({"mode": "flood"}, "internal", "1000000"),
)


@pytest.mark.parametrize(("settings", "kind", "words"), MISBEHAVIOUR, ids=lambda value: json.dumps(value)[:40])
def test_what_goes_wrong_below_is_one_op_s_refusal(
    server: McpProcess, misbehave: Misbehave, settings: dict[str, Any], kind: str, words: str
) -> None:
    misbehave(stderr="what it said on stderr\n", **settings)
    value = server.call({"ops": [{"op": "state.stats"}, {"op": "server.info"}]}).value
    assert [entry["ok"] for entry in value["ops"]] == [False, True]
    error = value["ops"][0]["error"]
    assert error["kind"] == kind
    assert words in error["message"]
    assert error["schema"] == server.help("state.stats")["schema"]
    if kind == "internal" and settings["mode"] not in ("bogus-kind", "flood"):
        assert error["detail"]["stderr"] == "what it said on stderr\n"
    if "exit" in settings:
        assert error["detail"]["exit_code"] == settings["exit"]


def test_messages_of_different_faults_differ(server: McpProcess, misbehave: Misbehave) -> None:
    modes = (
        "no-error",
        "no-data",
        "no-ok",
        "not-json",
        "two-lines",
        "nan",
        "deep",
        "surrogate",
        "empty",
        "die",
        "flood",
    )
    messages = set()
    for mode in modes:
        misbehave(mode=mode)
        messages.add(server.op("state.stats")["error"]["message"])
    assert len(messages) == len(modes)


def test_an_undeclared_kind_is_kept_as_data(server: McpProcess, misbehave: Misbehave) -> None:
    misbehave(mode="bogus-kind")
    detail = server.op("state.stats")["error"]["detail"]
    assert detail == {"kind": "weird_kind", "message": "The stub was told to refuse.", "detail": {"stub": True}}


def test_text_from_below_cannot_steer_a_display(server: McpProcess, misbehave: Misbehave) -> None:
    misbehave(mode="not-json", stderr="a\x1b[31mb\u202ec")
    assert server.op("state.stats")["error"]["detail"]["stderr"] == "a\\u001b[31mb\\u202ec"


def test_a_command_that_cannot_be_started_is_the_server_s_fault(lion_mcp: Path, tmp_path: Path) -> None:
    with start_ours(tmp_path, tmp_path, "/nonexistent/li") as server:
        assert server.op("runs")["error"]["kind"] == "internal"
        assert server.op("server.info")["result"]["lionagi_version"] is None


def test_the_command_may_have_several_words(lion_mcp: Path, stub: Path, tmp_path: Path) -> None:
    with start_ours(tmp_path, tmp_path, f"/bin/sh {stub}") as server:
        assert server.op("runs")["ok"]
