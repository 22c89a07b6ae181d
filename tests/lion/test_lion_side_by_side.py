"""The real `li mcp` and the generated lion-mcp are asked the same things; they agree, but for `differences.py`."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from .conftest import Pair, Side
from .differences import check
from .mcp_process import McpProcess
from .mistakes import REFUSALS, WHOLE_CALLS
from .outlines import outline
from .spec_of_lion import FACTS

SCHEDULES = """\
apiVersion: lionagi.io/v1alpha1
kind: ScheduleSet
metadata: {name: nightly, project: p}
schedules: {}
"""


# The catalog and the parameters.


def catalog_of(told: dict[str, Any], common: set[str]) -> dict[str, Any]:
    """The catalog without its prose: `{"max_ops": 8, "verb team.send": {...}, "order of team": [...], ...}`."""
    entries = {entry["verb"]: entry for entry in told["verbs"]}
    assert told["verb_count"] == len(entries) == len(told["verbs"])
    assert told["available_count"] == sum(entry.get("available", True) for entry in entries.values())
    assert all(isinstance(entry["summary"], str) and entry["summary"] for entry in entries.values())
    shared = [name for name in entries if name in common]
    groups = dict.fromkeys((name.partition(".")[0], "available" in entries[name]) for name in shared)
    return {
        "only here": " ".join(sorted(entries.keys() - common)),
        "order of groups": " ".join(group for group, _ in groups),
        "availability in order": [unavailable for _, unavailable in groups],
        **{f"order in {group}": " ".join(order_in(group, shared)) for group, _ in groups},
        **{f"verb {name}": facts_of_entry(entries[name]) for name in shared},
        **{key: told[key] for key in told.keys() - {"verbs", "help_usage", "verb_count", "available_count"}},
    }


def facts_of_entry(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry without its prose; fingerprints differ with the texts of a schema, so only that there is one counts."""
    facts = {key: value for key, value in entry.items() if key != "summary"}
    return facts | ({"schema_fingerprint": "told"} if "schema_fingerprint" in facts else {})


def order_in(group: str, names: list[str]) -> list[str]:
    return [name for name in names if name.partition(".")[0] == group]


def test_the_catalogs_agree(pair: Pair) -> None:
    told = pair.both(lambda side: side.server.help())
    common = set.intersection(*({entry["verb"] for entry in catalog["verbs"]} for catalog in told))
    assert len(common) == 70
    check("catalog", *(catalog_of(catalog, common) for catalog in told))


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
    if FACTS["verbs"][verb]["kind"] != "spawn":  # what these share stands first, in ours
        rest["names"] = list(schema["properties"])
    parameters = {f"{verb} {name}": facts_of(value) for name, value in schema["properties"].items()}
    assert all("description" in value for value in schema["properties"].values())
    return {verb: rest, **parameters}


def test_every_parameter_agrees(pair: Pair) -> None:
    verbs = [entry["verb"] for entry in pair.ours.server.help()["verbs"]]
    check(
        "schemas",
        *pair.both(lambda side: {at: told for verb in verbs for at, told in schema_of(side.server, verb).items()}),
    )


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
    ("runs", {"limit": 0}),
    ("lifecycle", {"run_id": "20260101T000000-abcdef"}),
    ("state.stats", {}),
    ("state.ls", {"status": "running"}),
    ("team.create", {"name": "crew", "members": "ann,bob"}),
    ("team.create", {"name": "--machine", "members": "--help,-x"}),
    ("team.send", {"content": "-x --machine", "team": "crew", "to": "all", "sender": "--from"}),
    ("team.send", {"content": "done é 🙂\nnext line", "team": "crew", "to": "bob", "sender": "ann", "kind": "done"}),
    ("team.send", {"content": "x", "team": "nobody", "to": "all"}),
    ("team.show", {"team": "crew"}),
    ("team.receive", {"team": "crew", "member": "bob"}),
    ("team.receive", {"team": "crew", "member": "bob"}),
    ("team.receive", {"team": "crew"}),
    ("team.list", {}),
    ("stats.runs", {"since": "1h", "group_by": "model"}),
    ("stats.runs", {"group_by": "zodiac"}),
    ("monitor", {"since": "2h", "entity_type": "session", "project": "p"}),
    ("dispatch.ack", {"id": "none", "token": "t"}),
    ("schedule.validate", {"file": "<folder>/schedules.yaml"}),
    ("schedule.validate", {"file": "<folder>/missing.yaml"}),
    ("schedule.export", {}),
    ("schedule.create", {"name": "nightly", "cron": "0 3 * * *", "action_command_args": ["-a", "b c"]}),
    ("plugin.info", {"name": "none"}),
)


def answers_of(side: Side) -> dict[str, Any]:
    (side.folder / "schedules.yaml").write_text(SCHEDULES)
    given = {}
    for number, (verb, args) in enumerate(RESULTS):
        filled = json.loads(json.dumps(args).replace("<folder>", str(side.folder)))
        given[f"{number} {verb} {json.dumps(args)}"] = entry_of(side, verb, filled)
    return given


def test_the_same_calls_have_the_same_answers(pair: Pair) -> None:
    theirs, ours = pair.both(answers_of)
    assert sum(entry["ok"] for entry in theirs.values()) >= 18
    check("answers", theirs, ours)


def info_of(side: Side) -> dict[str, Any]:
    told: dict[str, Any] = side.server.op("server.info")["result"]
    assert told.pop("uptime_seconds") >= 0
    assert isinstance(told.pop("pid"), int)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00", told.pop("started_at"))
    available = [entry["verb"] for entry in side.server.help()["verbs"] if entry.get("available", True)]
    assert told.pop("verbs") == sorted(available)
    assert told.pop("verb_count") == len(available)
    told["server"] = sorted(told["server"]) if "server" in told else "absent"
    told["code_identity"] = "told" if told.get("code_identity") else "absent"
    return told


def test_server_info_tells_the_same(pair: Pair) -> None:
    theirs, ours = pair.both(info_of)
    check("server.info", theirs, ours)


# Refusals: of one op, and of a whole call.


@pytest.mark.parametrize("area", ["refusals", "calls"])
def test_the_same_mistakes_are_refused_alike(pair: Pair, area: str) -> None:
    requests = {"refusals": REFUSALS, "calls": WHOLE_CALLS}[area]
    check(area, *pair.both(lambda side: {at: outline(side.server.call(asked)) for at, asked in requests.items()}))


def test_tool_lists_agree(pair: Pair) -> None:
    check("tools/list", *pair.both(lambda side: listing_of(side.server)))


def listing_of(server: McpProcess) -> dict[str, Any]:
    (tool,) = server.ask("tools/list")["result"]["tools"]
    schema = tool["inputSchema"]
    info = server.op("server.info")["result"]
    own_version = info["server"]["version"] if "server" in info else info["lionagi_version"]
    return {
        "name": tool["name"],
        "parameters": sorted(schema["properties"]),
        "additionalProperties": schema.get("additionalProperties"),
        "required": schema.get("required"),
        "tells its own version": server.greeting["serverInfo"]["version"] == own_version,
        "capabilities": " ".join(sorted(server.greeting["capabilities"])),
    }


def test_a_line_that_is_no_json(pair: Pair) -> None:
    check("lines", *pair.both(lambda side: {"no JSON": codes_until_pong(side.server)}))


def codes_until_pong(server: McpProcess) -> list[int]:
    """Sends garbage, then a ping, and gives the error codes that come before the ping's reply."""
    server.send_line(b"{garbage")
    ping = server.send("ping")
    codes = []
    while (message := server.receive()).get("id") != ping:
        if "error" in message:
            codes.append(message["error"]["code"])
    return codes
