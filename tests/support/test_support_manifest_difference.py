"""Manifests beside each other and beside the live tools: what differs is told per tool, and nothing of it is obeyed."""

from __future__ import annotations

from typing import Any

import pytest

from verbc.support.manifest import Manifest, ManifestError, read_manifest
from verbc.support.manifest_difference import (
    live_difference,
    manifest_difference,
    pinned,
    schema_difference,
    unpinnable,
)

from .manifests import getter

ZONE = {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]}


def manifest(*tools: dict[str, Any], **members: Any) -> Manifest:
    server = {"server_id": "time", "transport": "stdio", "stdio": {"command": "time-server"}, "tools": [*tools]}
    return read_manifest({**server, **members}, [])


def live(**schemas: Any) -> dict[str, dict[str, Any]]:
    return {name: {"name": name, "inputSchema": schema} for name, schema in schemas.items()}


NOW = manifest(getter("now", input_schema=ZONE), getter("zones"))


def test_the_same_manifests_differ_in_nothing() -> None:
    assert manifest_difference(NOW, manifest(*NOW.data["tools"], timeout_s=10.0), "spec", "registered") == []


def test_what_differs_is_a_diff_of_json() -> None:
    lines = manifest_difference(NOW, manifest(*NOW.data["tools"], timeout_s=20), "spec", "registered")
    assert lines[:2] == ["--- spec", "+++ registered"]
    assert [line for line in lines[2:] if line[0] in "+-"] == ['-  "timeout_s": 10,', '+  "timeout_s": 20,']


def test_one_that_is_not_there_differs_in_all() -> None:
    lines = manifest_difference(NOW, None, "spec", "registered")
    assert {line[0] for line in lines[2:] if line[0] in "+-"} == {"-"}
    assert manifest_difference(None, NOW, "spec", "registered")[3] == "+{"


def test_live_tools_that_are_as_registered_differ_in_nothing() -> None:
    reordered = {"required": ["zone"], "properties": {"zone": {"type": "string"}}, "type": "object"}
    assert live_difference(NOW, live(get_now=reordered, get_zones={})) == []


def test_another_schema_is_told_with_a_diff() -> None:
    lines = live_difference(NOW, live(get_now={**ZONE, "title": "Zone"}, get_zones={}))
    assert lines[:2] == ["--- now as registered", "+++ now as offered now"]
    assert [line for line in lines[2:] if line[0] in "+-"] == ['+  "title": "Zone",']


def test_what_is_not_offered_or_not_registered_is_named() -> None:
    assert live_difference(NOW, live(get_zones={"type": "object"}, other={}, another={})) == [
        "`now`: the server has no tool `get_now` now.",
        "`zones`: no schema is registered.",
        "Not registered: `another`, `other`.",
    ]


def test_texts_of_a_server_are_only_shown() -> None:
    hostile = "\x1b[31m\u202e`x"
    lines = live_difference(
        NOW, {**live(get_now={**ZONE, "description": hostile}, get_zones={}), hostile: {"name": hostile}}
    )
    assert lines[-1] == "Not registered: `\\u001b[31m\\u202e'x`."
    assert '+  "description": "\\u001b[31m\\u202e`x",' in lines
    assert all(line.isprintable() for line in lines)


def test_pinning_takes_the_schemas_that_are_offered_and_nothing_else() -> None:
    offered = live(get_now={**ZONE, "title": "Zone"}, get_zones={"type": "object"}, other={"type": "object"})
    changed = read_manifest(pinned(NOW, offered), [])
    assert [dict(one.input_schema) for one in changed.tools] == [{**ZONE, "title": "Zone"}, {"type": "object"}]
    unchanged = {**changed.data, "tools": [{**one, "input_schema": {}} for one in changed.data["tools"]]}
    assert unchanged == {**NOW.data, "tools": [{**one, "input_schema": {}} for one in NOW.data["tools"]]}
    shown = schema_difference(NOW, offered)
    assert [line for line in shown if line.startswith("+++")] == ["+++ now as offered now", "+++ zones as offered now"]
    assert schema_difference(changed, offered) == []


def test_tools_that_are_not_offered_keep_their_schemas_and_are_named() -> None:
    offered = live(get_zones={"type": "object"}, now=ZONE)
    assert unpinnable(NOW, offered) == ["`now`: the server has no tool `get_now` now.", "Not registered: `now`."]
    assert read_manifest(pinned(NOW, offered), []).tools[0].input_schema == ZONE


@pytest.mark.parametrize("schema", [{}, None])
def test_a_tool_that_lost_its_schema_is_none_to_pin(schema: Any) -> None:
    offered = live(get_now=schema, get_zones={})
    assert unpinnable(NOW, offered) == ["`now`: the server has no schema for `get_now` now."]
    assert unpinnable(manifest(getter("now")), offered) == []


def test_a_schema_that_no_manifest_may_have_is_refused() -> None:
    with pytest.raises(ManifestError):
        read_manifest(pinned(NOW, live(get_now={"type": "nonsense"}, get_zones={})), [])
