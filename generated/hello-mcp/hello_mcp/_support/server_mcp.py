"""From a registry and its backends to a server of the MCP SDK, which speaks every version of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.server import CacheHint, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import X_MCP_HEADER_KEY

from . import log
from .admission import Admission
from .backend import Backend, Closing
from .call import LOCAL, Caller
from .consent import Consent, Consents, InputRequiredError
from .execution import Governing
from .offering_server import OfferingServer
from .protocols import Offer
from .refusal import Refusal
from .registry import Registry
from .surface import Surface, ToolCall, UnknownToolError, compact_json, refused_answer
from .surface_request import RequestSurface
from .surface_tools import ToolsSurface

SURFACES: Final[Mapping[str, Callable[[Registry, Admission], Surface]]] = {
    "tools": ToolsSurface,
    "request": RequestSurface,
}

McpServer: TypeAlias = OfferingServer

# The tools change only with the server itself, so a client may keep them for a while.
_FRESH = CacheHint(ttl_ms=300_000, scope="public")


def build_server(
    registry: Registry,
    backends: Mapping[str, Backend],
    surface: str | None = None,
    caller: Caller = LOCAL,
    governing: Governing | None = None,
    consents: Consents | None = None,
) -> McpServer:
    """A server that shows the verbs of `registry` on a surface: `tools`, `request`, or None for the registry's own.

    `caller` is who calls where the transport does not tell: under stdio. An HTTP request tells it in its state.
    `governing` decides what callers may do, where a policy is to; else scopes do, or nothing. `consents` are the ways to
    ask the users of clients, where the policy lets their word count.
    """
    shown = SURFACES[surface or registry.surface](registry, Admission(registry, backends, governing))
    handlers = _Handlers(shown, caller, consents)
    identity = registry.server
    server = OfferingServer(
        Offer.of(registry),
        identity.name,
        version=identity.version,
        title=identity.title,
        description=identity.summary,
        instructions=identity.instructions,
        cache_hints={"tools/list": _FRESH, "server/discover": _FRESH},
        get_tool_input_schema=_HeaderSchemas(shown),
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
    )
    server.middleware.append(_name_no_method)
    # What governs comes last: it puts on record how the others ended.
    for part in (*backends.values(), governing):
        if isinstance(part, Closing):
            server.close_with(part.close)
    return server


class _HeaderSchemas:
    """The schemas of tools with arguments that also stand in headers. At the others the SDK need not look."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._known: dict[int, tuple[dict[str, Any], bool]] = {}  # by identity, which lasts as long as the object does

    def __call__(self, tool: str) -> dict[str, Any] | None:
        schema = self._surface.input_schema(tool)
        if schema is None:
            return None
        if (known := self._known.get(id(schema))) is None:
            known = self._known[id(schema)] = (schema, f'"{X_MCP_HEADER_KEY}"' in compact_json(schema))
        return schema if known[1] else None


class _Handlers:
    """What the SDK calls. Both methods return wire forms, which it checks and sends."""

    def __init__(self, surface: Surface, caller: Caller, consents: Consents | None) -> None:
        self._surface = surface
        self._caller = caller
        self._consents = consents
        self._list = _complete({"tools": surface.tools()})

    async def list_tools(self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None) -> Any:
        if params is not None and params.cursor is not None:
            raise MCPError(types.INVALID_PARAMS, "There is no such page of tools.")
        return self._list

    async def call_tool(self, context: ServerRequestContext[Any], params: types.CallToolRequestParams) -> Any:
        meta = (context.params or {}).get("_meta")
        try:
            caller = self._who(context)
            call = ToolCall(
                tool=params.name,
                arguments=params.arguments or {},
                meta=meta if isinstance(meta, dict) else {},
                caller=caller,
                report=context.session.report_progress,
                consent=self._consent(context, params, caller),
            )
            return _complete(await self._surface.call(call))
        except InputRequiredError as needed:
            return needed.result
        except UnknownToolError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        except Exception as error:
            # The SDK would send the text of the exception to clients of its older protocol.
            correlation = log.correlation_id()
            log.failure("a request failed", error, correlation_id=correlation)
            message = f"Something went wrong in the server. The server's log has more under {correlation}."
            return _complete(refused_answer(Refusal("internal", message)))

    def _consent(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams, caller: Caller
    ) -> Consent | None:
        return None if self._consents is None else self._consents.of(context, params, caller.subject)

    def _who(self, context: ServerRequestContext[Any]) -> Caller:
        if context.request is None:
            return self._caller
        # Whoever lets requests in has put it there. A request without it is a fault, and never somebody local.
        caller: Caller = context.request.state.caller
        return caller


async def _name_no_method(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Leave out which method is unknown: whoever asked for it knows, and nobody else needs what was sent."""
    try:
        return await call_next(ctx)
    except MCPError as error:
        if error.error.code != types.METHOD_NOT_FOUND:
            raise
        raise MCPError(types.METHOD_NOT_FOUND, "There is no such method.") from None


def _complete(result: dict[str, Any]) -> dict[str, Any]:
    """The protocol of 2026 wants every result to say that it is one; the SDK leaves it out for older clients."""
    return {"resultType": "complete", **result}
