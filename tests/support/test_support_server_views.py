"""What callers are shown of registered servers: the declared types, no address, and foreign text escaped."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

import verbc
from verbc.support.foreign_text import escaped
from verbc.support.manifest import Manifest
from verbc.support.registration_record import Registration
from verbc.support.server_views import server_view, tool_view
from verbc.support.strict_json import limited

from .manifests import EVENT_GET, HTTP, STDIO, a_tool, over_http, over_stdio, read

TYPES = yaml.safe_load((Path(verbc.__file__).parent / "operations" / "gateway.yaml").read_text("utf-8"))["types"]
AT = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)


def as_schema(written: Any) -> Any:
    """A schema of the spec language as JSON Schema: names of types written out, objects with properties closed."""
    if isinstance(written, str):
        return as_schema(TYPES[written]) if written in TYPES else {"type": written}
    if not isinstance(written, dict):
        return written
    schema = dict(written)
    if isinstance(schema.get("type"), list):
        schema["type"] = ["null" if name is None else name for name in schema["type"]]
    elif schema.get("type") in TYPES:
        return as_schema(schema["type"])
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            schema[keyword] = as_schema(schema[keyword])
    if "anyOf" in schema:
        schema["anyOf"] = [as_schema(item) for item in schema["anyOf"]]
    if "properties" in schema:
        schema["properties"] = {name: as_schema(item) for name, item in schema["properties"].items()}
        schema.setdefault("additionalProperties", False)
    return schema


def problems(type_name: str, value: Any) -> list[str]:
    validator = jsonschema_rs.Draft202012Validator(as_schema(type_name), validate_formats=True)
    return [error.message for error in validator.iter_errors(value)]


def registered(manifest: Manifest | None, **changes: Any) -> Registration:
    values: dict[str, Any] = {
        "server_id": "calendar",
        "manifest": manifest,
        "digest": manifest.digest if manifest else "0" * 64,
        "generation": 3,
        "suspended": False,
        "origin": "operator",
        "seed_digests": (),
        "registered_by": "operator",
        "created_at": AT,
        "updated_at": AT + timedelta(days=1),
    }
    return Registration(**{**values, **changes})


@pytest.mark.parametrize(
    "written",
    [
        over_stdio(),
        over_http(),
        over_stdio(stdio={**STDIO, "env": {"TOKEN": "SAMPLE_MCP_TOKEN"}, "cwd": "a"}, timeout_s=0.5),
        over_http(http={"url": HTTP["url"]}, metadata={"a": [{"b": None}]}, warm=True),
    ],
)
def test_they_have_the_declared_types(written: dict[str, Any]) -> None:
    manifest = read(written)
    assert problems("Server", server_view(registered(manifest))) == []
    assert problems("Server", server_view(registered(manifest, registered_by=None))) == []
    for tool in manifest.tools:
        assert problems("Tool", tool_view("calendar", tool)) == []


def test_the_oracle_notices_what_is_missing_or_too_much() -> None:
    view = server_view(registered(read(over_stdio())))
    assert problems("Server", {**view, "url": "x"})
    assert problems("Server", {**view, "tools": [{}]})


def test_a_tool_as_it_is_shown() -> None:
    manifest = read(over_stdio(tools=[a_tool(metadata={"team": "a"})]))
    assert tool_view("calendar", manifest.tools[0]) == {
        **EVENT_GET,
        "resource": "mcp:calendar:event_get",
        "rollback_status": "not_required",
        "unpinned_mutation": "refuse",
        "read_back": None,
        "metadata": {"team": "a"},
    }


def test_a_server_as_it_is_shown() -> None:
    manifest = read(over_stdio(stdio={**STDIO, "env": {"TOKEN": "SAMPLE_MCP_TOKEN"}}))
    view = server_view(registered(manifest))
    assert view.pop("tools") == [tool_view("calendar", tool) for tool in manifest.tools]
    assert view == {
        "schema_version": 1,
        "server_id": "calendar",
        "transport": {**STDIO, "type": "stdio", "env": {"TOKEN": {"env": "SAMPLE_MCP_TOKEN"}}, "cwd": None},
        "stdio_authority_resource": manifest.transport.authority,  # type: ignore[union-attr]
        "timeout_s": 10,
        "max_request_bytes": 65_536,
        "max_response_bytes": 1_048_576,
        "concurrency": 4,
        "page_limit": 16,
        "metadata": {},
        "digest": manifest.digest,
        "generation": 3,
        "registered_by": "operator",
        "created_at": "2026-03-04T05:06:07.089Z",
        "updated_at": "2026-03-05T05:06:07.089Z",
    }


def test_an_address_is_not_shown() -> None:
    view = server_view(registered(read(over_http())))
    headers = {"Authorization": {"env": "SAMPLE_MCP_TOKEN", "prefix": "Bearer ", "suffix": ""}}
    assert view["transport"] == {"type": "streamable_http", "url": None, "headers": headers}
    assert view["stdio_authority_resource"] is None
    assert "example.org" not in json.dumps(view)


def test_times_are_told_in_utc() -> None:
    there = AT.astimezone(timezone(timedelta(hours=5)))
    assert server_view(registered(read(over_stdio()), created_at=there))["created_at"] == "2026-03-04T05:06:07.089Z"


@pytest.mark.parametrize("character", [*map(chr, range(256)), "\u202e", "\u2028", "\u200d", "\U000e0001", "\\u202e"])
def test_every_text_is_as_foreign_text_is_shown(character: str) -> None:
    text = f"a{character}b"
    view = server_view(registered(read(over_stdio(metadata={"a": [text], text: 1}))))
    assert view["metadata"] == {"a": [escaped(text)], escaped(text): 1}


def test_what_steers_a_display_is_escaped_wherever_it_stands() -> None:
    odd = "a\u202eb\x1b"
    schema = {"type": "object", "properties": {odd: {"description": odd}}}
    tool = a_tool(mcp_name=odd, input_schema=schema, metadata={odd: [odd]})
    manifest = read(over_stdio(stdio={**STDIO, "args": [odd]}, tools=[tool], metadata={"a": {odd: odd}}))
    view = server_view(registered(manifest))
    shown = json.dumps(view, ensure_ascii=False)
    assert not {"\u202e", "\x1b"} & set(shown)
    assert "\\\\u001b" not in json.dumps(manifest.data, ensure_ascii=False)
    assert shown.count("\\\\u202e") == 8
    assert view["tools"][0]["mcp_name"] == "a\\u202eb\\u001b"


def test_nothing_is_cut_and_the_manifest_stays_as_it_is() -> None:
    manifest = read(over_stdio(metadata={"a": "x" * 500_000}))
    view = server_view(registered(manifest))
    assert view["metadata"] == manifest.metadata
    view["metadata"]["a"] = "changed"
    view["tools"][0]["input_schema"]["type"] = "changed"
    assert read(manifest.data).digest == manifest.digest


def test_the_deepest_manifest_is_still_within_the_limits_of_a_reply() -> None:
    value: dict[str, Any] = {}
    for _ in range(58):
        value = {"a": value}
    manifest = read(over_stdio(tools=[a_tool(metadata=value)]))
    shown = {"servers": [server_view(registered(manifest))], "has_more": False}
    assert limited(shown) is shown


def test_what_is_removed_cannot_be_shown() -> None:
    with pytest.raises(ValueError, match="no manifest"):
        server_view(registered(None))
