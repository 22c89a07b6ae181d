"""How manifests differ, and how the tools of a server differ from those that are registered: as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import unified_diff
from typing import Any

from .manifest import Manifest
from .manifest_schema import same_schema
from .manifest_tools import Tool
from .printing import json_lines
from .quoting import listed, quoted, shown

LiveTools = Mapping[str, Mapping[str, Any]]  # what a server lists, by the names there


def manifest_difference(old: Manifest | None, new: Manifest | None, old_name: str, new_name: str) -> list[str]:
    """A unified diff of two manifests as JSON; nothing where they are the same. None is one that is not there."""
    if old is not None and new is not None and old.digest == new.digest:
        return []
    return _difference(None if old is None else old.data, None if new is None else new.data, old_name, new_name)


def live_difference(manifest: Manifest, live: LiveTools) -> list[str]:
    """What of the registered tools is not offered like that, each with a diff; and the names that nobody registered."""
    lines = [line for tool in manifest.tools for line in _tool_difference(tool, live.get(tool.mcp_name))]
    return lines + _further(manifest, live)


def schema_difference(manifest: Manifest, live: LiveTools) -> list[str]:
    """What pinning the live schemas would change, each tool with a diff; nothing for tools that are not offered."""
    lines = []
    for tool, schema in _offered(manifest, live):
        if not same_schema(schema, tool.input_schema):
            lines += _schema_difference(tool, schema)
    return lines


def unpinnable(manifest: Manifest, live: LiveTools) -> list[str]:
    """Why the live schemas cannot be pinned: tools that are not offered, or without a schema though one is registered.

    Names follow that nobody registered: one of them may be meant.
    """
    lines = [line for tool in manifest.tools for line in _missing(tool, live.get(tool.mcp_name))]
    return lines and lines + _further(manifest, live)


def pinned(manifest: Manifest, live: LiveTools) -> Any:
    """The manifest, as a JSON value, with the schemas that are offered in the place of those that are registered."""
    schemas = {tool.tool_id: schema for tool, schema in _offered(manifest, live)}
    tools = [replace(tool, input_schema=schemas.get(tool.tool_id, tool.input_schema)) for tool in manifest.tools]
    return {**manifest.data, "tools": [tool.data for tool in tools]}


def _missing(tool: Tool, offered: Mapping[str, Any] | None) -> list[str]:
    if offered is None:
        return [_not_there(tool)]
    if tool.pinned and not offered.get("inputSchema"):
        return [f"{quoted(tool.tool_id)}: the server has no schema for {quoted(tool.mcp_name)} now."]
    return []


def _not_there(tool: Tool) -> str:
    return f"{quoted(tool.tool_id)}: the server has no tool {quoted(tool.mcp_name)} now."


def _further(manifest: Manifest, live: LiveTools) -> list[str]:
    registered = {tool.mcp_name for tool in manifest.tools}
    further = sorted(name for name in live if name not in registered)
    return [f"Not registered: {listed(further)}."] if further else []


def _offered(manifest: Manifest, live: LiveTools) -> Iterator[tuple[Tool, Any]]:
    for tool in manifest.tools:
        if tool.mcp_name in live:
            yield tool, live[tool.mcp_name].get("inputSchema") or {}


def _tool_difference(tool: Tool, offered: Mapping[str, Any] | None) -> list[str]:
    if offered is None:
        return [_not_there(tool)]
    schema = offered.get("inputSchema") or {}
    if not tool.pinned:
        return [f"{quoted(tool.tool_id)}: no schema is registered."] if schema else []
    return [] if same_schema(schema, tool.input_schema) else _schema_difference(tool, schema)


def _schema_difference(tool: Tool, schema: Any) -> list[str]:
    name = shown(tool.tool_id)
    return _difference(tool.input_schema, schema, f"{name} as registered", f"{name} as offered now")


def _difference(old: Any, new: Any, old_name: str, new_name: str) -> list[str]:
    before, after = ([] if value is None else json_lines(value) for value in (old, new))
    return [*unified_diff(before, after, old_name, new_name, lineterm="")]
