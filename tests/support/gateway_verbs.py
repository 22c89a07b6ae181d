"""Verbs of a gateway and of one MCP server as the compiler writes them: typed views, functions, and their bindings."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from verbc.support.binding import Binding
from verbc.support.call import Call
from verbc.support.gateway_operations import GatewayOperations
from verbc.support.model import Closed
from verbc.support.refusal import Refusal


class ServersParams(Closed):
    text: str | None = None
    limit: int | None = None


class ServerParams(Closed):
    server_id: str


class ToolsParams(Closed):
    server_id: str
    refresh: bool = False


class CallParams(Closed):
    server_id: str
    tool_id: str
    arguments: dict[str, object] = Field(default_factory=dict)


class EventParams(Closed):
    event: str | None = None


async def servers(gateway: GatewayOperations, params: ServersParams, call: Call) -> object:
    """Search the servers."""
    return await gateway.servers(call, text=params.text, limit=params.limit)


async def server(gateway: GatewayOperations, params: ServerParams, call: Call) -> object:
    """One server."""
    return await gateway.server(call, server_id=params.server_id)


async def tools(gateway: GatewayOperations, params: ToolsParams, call: Call) -> object:
    """Its tools."""
    return await gateway.tools(call, server_id=params.server_id, refresh=params.refresh)


async def call_tool(gateway: GatewayOperations, params: CallParams, call: Call) -> object:
    """Call one."""
    return await gateway.call(call, server_id=params.server_id, tool_id=params.tool_id, arguments=params.arguments)


def event(params: EventParams) -> dict[str, Any]:
    """One event."""
    if params.event == "refused":
        raise Refusal("invalid_input", "There is no such event.")
    return {} if params.event is None else {"event_id": params.event}


def everything() -> dict[str, Any]:
    """Nothing to say."""
    return {}


VERBS = {
    "servers": Binding(servers, ServersParams),
    "server": Binding(server, ServerParams),
    "tools": Binding(tools, ToolsParams),
    "call": Binding(call_tool, CallParams),
    "event": Binding(event, EventParams),
    "change": Binding(event, EventParams),
    "shaped": Binding(event, EventParams),
    "everything": Binding(everything),
}
