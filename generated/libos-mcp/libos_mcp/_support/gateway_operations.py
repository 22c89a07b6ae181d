"""The operations of the gateway, as the generated functions call them: servers, server, tools and call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from .backend import Plan
from .call import Call
from .foreign_text import escaped
from .gateway_plan import Bound, no_server
from .gateway_registry import GatewayRegistry
from .result_projection import Projected
from .server_views import server_view, tool_view
from .upstream_call import Order, UpstreamCalls
from .upstream_ends import Ended

if TYPE_CHECKING:
    from .manifest import Manifest
    from .registration_record import Registration

_Json = dict[str, Any]

# Fixed texts, by the type of what went wrong; most types say enough by their names.
_MESSAGES: Final[Mapping[str, str]] = {
    "mcp_error": "The tool says itself that it ended in an error.",
    "response_too_large": "The result has more bytes than the registration allows.",
    "McpStdioFrameTooLarge": "A message of the server has more bytes than the registration allows.",
    "McpStdioStdoutTooLarge": "The server has printed more than the registration allows.",
    "McpStdioStderrTooLarge": "The server has logged more than the registration allows.",
    "McpHttpResponseTooLarge": "A reply of the server has more bytes than the registration allows.",
    "McpHttpSseFrameTooLarge": "A message of the server has more bytes than the registration allows.",
    "McpHttpOperationTooLarge": "The replies of the server have more bytes than the registration allows.",
    "McpHttpContentEncodingDenied": "The server has compressed its reply though it must not.",
    "LiveToolValidationError": "The server does not offer the tool as it is registered; nothing was called.",
    "RegistrationChanged": "The registration has changed meanwhile; nothing was called.",
}


class GatewayOperations:
    """What can be done for one call, as `plan` has it; a search finds at most `most` servers."""

    def __init__(self, plan: Plan, registry: GatewayRegistry, calls: UpstreamCalls, most: int) -> None:
        self._plan = plan
        self._registry = registry
        self._calls = calls
        self._most = most

    async def servers(self, call: Call, *, text: str | None, limit: int | None) -> _Json:
        """Registered servers that hold a text, among those that the caller may look at one by one."""
        found, has_more = await self._registry.search(text, self._most if limit is None else limit, call.may)
        return {"servers": [server_view(registration) for registration in found], "has_more": has_more}

    async def server(self, call: Call, *, server_id: str) -> _Json:
        """One registered server."""
        registration, _ = await self._found(server_id)
        return {"server": server_view(registration)}

    async def tools(self, call: Call, *, server_id: str, refresh: bool) -> _Json:
        """The registered tools of one server, with the live ones beside them after a refresh."""
        live: Mapping[str, _Json] = {}
        response_bytes = 0
        if refresh:
            registration, manifest = self._planned(server_id)
            looked = await self._calls.look(manifest, registration.generation, call, self._plan.evidence)
            live, response_bytes = looked.tools, looked.response_bytes
        else:
            registration, manifest = await self._found(server_id)
        beside = {tool_id: {"live": view} for tool_id, view in live.items()}
        return {
            "server_id": server_id,
            "transport": manifest.transport_kind,
            "tools": [tool_view(server_id, tool) | beside.get(tool.tool_id, {}) for tool in manifest.tools],
            "refreshed": refresh,
            "response_bytes": response_bytes,
        }

    async def call(self, call: Call, *, server_id: str, tool_id: str, arguments: Mapping[str, Any]) -> _Json:
        """Call one registered tool."""
        registration, manifest = self._planned(server_id)
        bound: Bound = self._plan.bound
        tool, guard = bound.tool, self._plan.guard
        if tool is None or guard is None or tool.tool_id != tool_id or bound.arguments != arguments:
            raise ValueError("The function of the verb asks for another call than was planned.")
        order = Order(
            manifest,
            registration.generation,
            tool,
            arguments,
            warm=manifest.warm,
            stands=lambda: self._registry.read(guard),
        )
        ended = await self._calls.call(order, call, self._plan.evidence)
        return {
            "server_id": server_id,
            "tool_id": tool_id,
            "mcp_name": escaped(tool.mcp_name),
            **_told(ended, pinned=tool.pinned),
        }

    def _planned(self, server_id: str) -> tuple[Registration, Manifest]:
        registration: Registration | None = self._plan.bound.registration
        if registration is None or registration.manifest is None or registration.server_id != server_id:
            raise ValueError("The function of the verb asks for another server than was planned.")
        return registration, registration.manifest

    async def _found(self, server_id: str) -> tuple[Registration, Manifest]:
        registration = await self._registry.find(server_id)
        if registration is None or registration.manifest is None:
            raise no_server(server_id, registration)
        return registration, registration.manifest


def _told(ended: Ended, *, pinned: bool) -> _Json:
    ok = ended.status == "ok"
    return {
        "status": ended.status,
        "ok": ok,
        "result": _content(ended.result) if ok else None,
        "error": None if ok else _error(ended),
        "call_started": ended.call_started,
        "schema_protection": "pinned" if pinned else "absent",
        "response_bytes": ended.response_bytes,
        "duration_s": round(ended.seconds, 6),
    }


def _error(ended: Ended) -> _Json:
    error = {"code": ended.code, "error_type": ended.error_type, "correlation_id": ended.correlation_id}
    if (message := _MESSAGES.get(ended.error_type or "")) is not None:
        error["message"] = message
    returned = {name: value for name, value in _content(ended.result).items() if value is not None}
    return {**error, **returned}


def _content(result: Projected | None) -> _Json:
    return {} if result is None else {"content": result.content, "structured_content": result.structured}
