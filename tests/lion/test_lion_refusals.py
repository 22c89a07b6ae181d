"""Requests that lion-mcp refuses: as a whole, and op by op."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from .conftest import Misbehave
from .mcp_process import McpProcess
from .mistakes import QUICK, REFUSALS, WHOLE_CALLS
from .outlines import outline
from .spec_of_lion import LION, SPAWNING
from .submits import submission

WHOLE_CALL_OUTLINES = {
    "nothing": "refused",
    "ops null": "refused",
    "help null": "refused",
    "help false": "refused",
    "ops null, help false": "refused",
    "ops empty": "refused",
    "ops empty, help false": "refused",
    "ops and help true": "refused",
    "ops and help a verb": "refused",
    "ops and help false": "success: profile.list ok",
    "8 ops": "success: " + "; ".join(["profile.list ok"] * 8),
    "9 ops": "refused",
    "ops an object": "refused",
    "ops text": "refused",
    "ops a number": "refused",
    "an op that is text": "partial: ? invalid_input; profile.list ok",
    "an op that is null": "partial: ? invalid_input; profile.list ok",
    "an op that is a list": "partial: ? invalid_input; profile.list ok",
    "another key": "refused",
    "help a list": "refused",
    "help an object of numbers": "refused",
    "help 1": "refused",
    "help the text true": "refused",
    "help an unknown verb": "refused",
    "help an empty name": "refused",
    "help an empty object": "refused",
    "help without a verb": "refused",
    "help with another key": "refused",
    "help with a playbook it does not take": "refused",
    "help a verb in an object": "tells schema verb",
    "help a verb without parameters": "tells schema verb",
    "help an unavailable verb": "tells available reason summary verb",
    "help a synonym": "tells schema verb",
    "ops empty, help a verb": "tells schema verb",
    "ops empty, help true": "tells available_count help_usage max_ops synonyms_removed_after verb_count verbs",
}

ARGUMENT_PROBLEM = "partial: {} invalid_input (problems) schema"
OP_OUTLINES = {
    "op missing": "partial: ? invalid_input",
    "op null": "partial: ? invalid_input",
    "op a number": "partial: ? invalid_input",
    "unknown key": "partial: runs invalid_input",
    "unknown key on an unknown verb": "partial: nope invalid_input",
    "unknown verb": "partial: nope not_found",
    "empty verb": "partial:  not_found",
    "near synonym": "partial: server_infos not_found",
    "verb in capitals": "partial: Runs not_found",
    "unavailable verb": "partial: schedule.apply unavailable (summary)",
    "unavailable verb with args": "partial: mirror unavailable (summary)",
    "unavailable verb with bad args": "partial: mirror unavailable (summary)",
    "args null": "success: server.info ok",
    "args absent": "success: server.info ok",
    "args a list": "partial: runs invalid_input",
    "args text": "partial: runs invalid_input",
    "args false": "partial: runs invalid_input",
    "NUL": "partial: team.show invalid_input schema",
    "NUL in a list": "partial: schedule.runs invalid_input schema",
    "fingerprint where none is needed": "success: server.info ok",
    "fingerprint of another type": "success: server.info ok",
    "synonym": "success: server.info ok",
    "python verb refuses": "partial: profile.show not_found (available) schema",
    "two schemas alike": "partial: runs invalid_input (problems) schema; runs invalid_input (problems) schema of 0",
    "schemas of two verbs": "partial: runs invalid_input (problems) schema; state.ls invalid_input (problems) schema",
    "some of several": "partial: server.info ok; nope not_found; server.info ok",
    "all of several": "partial: nope not_found; mirror unavailable (summary)",
}


@pytest.mark.parametrize("mistake", WHOLE_CALLS)
def test_whole_calls(server: McpProcess, mistake: str) -> None:
    reply = server.call(WHOLE_CALLS[mistake])
    assert outline(reply) == WHOLE_CALL_OUTLINES[mistake]
    if reply.failed:
        assert json.loads(reply.text) == reply.result["structuredContent"]
        assert json.loads(reply.text)["error"]["kind"] in ("invalid_input", "not_found")


@pytest.mark.parametrize("mistake", REFUSALS)
def test_single_ops(server: McpProcess, mistake: str) -> None:
    reply = server.call(REFUSALS[mistake])
    wanted = OP_OUTLINES.get(mistake) or ARGUMENT_PROBLEM.format(REFUSALS[mistake]["ops"][0]["op"])
    assert outline(reply) == wanted
    assert reply.value == reply.result["structuredContent"]


def test_messages_say_what_to_do(server: McpProcess) -> None:
    nine = server.call({"ops": [QUICK] * 9}).text
    assert "9" in nine
    assert "8" in nine
    unknown = server.call({"help": "zzz"}).text
    assert "44" in unknown
    assert "26" in unknown
    keys = server.op_of({"op": "runs", "zz": 1, "aa": 2})["error"]["message"]
    assert keys.index("aa") < keys.index("zz")
    assert "limit" in server.op("runs", {"limits": 3})["error"]["message"]


def test_problems_come_in_the_order_sent_then_what_is_missing(server: McpProcess) -> None:
    args = {"to": 1, "zz": 2, "team": 3, "kind": "shout"}
    problems = server.op("team.send", args)["error"]["detail"]["problems"]
    named = [re.findall(r"`([a-z]+)`", problem)[0] for problem in problems]
    assert named == ["to", "zz", "team", "kind", "content"]


def test_refused_parameters_answer_with_their_reason(server: McpProcess) -> None:
    for name, verb in LION.verbs.items():
        for parameter, reason in verb.get("refused", {}).items():
            op = (
                submission(server, name, {parameter: True})
                if name in SPAWNING
                else {"op": name, "args": {parameter: True}}
            )
            message = server.op_of(op)["error"]["message"]
            assert parameter in message
            assert reason.rstrip(".")[:60] in message


FOREIGN = re.compile(r"https?:|pydantic|NoneType|Traceback|Error calling|\b(str|int|dict|bool|float|None|True|False)\b")


def test_texts_are_in_json_terms_and_hold_no_value(server: McpProcess) -> None:
    marker = "zq7marker"
    more: list[dict[str, Any]] = [
        {"ops": [{"op": "runs", "args": {"limit": marker}}]},
        {"ops": [{"op": "team.send", "args": {"content": "x", "team": "t", "to": "all", "kind": marker}}]},
        {"ops": [{"op": "runs", "args": marker}]},
        {"ops": [marker]},
        {"ops": marker},
        {"ops": [{"op": "schedule.runs", "args": {"id": marker, "status": [marker, 7]}}]},
        {"ops": [{"op": "profile.list", "args": {"cwd": f"/{marker}"}}]},
        {"ops": [{"op": "profile.list", "args": {"fields": [marker]}}]},
        {"ops": [{"op": "profile.show", "args": {"name": marker}}]},
        {"ops": [{"op": "server.info", "schema_fingerprint": marker}]},
        {"help": {"verb": "runs", "playbook": marker}},
    ]
    for request in [*WHOLE_CALLS.values(), *REFUSALS.values(), *more]:
        for error in errors_in(server.call(request).result["structuredContent"]):
            text = json.dumps({key: value for key, value in error.items() if key not in ("schema", "schema_ref")})
            assert not FOREIGN.search(text), text
            assert marker not in text


def errors_in(value: dict[str, Any]) -> list[dict[str, Any]]:
    entries = [value, *value.get("ops", ())]
    return [entry["error"] for entry in entries if "error" in entry]


def test_a_schema_is_told_once_and_then_referred_to(server: McpProcess) -> None:
    wrong = [{"op": "runs", "args": {"x": n}} for n in range(7)]
    reply = server.call({"ops": [{"op": "server.info"}, *wrong]})
    errors = [entry["error"] for entry in reply.value["ops"][1:]]
    schema = errors[0]["schema"]
    assert schema == server.help("runs")["schema"]
    canonical = json.dumps(schema, sort_keys=True, separators=(",", ":")).encode()
    reference = {"op_index": 1, "schema_fingerprint": hashlib.sha256(canonical).hexdigest()[:16]}
    assert [error["schema_ref"] for error in errors[1:]] == [reference] * 6


def test_nothing_runs_for_a_refused_call(server: McpProcess, misbehave: Misbehave, tmp_path: Path) -> None:
    misbehave(argv=tmp_path / "argv")
    refused = [name for name, wanted in WHOLE_CALL_OUTLINES.items() if wanted == "refused"]
    for name in refused:
        server.call(json.loads(json.dumps(WHOLE_CALLS[name]).replace('"profile.list"', '"state.stats"')))
    for request in REFUSALS.values():
        server.call(request)
    assert not (tmp_path / "argv").exists()
