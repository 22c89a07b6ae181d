"""Manifests for tests: the server `calendar`, over stdio or HTTP, with whatever a test changes in it."""

from __future__ import annotations

from typing import Any, Final

from verbc.support.manifest import Manifest, read_manifest

ALLOWED: Final = ("SAMPLE_MCP_*",)

EVENT_GET: Final[dict[str, Any]] = {
    "tool_id": "event_get",
    "mcp_name": "cal.get",
    "right": "read",
    "rollback_class": "no_rollback_required",
    "state_mutation": False,
    "information_flow": True,
    "input_schema": {
        "type": "object",
        "properties": {"event_id": {"type": "string"}},
        "required": ["event_id"],
        "additionalProperties": False,
    },
}
EVENT_PUT: Final[dict[str, Any]] = {
    "tool_id": "event_put",
    "mcp_name": "cal.put",
    "right": "write",
    "rollback_class": "irreversible",
    "state_mutation": True,
    "information_flow": True,
    "input_schema": {"type": "object"},
    "read_back": "event_get",
}
STDIO: Final[dict[str, Any]] = {"command": "python3", "args": ["-m", "calendar_server"]}
HTTP: Final[dict[str, Any]] = {
    "url": "https://calendar.example.org/mcp?zone=eu",
    "headers": {"Authorization": {"env": "SAMPLE_MCP_TOKEN", "prefix": "Bearer "}},
}


def over_stdio(**changes: Any) -> dict[str, Any]:
    """The manifest as somebody writes it; a change to None takes the member away."""
    return _changed({"server_id": "calendar", "transport": "stdio", "stdio": STDIO, **_TOOLS}, changes)


def over_http(**changes: Any) -> dict[str, Any]:
    """The same over HTTP."""
    return _changed({"server_id": "calendar", "transport": "streamable_http", "http": HTTP, **_TOOLS}, changes)


def a_tool(**changes: Any) -> dict[str, Any]:
    """A tool that reads."""
    return _changed(EVENT_GET, changes)


def getter(tool_id: str, **members: Any) -> dict[str, Any]:
    """A tool `get_<tool_id>` that reads, without a schema."""
    return {**a_tool(tool_id=tool_id, mcp_name=f"get_{tool_id}", input_schema=None), **members}


def read(value: Any) -> Manifest:
    """The manifest that a value is."""
    return read_manifest(value, ALLOWED)


_TOOLS: Final[dict[str, Any]] = {"tools": [EVENT_GET, EVENT_PUT]}


def _changed(value: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in {**value, **changes}.items() if item is not None}
