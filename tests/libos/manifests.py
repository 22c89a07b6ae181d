"""Manifests: the calendar of the tests, whole or with parts exchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .http_upstream import ScriptedHttp
from .scripted import GET_SCHEMA, PUT_SCHEMA, Json, Scripted

GET: Json = {
    "tool_id": "event_get",
    "mcp_name": "cal.get",
    "right": "read",
    "rollback_class": "no_rollback_required",
    "state_mutation": False,
    "information_flow": True,
    "input_schema": GET_SCHEMA,
}
PUT: Json = {
    "tool_id": "event_put",
    "mcp_name": "cal.put",
    "right": "write",
    "rollback_class": "irreversible",
    "state_mutation": True,
    "information_flow": True,
    "input_schema": PUT_SCHEMA,
}
TOOLS: tuple[Json, ...] = (GET, PUT)


def tool(kind: Mapping[str, Any], **more: Any) -> Json:
    """A registered tool with some fields exchanged."""
    return {**kind, **more}


def manifest(
    upstream: Scripted,
    server_id: str = "calendar",
    tools: Sequence[Mapping[str, Any]] = TOOLS,
    *,
    env: Mapping[str, str] | None = None,
    **more: Any,
) -> Json:
    """The calendar over stdio; `env` are variables of the child by names here."""
    return {
        "server_id": server_id,
        "transport": "stdio",
        "stdio": upstream.stdio(env),
        "tools": [dict(entry) for entry in tools],
        **more,
    }


def http_manifest(
    upstream: ScriptedHttp,
    server_id: str = "remote",
    tools: Sequence[Mapping[str, Any]] = TOOLS,
    *,
    headers: Mapping[str, Json] | None = None,
    **more: Any,
) -> Json:
    """The same over HTTP."""
    return {
        "server_id": server_id,
        "transport": "streamable_http",
        "http": upstream.http(**(headers or {})),
        "tools": [dict(entry) for entry in tools],
        **more,
    }
