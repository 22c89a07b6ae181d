"""What callers see of the registry, without anything being contacted, and what a refresh adds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from .http_upstream import ScriptedHttp
from .manifests import GET, http_manifest, manifest, tool
from .places import Place
from .processes import Gateway
from .scripted import GET_SCHEMA, LIVE_GET, LIVE_PUT, PUT_SCHEMA, Scripted

SERVER = frozenset(
    "schema_version server_id transport stdio_authority_resource tools timeout_s max_request_bytes max_response_bytes "
    "concurrency page_limit metadata digest generation registered_by created_at updated_at".split()
)
TOOL = frozenset(
    "tool_id mcp_name right resource rollback_class rollback_status state_mutation information_flow input_schema "
    "unpinned_mutation read_back metadata".split()
)


@pytest.fixture(scope="module")
def boards(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Scripted:
    """Three servers with the word board in their ids, all of them one upstream."""
    upstream = Scripted(tmp_path_factory.mktemp("boards"))
    for name in ("board-a", "board-b", "board-c"):
        place.add(manifest(upstream, name))
    return upstream


def test_there_are_four_tools(gateway: Gateway) -> None:
    tools = gateway.ask("tools/list")["result"]["tools"]
    assert [entry["name"] for entry in tools] == [
        "list_mcp_servers",
        "inspect_mcp_server",
        "list_mcp_tools",
        "call_mcp_tool",
    ]
    hints = {entry["name"]: entry["annotations"]["readOnlyHint"] for entry in tools}
    assert hints == {
        "list_mcp_servers": True,
        "inspect_mcp_server": True,
        "list_mcp_tools": True,
        "call_mcp_tool": False,
    }


@pytest.mark.parametrize(("limit", "found", "more"), [(2, 2, True), (3, 3, False), (100, 3, False), (None, 3, False)])
def test_a_search_tells_whether_there_are_more(
    place: Place, gateway: Gateway, boards: Scripted, limit: int | None, found: int, more: bool
) -> None:
    place.grant("read mcp_server:*")
    answer = gateway.tool("list_mcp_servers", text="BOARD", limit=limit).done
    assert [server["server_id"] for server in answer["servers"]] == ["board-a", "board-b", "board-c"][:found]
    assert answer["has_more"] is more
    assert boards.untouched


@pytest.mark.parametrize("effect", ["deny", "ask"])
def test_a_search_shows_only_what_may_be_inspected(
    place: Place, gateway: Gateway, boards: Scripted, effect: str
) -> None:
    place.policy({"agent": {"allow": ["read mcp_server:*"], effect: ["read mcp_server:board-a"]}})
    for text, limit, names, more in (
        ("board", 1, ["board-b"], True),
        ("board", 2, ["board-b", "board-c"], False),
        ("board-a", None, [], False),
    ):
        answer = gateway.tool("list_mcp_servers", text=text, limit=limit).done
        assert ([server["server_id"] for server in answer["servers"]], answer["has_more"]) == (names, more)
    inspected = gateway.tool("inspect_mcp_server", server_id="board-a").kind
    assert inspected == {"deny": "denied", "ask": "pending"}[effect]


def test_what_a_search_shows_is_what_an_inspection_shows(place: Place, gateway: Gateway, boards: Scripted) -> None:
    place.grant("read mcp_server:*")
    (listed,) = gateway.tool("list_mcp_servers", text="board-b").done["servers"]
    assert listed == gateway.tool("inspect_mcp_server", server_id="board-b").done["server"]


@pytest.mark.parametrize("limit", [0, -1, 101, 1.5, "2", True])
def test_a_limit_is_never_lowered_or_made_to_fit(place: Place, gateway: Gateway, boards: Scripted, limit: Any) -> None:
    place.grant("read mcp_server:*")
    assert gateway.tool("list_mcp_servers", limit=limit).kind == "invalid_input"


def test_who_may_read_one_server_may_not_search(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    place.grant("read mcp_server:calendar")
    assert gateway.tool("list_mcp_servers").kind == "denied"
    assert gateway.tool("inspect_mcp_server", server_id="calendar").done["server"]["server_id"] == "calendar"


def test_an_inspection_shows_the_registration(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    place.grant("read mcp_server:calendar")
    server = gateway.tool("inspect_mcp_server", server_id="calendar").done["server"]
    assert set(server) == SERVER
    assert server["schema_version"] == 1
    assert server["transport"] == {"type": "stdio", **calendar.stdio(), "env": {}, "cwd": None}
    assert re.fullmatch(r"mcp_stdio:[0-9a-f]{64}", server["stdio_authority_resource"])
    assert re.fullmatch(r"[0-9a-f]{64}", server["digest"])
    limits = {name: server[name] for name in ("timeout_s", "max_request_bytes", "max_response_bytes", "concurrency")}
    assert limits == {
        "timeout_s": 10,
        "max_request_bytes": 65_536,
        "max_response_bytes": 1_048_576,
        "concurrency": 4,
    }
    assert (server["page_limit"], server["generation"], server["metadata"]) == (16, 1, {})
    get, put = server["tools"]
    assert set(get) == set(put) == TOOL
    assert (get["tool_id"], get["mcp_name"], get["resource"]) == ("event_get", "cal.get", "mcp:calendar:event_get")
    assert (put["right"], put["resource"], put["state_mutation"]) == ("write", "mcp:calendar:event_put", True)
    assert (get["input_schema"], put["input_schema"]) == (GET_SCHEMA, PUT_SCHEMA)
    assert (get["rollback_status"], put["rollback_status"]) == ("not_required", "not_supported")
    assert calendar.untouched


def test_a_server_that_may_not_be_read_is_denied_whether_it_exists_or_not(
    place: Place, gateway: Gateway, calendar: Scripted
) -> None:
    place.grant("read mcp_server:other")
    for name in ("inspect_mcp_server", "list_mcp_tools"):
        known = gateway.tool(name, server_id="calendar").refusal
        unknown = gateway.tool(name, server_id="ghost").refusal
        assert known["kind"] == "denied"
        assert str(known).replace("calendar", "ghost") == str(unknown)
        assert gateway.tool(name, server_id="other").kind == "not_found"


def test_neither_address_nor_secret_of_a_server_is_shown(place: Place, gateway: Gateway, remote: ScriptedHttp) -> None:
    header = {"env": "LIBOS_MCP_TOKEN", "prefix": "Bearer ", "suffix": ""}
    place.add(http_manifest(remote, "shown-remote", headers={"Authorization": header}))
    place.grant("read mcp_server:*")
    server = gateway.tool("inspect_mcp_server", server_id="shown-remote").done["server"]
    assert server["transport"] == {"type": "streamable_http", "url": None, "headers": {"Authorization": header}}
    assert server["stdio_authority_resource"] is None
    assert remote.url not in str(server)
    for text in (str(remote.port), "127.0.0.1", "LIBOS_MCP_TOKEN"):
        found = gateway.tool("list_mcp_servers", text=text).done["servers"]
        assert "shown-remote" not in [entry["server_id"] for entry in found]


def test_the_registered_tools_are_told_without_contacting_anything(
    place: Place, gateway: Gateway, calendar: Scripted
) -> None:
    place.grant("read mcp_server:calendar")
    answer = gateway.tool("list_mcp_tools", server_id="calendar").done
    assert (answer["server_id"], answer["transport"]) == ("calendar", "stdio")
    assert (answer["refreshed"], answer["response_bytes"]) == (False, 0)
    assert [entry["tool_id"] for entry in answer["tools"]] == ["event_get", "event_put"]
    assert all(set(entry) == TOOL for entry in answer["tools"])
    assert calendar.untouched


@pytest.mark.parametrize(
    "missing", ["read mcp_server:calendar", "execute mcp_server:calendar", "write process:spawn", "execute mcp_stdio:*"]
)
def test_a_refresh_needs_each_of_its_rights(place: Place, gateway: Gateway, calendar: Scripted, missing: str) -> None:
    needed = ["read mcp_server:calendar", "execute mcp_server:calendar", "write process:spawn", "execute mcp_stdio:*"]
    kept = [right for right in needed if right != missing]
    more = ["read mcp:*", "write mcp:*", "execute mcp:*", "admin mcp_server:*", "write mcp_server:*"]
    place.policy({"agent": {"allow": [*kept, *more], "ask": [], "deny": []}})
    assert gateway.tool("list_mcp_tools", server_id="calendar", refresh=True).kind == "denied"
    assert calendar.untouched
    place.policy({"agent": {"allow": needed, "ask": [], "deny": []}})
    assert gateway.tool("list_mcp_tools", server_id="calendar", refresh=True).done["refreshed"] is True
    assert calendar.counts == (1, 1, 0)


def test_a_refresh_shows_what_is_live_beside_what_is_registered(
    place: Place, gateway: Gateway, calendar: Scripted
) -> None:
    place.grant("read mcp_server:calendar", "execute mcp_server:calendar")
    other = {"name": "cal.secret", "inputSchema": {"type": "object"}}
    changed = {**LIVE_PUT, "inputSchema": {**PUT_SCHEMA, "title": "Put"}, "description": "bad\u202etext\u0007"}
    calendar.tell(tools=[other, changed, LIVE_GET])
    answer = gateway.tool("list_mcp_tools", server_id="calendar", refresh=True).done
    assert answer["refreshed"] is True
    assert answer["response_bytes"] > 0
    get, put = answer["tools"]
    assert get["live"] == {
        "name": "cal.get",
        "description": "Reads an event.",
        "input_schema": GET_SCHEMA,
        "schema_matches_manifest": True,
    }
    assert put["live"]["schema_matches_manifest"] is False
    assert put["live"]["input_schema"]["title"] == "Put"
    assert put["input_schema"] == PUT_SCHEMA
    assert "\u202e" not in put["live"]["description"]
    assert "\u0007" not in put["live"]["description"]
    assert "cal.secret" not in str(answer)


def test_a_tool_that_is_gone_has_no_live_part(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    place.grant("read mcp_server:calendar", "execute mcp_server:calendar")
    before = gateway.tool("inspect_mcp_server", server_id="calendar").done
    calendar.tell(tools=[LIVE_GET])
    get, put = gateway.tool("list_mcp_tools", server_id="calendar", refresh=True).done["tools"]
    assert "live" in get
    assert "live" not in put
    assert gateway.tool("inspect_mcp_server", server_id="calendar").done == before


def test_the_schema_of_an_unpinned_tool_matches_whatever_it_is(
    place: Place, gateway: Gateway, own_upstream: Scripted
) -> None:
    place.add(manifest(own_upstream, "unpinned", [tool(GET, input_schema={})]))
    place.grant("read mcp_server:unpinned", "execute mcp_server:unpinned")
    (get,) = gateway.tool("list_mcp_tools", server_id="unpinned", refresh=True).done["tools"]
    assert get["input_schema"] == {}
    assert get["live"]["schema_matches_manifest"] is True
    assert get["live"]["input_schema"] == GET_SCHEMA


@pytest.mark.parametrize("deed", ["die because of s3cret-reason", "garbage", "binary", "array"])
def test_a_refresh_that_fails_is_refused_as_a_whole(
    place: Place, gateway: Gateway, calendar: Scripted, deed: str
) -> None:
    place.grant("read mcp_server:calendar", "execute mcp_server:calendar")
    calendar.tell(deeds={"tools/list": deed})
    refusal = gateway.tool("list_mcp_tools", server_id="calendar", refresh=True).refusal
    assert refusal["kind"] == "unavailable"
    assert "s3cret" not in str(refusal)
    assert "s3cret" not in gateway.log.read_text()


def test_an_approval_to_call_gives_no_refresh(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    place.grant("read mcp_server:calendar", ask=["write mcp:calendar:*", "read mcp:calendar:*"])
    assert gateway.tool("list_mcp_tools", server_id="calendar", refresh=True).kind == "denied"
    assert calendar.untouched


def test_a_refresh_can_be_asked_for(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    place.grant("read mcp_server:calendar", ask=["execute mcp_server:calendar"])
    approval = gateway.tool("list_mcp_tools", server_id="calendar", refresh=True).approval
    assert approval["rights"] == ["execute mcp_server:calendar"]
    assert calendar.untouched
    place.approve(approval)
    assert gateway.tool("list_mcp_tools", server_id="calendar", refresh=True).done["refreshed"] is True
    assert gateway.tool("list_mcp_tools", server_id="calendar", refresh=True).kind == "pending"
    assert calendar.counts == (1, 1, 0)


def test_the_folder_of_the_state_is_its_owners_alone(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    paths: list[Path] = [place.state, *place.state.rglob("*")]
    assert {path.name: path.stat().st_mode & 0o077 for path in paths if path.stat().st_mode & 0o077} == {}
