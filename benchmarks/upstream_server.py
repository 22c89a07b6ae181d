"""An upstream MCP server on the SDK with one tool, which does next to nothing."""

from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext

from .bare_server import serve

NAME = "note.get"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"note_id": {"type": "string", "description": "Id of the note."}},
    "required": ["note_id"],
    "additionalProperties": False,
}


def create_server() -> Server[Any]:
    async def list_tools(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name=NAME, description="One note.", input_schema=SCHEMA)])

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        note = {"note_id": (params.arguments or {})["note_id"], "text": "Water the plants."}
        return types.CallToolResult(content=[], structured_content=note)

    return Server("notes", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


if __name__ == "__main__":
    anyio.run(serve, create_server())
