"""The SDK's client, connected to a server in the same process."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp import Client, MCPError
from mcp.types import CallToolResult

from verbc.support.registry import Registry
from verbc.support.server_mcp import build_server

from .programs import finish
from .samples import Functions, Work

ERAS = ("legacy", "2026-07-28")


def with_client(
    registry: Registry,
    use: Callable[[Client], Awaitable[Any]],
    *,
    surface: str | None = None,
    era: str = "legacy",
    works: Mapping[str, Work] | None = None,
    variants: Mapping[str, Any] | None = None,
) -> Any:
    """What `use` makes of a client of a server over `Functions`. Raises MCPError for a protocol error in it."""

    async def connected() -> Any:
        backend = Functions(works or {}, variants or {})
        server = build_server(registry, {"local": backend, "li": backend}, surface)
        async with Client(server, mode=era) as client:
            try:
                return await use(client)
            except MCPError as error:
                return error  # raised in here, it would be wrapped by everything it passes

    if isinstance(answer := finish(connected()), MCPError):
        raise answer
    return answer


def call(registry: Registry, tool: str, arguments: Any = None, *, meta: Any = None, **how: Any) -> CallToolResult:
    """The result of one tool call."""

    async def use(client: Client) -> CallToolResult:
        return await client.call_tool(tool, arguments, meta=meta)

    result = with_client(registry, use, **how)
    assert isinstance(result, CallToolResult)
    return result


def text(result: CallToolResult) -> str:
    """The one text of a result."""
    (block,) = result.content
    assert block.type == "text"
    return block.text


def structured(result: CallToolResult) -> Any:
    """What a result holds, after a look whether its text says the same."""
    assert json.loads(text(result)) == result.structured_content
    return result.structured_content
