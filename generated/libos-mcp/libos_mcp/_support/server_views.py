"""What callers are shown of a registration: never an address, never a value of the environment."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from .foreign_text import short_value
from .manifest import Http, Manifest, Stdio, Tool
from .moments import as_text

if TYPE_CHECKING:
    from .registration_record import Registration

# More than any manifest has, so nothing of one is ever cut.
_CHARACTERS: Final = 1 << 24
# What is not ASCII, or a control character other than a line break or tab, as JSON has it.
_NOT_PLAIN = re.compile(r"\\[ubfr]|\x7f")


def server_view(registration: Registration) -> dict[str, Any]:
    """A registered server, in the type `Server` of the gateway's operations. It must have a usable manifest."""
    manifest = registration.manifest
    if manifest is None:
        raise ValueError("There is no manifest to show.")
    view = {
        "schema_version": manifest.schema_version,
        "server_id": manifest.server_id,
        "transport": _transport(manifest),
        "stdio_authority_resource": manifest.transport.authority if isinstance(manifest.transport, Stdio) else None,
        "tools": [_tool(manifest.server_id, tool) for tool in manifest.tools],
        "timeout_s": manifest.timeout_s,
        "max_request_bytes": manifest.max_request_bytes,
        "max_response_bytes": manifest.max_response_bytes,
        "concurrency": manifest.concurrency,
        "page_limit": manifest.page_limit,
        "metadata": manifest.metadata,
        "digest": registration.digest,
        "generation": registration.generation,
        "registered_by": registration.registered_by,
        "created_at": as_text(registration.created_at, "milliseconds"),
        "updated_at": as_text(registration.updated_at, "milliseconds"),
    }
    return _escaped(view)


def tool_view(server_id: str, tool: Tool) -> dict[str, Any]:
    """A registered tool, in the type `Tool` of the gateway's operations, without what the live one is like."""
    return _escaped(_tool(server_id, tool))


def _tool(server_id: str, tool: Tool) -> dict[str, Any]:
    return {
        "tool_id": tool.tool_id,
        "mcp_name": tool.mcp_name,
        "right": tool.right,
        "resource": f"mcp:{server_id}:{tool.tool_id}",
        "rollback_class": tool.rollback_class,
        "rollback_status": tool.effective_rollback_status,
        "state_mutation": tool.state_mutation,
        "information_flow": tool.information_flow,
        "input_schema": tool.input_schema,
        "unpinned_mutation": tool.unpinned_mutation,
        "read_back": tool.read_back,
        "metadata": tool.metadata,
    }


def _transport(manifest: Manifest) -> dict[str, Any]:
    if isinstance(manifest.transport, Http):
        headers = manifest.transport.data["headers"]
        return {"type": "streamable_http", "url": None, "headers": headers}
    stdio = manifest.transport
    return {
        "type": "stdio",
        "command": stdio.command,
        "args": list(stdio.args),
        "env": {child: {"env": name} for child, name in stdio.env.items()},
        "cwd": stdio.cwd,
    }


def _escaped(view: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(view)
    # Most of them hold nothing that would be escaped, and a copy is made sooner than every text is looked at.
    escaped: dict[str, Any] = short_value(view, _CHARACTERS) if _NOT_PLAIN.search(text) else json.loads(text)
    return escaped
