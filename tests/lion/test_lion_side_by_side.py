"""The real `li mcp` and the generated lion-mcp are asked the same things; they agree, but for `differences.py`."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from .conftest import Pair, Side
from .differences import check
from .mcp_process import McpProcess, ToolReply

VALIDATE = """\
apiVersion: lionagi.io/v1alpha1
kind: ScheduleSet
metadata: {name: nightly, project: p}
schedules: {}
"""


# The catalog and the parameters.


def catalog_of(server: McpProcess) -> dict[str, Any]:
    """The catalog without its prose: `{"max_ops": 8, "verb team.send": {...}, "order": [...], ...}`."""
    told = server.help()
    verbs = {f"verb {entry['verb']}": {k: v for k, v in entry.items() if k != "summary"} for entry in told["verbs"]}
    assert told["verb_count"] == len(told["verbs"])
    assert told["available_count"] == sum(entry.get("available", True) for entry in told["verbs"])
    assert all(isinstance(entry["summary"], str) and entry["summary"] for entry in told["verbs"])
    rest = {key: value for key, value in told.items() if key not in ("verbs", "help_usage")}
    return {**rest, **verbs, "order": [entry["verb"] for entry in told["verbs"]]}


def test_the_catalogs_agree(pair: Pair) -> None:
    check("catalog", catalog_of(pair.theirs.server), catalog_of(pair.ours.server))


def facts_of(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without prose and without marks of one server's own."""
    facts = {key: value for key, value in schema.items() if key != "description" and not key.startswith("x-")}
    if "items" in facts:
        facts["items"] = facts_of(facts["items"])
    return facts


def schema_of(server: McpProcess, verb: str) -> dict[str, Any]:
    """What help tells of a verb: `{"verb team.send": {...}, "team.send to": {"type": "string"}, ...}`."""
    told = server.help(verb)
    schema = told.get("schema")
    if schema is None:
        assert told.pop("reason")
        return {verb: {key: value for key, value in told.items() if key != "summary"}}
    rest = {key: value for key, value in facts_of(schema).items() if key not in ("properties", "title")}
    rest["names"] = list(schema["properties"])
    parameters = {f"{verb} {name}": facts_of(value) for name, value in schema["properties"].items()}
    assert all("description" in value for value in schema["properties"].values())
    return {verb: rest, **parameters}


def test_every_parameter_agrees(pair: Pair) -> None:
    verbs = [entry["verb"] for entry in pair.ours.server.help()["verbs"]]
    theirs, ours = (
        {at: facts for verb in verbs for at, facts in schema_of(side.server, verb).items()}
        for side in (pair.theirs, pair.ours)
    )
    check("schemas", theirs, ours)


# What verbs give.


def scrubbed(value: Any, side: Side) -> Any:
    """Without what is another in every run: times, ids, and the folders that belong to one side."""
    text = json.dumps(value)
    for path, name in ((side.home, "<home>"), (side.folder, "<folder>")):
        text = text.replace(str(path), name)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?", "<time>", text)
    text = re.sub(r'("(?:since_epoch|observed_at)": )\d+(\.\d+)?', r'\1"<time>"', text)
    return json.loads(re.sub(r"\b[0-9a-f]{12}\b", "<id>", text))


def entry_of(side: Side, verb: str, args: dict[str, Any]) -> Any:
    entry = side.server.op(verb, args)
    entry.get("error", {}).pop("schema", None)
    return scrubbed(entry, side)


RESULTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("handshake", {}),
    ("runs", {}),
    ("runs", {"limit": 1}),
    ("runs", {"limit": 0}),
    ("lifecycle", {"run_id": "20260101T000000-abcdef"}),
    ("state.stats", {}),
    ("state.ls", {}),
    ("team.list", {}),
    ("team.create", {"name": "crew", "members": "ann,bob"}),
    ("team.create", {"name": "--machine", "members": "--help,-x"}),
    ("team.send", {"content": "-x --machine", "team": "crew", "to": "all", "sender": "--from"}),
    ("team.send", {"content": "done é 🙂\nnext line", "team": "crew", "to": "bob", "sender": "ann", "kind": "done"}),
    ("team.send", {"content": "x", "team": "nobody", "to": "all"}),
    ("team.show", {"team": "crew"}),
    ("team.show", {"team": "nobody"}),
    ("team.receive", {"team": "crew", "member": "bob"}),
    ("team.receive", {"team": "crew", "member": "bob"}),
    ("team.receive", {"team": "crew"}),
    ("team.list", {}),
    ("stats.runs", {}),
    ("stats.runs", {"since": "1h", "group_by": "model"}),
    ("stats.runs", {"group_by": "zodiac"}),
    ("invoke.list", {"skill": "s", "status": "done"}),
    ("monitor", {"since": "2h", "entity_type": "session", "project": "p"}),
    ("dispatch.ls", {"limit": 3}),
    ("dispatch.show", {"id": "none"}),
    ("dispatch.ack", {"id": "none", "token": "t"}),
    ("dispatch.retry", {"id": "none"}),
    ("dispatch.purge", {"id": "none", "dry_run": True}),
    ("schedule.validate", {"file": "<folder>/schedules.yaml"}),
    ("schedule.validate", {"file": "<folder>/missing.yaml"}),
    ("schedule.export", {}),
    ("schedule.list", {}),
    ("schedule.create", {"name": "nightly", "cron": "0 3 * * *", "action_command_args": ["-a", "b c"]}),
    ("plugin.info", {"name": "none"}),
    ("state.stats", {}),
    ("state.ls", {"status": "running"}),
)


def test_the_same_calls_have_the_same_answers(pair: Pair) -> None:
    answers: list[dict[str, Any]] = []
    for side in (pair.theirs, pair.ours):
        (side.folder / "schedules.yaml").write_text(VALIDATE)
        given = {}
        for number, (verb, args) in enumerate(RESULTS):
            filled = json.loads(json.dumps(args).replace("<folder>", str(side.folder)))
            given[f"{number} {verb} {json.dumps(args)}"] = entry_of(side, verb, filled)
        answers.append(given)
    assert sum(entry["ok"] for entry in answers[0].values()) >= 20
    check("answers", *answers)


def test_server_info_tells_the_same(pair: Pair) -> None:
    theirs, ours = (side.server.op("server.info")["result"] for side in (pair.theirs, pair.ours))
    for told in (theirs, ours):
        assert told.pop("uptime_seconds") >= 0
        assert isinstance(told.pop("pid"), int)
        assert re.match(r"\d{4}-\d\d-\d\dT.*\+00:00$", told.pop("started_at"))
        assert told.pop("verb_count") == len(told["verbs"])
        assert told["verbs"] == sorted(told["verbs"])
        told["verbs"] = " ".join(told["verbs"])
    theirs["code_identity"] = sorted(theirs["code_identity"])[:1]
    ours["server"]["registry"] = len(ours["server"]["registry"])
    check("server.info", theirs, ours)


# Refusals: of one op, and of a whole call.


def outline(reply: ToolReply) -> str:
    """`success: a ok; b ok`, or `partial: nope not_found; runs invalid_input (problems) schema`, or `refused`."""
    if "error" in reply.message:
        return f"protocol error {reply.message['error']['code']}"
    if reply.failed:
        return "refused"
    value = reply.value
    if "ops" not in value:
        return f"tells {' '.join(sorted(value))}"
    return f"{value['status']}: " + "; ".join(map(outline_of_entry, value["ops"]))


def outline_of_entry(entry: dict[str, Any]) -> str:
    if entry["ok"]:
        return f"{entry['op']} ok"
    error = entry["error"]
    detail = f" ({' '.join(sorted(error['detail']))})" if error.get("detail") else ""
    schema = (
        " schema"
        if "schema" in error
        else f" schema of {error['schema_ref']['op_index']}"
        if "schema_ref" in error
        else ""
    )
    return f"{entry['op']} {error['kind']}{detail}{schema}"


def one(op: Any) -> dict[str, Any]:
    return {"ops": [op]}


def runs(**args: Any) -> dict[str, Any]:
    return one({"op": "runs", "args": args})


SEND = {"content": "x", "team": "t", "to": "all"}

REFUSALS: dict[str, dict[str, Any]] = {
    "op missing": one({"args": {}}),
    "op null": one({"op": None}),
    "op a number": one({"op": 7}),
    "unknown key": one({"op": "runs", "zz": 1, "aa": 2}),
    "unknown key on an unknown verb": one({"op": "nope", "zz": 1}),
    "unknown verb": one({"op": "nope"}),
    "empty verb": one({"op": ""}),
    "near synonym": one({"op": "server_infos"}),
    "verb in capitals": one({"op": "Runs"}),
    "unavailable verb": one({"op": "schedule.apply"}),
    "unavailable verb with args": one({"op": "mirror", "args": {"x": 1}}),
    "unavailable verb with bad args": one({"op": "mirror", "args": [1]}),
    "args null": one({"op": "server.info", "args": None}),
    "args absent": one({"op": "server.info"}),
    "args a list": one({"op": "runs", "args": []}),
    "args text": one({"op": "runs", "args": "{}"}),
    "args false": one({"op": "runs", "args": False}),
    "unknown parameter": runs(limits=3),
    "parameter to a verb without any": one({"op": "handshake", "args": {"x": 1}}),
    "text for an integer": runs(limit="7"),
    "true for an integer": runs(limit=True),
    "fraction for an integer": runs(limit=7.5),
    "null for an integer": runs(limit=None),
    "list for an integer": runs(limit=[7]),
    "required missing": one({"op": "team.send", "args": {}}),
    "one required missing": one({"op": "team.send", "args": {"content": "x", "team": "t"}}),
    "not of the enum": one({"op": "team.send", "args": {**SEND, "kind": "shout"}}),
    "number for text": one({"op": "team.show", "args": {"team": 7}}),
    "item of the wrong type": one({"op": "schedule.runs", "args": {"id": "s", "status": ["a", 1]}}),
    "text for a list": one({"op": "schedule.runs", "args": {"id": "s", "status": "a"}}),
    "text for a boolean": one({"op": "dispatch.purge", "args": {"id": "d", "dry_run": "true"}}),
    "integer for a boolean": one({"op": "dispatch.purge", "args": {"id": "d", "dry_run": 1}}),
    "text for a number": one({"op": "schedule.create", "args": {"name": "n", "max_cost_usd": "1"}}),
    "integer for a number": one({"op": "schedule.create", "args": {"name": "n", "max_cost_usd": 1}}),
    "refused parameter": one({"op": "monitor", "args": {"watch": True}}),
    "refused parameter that empties a store": one({"op": "dispatch.purge", "args": {"id": "d", "before": 1.0}}),
    "NUL": one({"op": "team.show", "args": {"team": "a\0b"}}),
    "NUL in a list": one({"op": "schedule.runs", "args": {"id": "s", "status": ["a\0"]}}),
    "fingerprint where none is needed": one({"op": "server.info", "schema_fingerprint": "0"}),
    "fingerprint of another type": one({"op": "server.info", "schema_fingerprint": 7}),
    "fingerprint among the arguments": one({"op": "runs", "args": {"schema_fingerprint": "0"}}),
    "synonym": one({"op": "server_info"}),
    "python verb refuses": one({"op": "profile.show", "args": {"name": "nobody"}}),
    "python verb without its parameter": one({"op": "profile.show", "args": {}}),
    "two schemas alike": {"ops": [{"op": "runs", "args": {"x": 1}}, {"op": "runs", "args": {"limit": "1"}}]},
    "schemas of two verbs": {"ops": [{"op": "runs", "args": {"x": 1}}, {"op": "state.ls", "args": {"limit": "1"}}]},
    "some of several": {"ops": [{"op": "server.info"}, {"op": "nope"}, {"op": "server_info"}]},
    "all of several": {"ops": [{"op": "nope"}, {"op": "mirror"}]},
}

WHOLE_CALLS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "ops null": {"ops": None},
    "help null": {"help": None},
    "help false": {"help": False},
    "ops null, help false": {"ops": None, "help": False},
    "ops empty": {"ops": []},
    "ops empty, help false": {"ops": [], "help": False},
    "ops empty, help true": {"ops": [], "help": True},
    "ops empty, help a verb": {"ops": [], "help": "runs"},
    "ops and help true": {"ops": [{"op": "server.info"}], "help": True},
    "ops and help a verb": {"ops": [{"op": "server.info"}], "help": "runs"},
    "ops and help false": {"ops": [{"op": "server.info"}], "help": False},
    "8 ops": {"ops": [{"op": "server.info"}] * 8},
    "9 ops": {"ops": [{"op": "server.info"}] * 9},
    "ops an object": {"ops": {"op": "server.info"}},
    "ops text": {"ops": '[{"op": "server.info"}]'},
    "ops a number": {"ops": 1},
    "an op that is text": {"ops": ["server.info", {"op": "server.info"}]},
    "an op that is null": {"ops": [None, {"op": "server.info"}]},
    "an op that is a list": {"ops": [[], {"op": "server.info"}]},
    "another key": {"ops": [{"op": "server.info"}], "more": 1},
    "help a list": {"help": ["runs"]},
    "help an object of numbers": {"help": {"verb": 1}},
    "help 1": {"help": 1},
    "help the text true": {"help": "true"},
    "help an unknown verb": {"help": "zzz"},
    "help an empty name": {"help": ""},
    "help an empty object": {"help": {}},
    "help without a verb": {"help": {"playbook": "p"}},
    "help with another key": {"help": {"verb": "runs", "x": "y"}},
    "help with a playbook it does not take": {"help": {"verb": "runs", "playbook": "p"}},
    "help a verb in an object": {"help": {"verb": "runs"}},
    "help a verb without parameters": {"help": "handshake"},
    "help an unavailable verb": {"help": "schedule.apply"},
    "help a synonym": {"help": "server_info"},
}


@pytest.mark.parametrize("area", ["refusals", "calls"])
def test_the_same_mistakes_are_refused_alike(pair: Pair, area: str) -> None:
    requests = {"refusals": REFUSALS, "calls": WHOLE_CALLS}[area]
    theirs, ours = (
        {at: outline(side.server.call(request)) for at, request in requests.items()}
        for side in (pair.theirs, pair.ours)
    )
    check(area, theirs, ours)


def test_tool_lists_agree(pair: Pair) -> None:
    theirs, ours = (listing_of(side.server) for side in (pair.theirs, pair.ours))
    check("tools/list", theirs, ours)


def listing_of(server: McpProcess) -> dict[str, Any]:
    (tool,) = server.ask("tools/list")["result"]["tools"]
    schema = tool["inputSchema"]
    return {
        "name": tool["name"],
        "parameters": sorted(schema["properties"]),
        "additionalProperties": schema.get("additionalProperties"),
        "required": schema.get("required"),
        "version is lionagi's or our own": server.greeting["serverInfo"]["version"],
        "capabilities": sorted(server.greeting["capabilities"]),
    }


def test_a_line_that_is_no_json(pair: Pair) -> None:
    theirs, ours = (codes_until_pong(side.server) for side in (pair.theirs, pair.ours))
    check("lines", {"garbage": theirs}, {"garbage": ours})


def codes_until_pong(server: McpProcess) -> list[int]:
    """Sends garbage, then a ping, and gives the error codes that come before the ping's reply."""
    server.send_line(b"{garbage")
    ping = server.send("ping")
    codes = []
    while (message := server.receive()).get("id") != ping:
        if "error" in message:
            codes.append(message["error"]["code"])
    return codes
