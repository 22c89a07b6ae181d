"""The least that a server on the MCP SDK can be: one literal tool, and answers that lie ready."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

TOOL = types.Tool(name="request", description="Answers what it was given to answer.", input_schema={"type": "object"})


def read_answers(path: Path) -> dict[str, types.CallToolResult]:
    """The results in a file of `[arguments, result]` pairs, by their arguments as text."""
    pairs = json.loads(path.read_bytes())
    return {key_of(arguments): types.CallToolResult.model_validate(result) for arguments, result in pairs}


def key_of(arguments: object) -> str:
    return json.dumps(arguments, sort_keys=True)


def create_server(answers: dict[str, types.CallToolResult]) -> Server[Any]:
    async def list_tools(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[TOOL])

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        return answers[key_of(params.arguments)]

    return Server("bare", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve(server: Server[Any]) -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(serve, create_server(read_answers(Path(sys.argv[1])) if sys.argv[1:] else {}))
