"""The operator's command for the registry: what it takes, what it refuses, and what it shows."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from typing import Any

import pytest

from .http_upstream import ScriptedHttp
from .manifests import GET, PUT, http_manifest, manifest, tool
from .places import SUBJECT, Place, rules
from .processes import KEY_VARIABLE, Gateway, run_command
from .scripted import GET_SCHEMA, LIVE_GET, LIVE_PUT, PUT_SCHEMA, Json, Scripted

ARGUMENTS = {"event_id": "evt_123"}


def spoilt(whole: Json, path: str, value: Any) -> Json:
    """A manifest with one part exchanged; `path` has dots, and numbers for entries."""
    copied: Json = json.loads(json.dumps(whole))
    *inner, last = path.split(".")
    at: Any = copied
    for part in inner:
        at = at[int(part)] if isinstance(at, list) else at[part]
    if value is ...:
        del at[last]
    else:
        at[int(last) if isinstance(at, list) else last] = value
    return copied


WRONG: list[tuple[str, Any]] = [
    ("server_id", "a:b"),
    ("server_id", "-a"),
    ("server_id", "a" * 97),
    ("server_id", ...),
    ("schema_version", 3),
    ("schema_version", True),
    ("transport", "sse"),
    ("transport", "streamable_http"),
    ("http", {"url": "https://example.com/mcp"}),
    ("stdio", ...),
    ("unknown", 1),
    ("timeout_s", 0),
    ("timeout_s", 61),
    ("timeout_s", "10"),
    ("timeout_s", True),
    ("max_request_bytes", 0),
    ("max_request_bytes", 1_048_577),
    ("max_request_bytes", 1.5),
    ("max_response_bytes", 8_388_609),
    ("concurrency", 0),
    ("concurrency", 65),
    ("page_limit", 0),
    ("page_limit", 65),
    ("warm", "yes"),
    ("metadata", []),
    ("tools", []),
    ("tools", {}),
    ("stdio.command", "python -m x"),
    ("stdio.command", "a;b"),
    ("stdio.command", "a|b"),
    ("stdio.command", "~/a"),
    ("stdio.command", ""),
    ("stdio.command", 7),
    ("stdio.args", "-m"),
    ("stdio.args", ["a\0b"]),
    ("stdio.args", [1]),
    ("stdio.shell", True),
    ("stdio.cwd", "/tmp"),  # noqa: S108 - never used
    ("stdio.cwd", "a/../../b"),
    ("stdio.env", {"TOKEN": "HOME"}),
    ("stdio.env", {"TOKEN": "LIBOS_MCP_OPERATOR_KEY"}),
    ("stdio.env", {"TOKEN": "LIBOS_MCP_STORE"}),
    ("stdio.env", {"TOKEN": "LIBOS_MCP_STATE_KEYS"}),
    ("stdio.env", {"A-B": "LIBOS_MCP_TOKEN"}),
    ("stdio.env", {"TOKEN": {"env": 7}}),
    ("tools.0.unknown", 1),
    ("tools.1.tool_id", "event_get"),
    ("tools.0.tool_id", "a b"),
    ("tools.1.mcp_name", "cal.get"),
    ("tools.0.mcp_name", ""),
    ("tools.0.mcp_name", "x" * 257),
    ("tools.0.mcp_name", ...),
    ("tools.0.right", "admin"),
    ("tools.0.right", ...),
    ("tools.0.rollback_class", "maybe"),
    ("tools.0.rollback_class", ...),
    ("tools.0.rollback_status", "done"),
    ("tools.0.state_mutation", "no"),
    ("tools.0.state_mutation", 0),
    ("tools.0.state_mutation", True),  # with no_rollback_required
    ("tools.0.information_flow", ...),
    ("tools.0.input_schema", True),
    ("tools.0.input_schema", {"type": "nothing"}),
    ("tools.0.input_schema", {"$ref": "https://example.com/schema"}),
    ("tools.0.metadata", "text"),
    ("tools.0.unpinned_mutation", "maybe"),
    ("tools.0.warm_mutation", True),
    ("tools.1.read_back", "nope"),
]


@pytest.fixture(scope="module")
def one(place: Place, shared_calendar: Scripted) -> Json:
    """A manifest that is right, of a server that is not registered."""
    return manifest(shared_calendar, "one")


# What leaves nothing else to be looked at.
ALONE = {"server_id", "transport", "http", "stdio", "tools", "tools.1.tool_id", "tools.1.mcp_name"}


def told(path: str, said: str) -> bool:
    """Whether this is told, at its own place such as `tools[0].right`, or by its name at the one around it."""
    place, _, name = re.sub(r"\.(\d+)", r"[\1]", path).rpartition(".")
    lines = [line.strip() for line in said.splitlines()]
    own = f"{place}.{name}" if place else name
    return any(line.startswith(own) or (line.startswith(place) and f"`{name}`" in line) for line in lines)


@pytest.mark.parametrize("turn", range(max(Counter(path for path, _ in WRONG).values())))
def test_what_is_wrong_is_told_by_its_place(place: Place, one: Json, turn: int) -> None:
    """All faults of one manifest at once."""
    values: dict[str, list[Any]] = defaultdict(list)
    for path, value in WRONG:
        values[path].append(value)
    faults = {path: several[turn] for path, several in values.items() if path not in ALONE and len(several) > turn}
    whole = one
    for path, value in faults.items():
        whole = spoilt(whole, path, value)
    said = place.refused("servers", "add", "-", stdin=json.dumps(whole).encode())
    assert [path for path in faults if not told(path, said)] == [], said


@pytest.mark.parametrize(("path", "value"), [fault for fault in WRONG if fault[0] in ALONE])
def test_what_leaves_nothing_else_to_look_at_is_told(place: Place, one: Json, path: str, value: Any) -> None:
    said = place.refused("servers", "add", "-", stdin=json.dumps(spoilt(one, path, value)).encode())
    assert path.rpartition(".")[2] in said


def test_nothing_wrong_was_registered(place: Place, one: Json) -> None:
    before, rows = place.done("servers", "list"), place.audit()
    place.refused("servers", "add", "-", stdin=json.dumps({**one, "timeout_s": 0}).encode())
    assert (place.done("servers", "list"), place.audit()) == (before, rows)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/mcp",
        "http://example.com/mcp",
        "https://user:s3cret@example.com/mcp",
        "https://example.com/mcp#part",
        "https:///mcp",
        "https://10.0.0.1/mcp",
        "https://[fd00::1]/mcp",
        "https://169.254.169.254/latest",
        "https://metadata.google.internal/mcp",
        "https://2130706433/mcp",
    ],
)
def test_addresses_that_are_never_called_are_refused(place: Place, remote: ScriptedHttp, url: str) -> None:
    whole = http_manifest(remote, "bad-address")
    said = place.refused("servers", "add", str(place.manifest_file(spoilt(whole, "http.url", url))))
    assert "url" in said
    assert "s3cret" not in said


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": {"env": "LIBOS_MCP_TOKEN"}},
        {"content-length": {"env": "LIBOS_MCP_TOKEN"}},
        {"Transfer-Encoding": {"env": "LIBOS_MCP_TOKEN"}},
        {"X-Key": "s3cret-literal"},
        {"X-Key": {"env": "HOME"}},
        {"X-Key": {"env": "LIBOS_MCP_TOKEN", "prefix": "Digest "}},
        {"X-Key": {"env": "LIBOS_MCP_TOKEN", "suffix": "x"}},
        {"X Key": {"env": "LIBOS_MCP_TOKEN"}},
    ],
)
def test_headers_that_are_never_sent_are_refused(place: Place, remote: ScriptedHttp, headers: Any) -> None:
    whole = http_manifest(remote, "bad-header", headers=headers)
    said = place.refused("servers", "add", str(place.manifest_file(whole)))
    assert "s3cret" not in said


def test_a_manifest_is_read_as_yaml_from_a_file_or_stdin(place: Place, one: Json) -> None:
    text = json.dumps(spoilt(spoilt(one, "server_id", "yaml"), "metadata", {"owner": "us"}))
    place.done("servers", "add", "-", stdin=f"mcp_server: {text}\n".encode())
    shown = place.done("servers", "show", "yaml")
    assert "yaml" in shown
    for broken in (b"{", b"a: 1\na: 2\n", b"- 1\n", b"server_id: !!python/name:os.system x\n", b"\xff", b""):
        place.refused("servers", "add", "-", stdin=broken)
    place.refused("servers", "add", "-", stdin=text.replace('"yaml"', '"big"').encode() + b" " * 262_144)
    place.refused("servers", "add", str(place.folder / "nothing.yaml"))


def test_a_server_is_added_once_and_replaced_only_if_it_is_there(place: Place, one: Json) -> None:
    file = str(place.manifest_file(spoilt(one, "server_id", "added-once")))
    place.refused("servers", "replace", file)
    place.done("servers", "add", file)
    place.refused("servers", "add", file)
    place.done("servers", "replace", file)


def test_the_list_shows_what_waits_for_the_operator(place: Place, one: Json) -> None:
    whole = spoilt(one, "server_id", "listed")
    place.add(whole)
    (line,) = [line for line in place.done("servers", "list").splitlines() if "listed" in line]
    assert "suspended" not in line
    place.replace(whole)
    (line,) = [line for line in place.done("servers", "list").splitlines() if "listed" in line]
    assert "suspended" in line
    assert "suspended" in place.done("servers", "show", "listed")
    place.refused("servers", "show", "ghost")


@pytest.mark.parametrize("words", [["list"], ["show", "calendar"], ["remove", "calendar"], ["diff", "calendar"]])
def test_the_registry_is_the_operators(place: Place, calendar: Scripted, words: list[str]) -> None:
    for key in (None, "wrong"):
        said = place.operator("servers", *words, key=key)
        assert said.returncode != 0
        assert "cal.get" not in said.stdout
    assert "calendar" in place.done("servers", "list")
    assert calendar.untouched


def test_without_a_policy_file_there_is_no_operator(place: Place) -> None:
    variables = {**place.variables, KEY_VARIABLE: place.key}
    bare = run_command(["servers", "list", "--state", str(place.state)], env=variables, cwd=place.folder)
    assert bare.returncode != 0
    assert "--policy" in bare.stderr


def test_diff_and_pin_show_drift_and_repair_it(place: Place, gateway: Gateway, own_upstream: Scripted) -> None:
    place.add(manifest(own_upstream, "cosmetic"))
    place.policy({SUBJECT: rules(["read mcp:*", "write mcp:*", "read mcp_server:*"])})
    changed = {**GET_SCHEMA, "title": "Get \u202e\u001b[31m"}
    own_upstream.tell(tools=[{**LIVE_GET, "inputSchema": changed}, LIVE_PUT])
    gateway.call("cosmetic", "event_get", ARGUMENTS).ended("invalid_response", started=False)
    before = gateway.tool("inspect_mcp_server", server_id="cosmetic").done["server"]
    for words in (["diff", "cosmetic"], ["pin", "cosmetic"]):
        said = place.operator("servers", *words)
        assert "event_get" in said.stdout
        assert "title" in said.stdout
        assert "\u202e" not in said.stdout
        assert "\u001b" not in said.stdout
        assert "Traceback" not in said.stderr
    assert gateway.tool("inspect_mcp_server", server_id="cosmetic").done["server"] == before
    place.done("servers", "pin", "cosmetic", "--yes")
    after = gateway.tool("inspect_mcp_server", server_id="cosmetic").done["server"]
    assert after["generation"] == before["generation"] + 1
    assert [entry["input_schema"]["properties"] for entry in after["tools"]] == [
        GET_SCHEMA["properties"],
        PUT_SCHEMA["properties"],
    ]
    assert "title" in after["tools"][0]["input_schema"]
    assert gateway.call("cosmetic", "event_get", ARGUMENTS).kind == "denied"
    place.confirm("cosmetic")
    assert gateway.call("cosmetic", "event_get", ARGUMENTS).called["ok"]
    assert own_upstream.count("call") == 1


def test_pinning_makes_schemas_where_there_were_none(place: Place, gateway: Gateway, own_upstream: Scripted) -> None:
    place.add(manifest(own_upstream, "bare", [tool(GET, input_schema={}), tool(PUT, input_schema={})]))
    place.policy({SUBJECT: rules(["read mcp:*", "write mcp:*"])})
    assert gateway.call("bare", "event_put", ARGUMENTS).kind == "conflict"
    place.done("servers", "pin", "bare", "--yes")
    place.confirm("bare")
    assert gateway.call("bare", "event_put", ARGUMENTS).called["schema_protection"] == "pinned"
    assert gateway.call("bare", "event_put", {"event_id": 1}).kind == "invalid_input"


def test_a_tool_that_is_gone_cannot_be_pinned(place: Place, own_upstream: Scripted) -> None:
    place.add(manifest(own_upstream, "halved"))
    own_upstream.tell(tools=[LIVE_GET])
    assert "event_put" in place.operator("servers", "diff", "halved").stdout
    before = place.done("servers", "show", "halved")
    said = place.operator("servers", "pin", "halved", "--yes")
    assert "event_put" in said.stdout + said.stderr
    assert said.returncode == 1
    assert place.done("servers", "show", "halved") == before


def test_a_server_that_cannot_be_reached_cannot_be_pinned(place: Place, own_upstream: Scripted) -> None:
    place.add(manifest(own_upstream, "silent"))
    own_upstream.tell(deeds={"tools/list": "die of s3cret-cause"})
    before = place.done("servers", "show", "silent")
    for words in (["pin", "silent", "--yes"], ["pin", "silent"], ["diff", "silent"]):
        said = place.operator("servers", *words)
        assert said.returncode == 1
        assert "s3cret" not in said.stdout + said.stderr
        assert "Traceback" not in said.stderr
    assert place.done("servers", "show", "silent") == before
    starts = own_upstream.count("start")
    place.operator("servers", "diff", "silent", "--offline")
    assert own_upstream.count("start") == starts


def test_what_the_spec_brings_is_there_and_the_operators_change_wins(own_place: Place, own_upstream: Scripted) -> None:
    own_place.policy({SUBJECT: rules(["read mcp_server:*", "read mcp:*"])})
    with own_place.serving() as gateway:
        seeded = gateway.tool("inspect_mcp_server", server_id="time").done["server"]
        assert seeded["generation"] == 1
    with own_place.serving() as gateway:  # an unchanged spec changes nothing
        assert gateway.tool("inspect_mcp_server", server_id="time").done["server"] == seeded
    own_place.replace(manifest(own_upstream, "time"))
    with own_place.serving() as gateway:
        changed = gateway.tool("inspect_mcp_server", server_id="time").done["server"]
        assert (changed["generation"], changed["transport"]["args"]) == (2, own_upstream.stdio()["args"])
        assert gateway.call("time", "event_get", ARGUMENTS).kind == "denied"
    shown = own_place.operator("servers", "diff", "time", "--offline")
    assert "mcp-server-time" in shown.stdout
    own_place.done("servers", "remove", "time")
    with own_place.serving() as gateway:
        assert gateway.tool("inspect_mcp_server", server_id="time").kind == "not_found"
