"""The least that a server over HTTP on the MCP SDK can be: one literal tool, its answer ready, and the SDK's own check of keys."""

import hashlib
import os
from typing import Any

import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl
from starlette.applications import Starlette

from .http_messages import STRUCTURED, TOOL
from .http_peers import serve

_SCHEMA = {
    "type": "object",
    "properties": {"note": {"type": "string"}},
    "required": ["note"],
    "additionalProperties": False,
}
_NOOP = types.Tool(name=TOOL, description="Does nothing.", input_schema=_SCHEMA)
_ANSWER = types.CallToolResult(
    content=[types.TextContent(type="text", text='{"done":true}')], structured_content=STRUCTURED, is_error=False
)


class _Keys:
    """Knows one key, by its digest."""

    def __init__(self, key: str) -> None:
        self._known = {_digest(key): "benchmark"}

    async def verify_token(self, token: str) -> AccessToken | None:
        subject = self._known.get(_digest(token))
        return None if subject is None else AccessToken(token=token, client_id=subject, scopes=[], subject=subject)


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def create_app(key: str) -> Starlette:
    async def list_tools(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_NOOP])

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        return _ANSWER

    # With the schema at hand, the SDK does not list the tools for each call of the newer revision.
    server = Server[Any](
        "bare",
        version="1",
        get_tool_input_schema={TOOL: _SCHEMA}.get,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    url = AnyHttpUrl("http://127.0.0.1/mcp")
    return server.streamable_http_app(
        json_response=True,
        stateless_http=True,
        auth=AuthSettings(issuer_url=url, resource_server_url=None, required_scopes=None),
        token_verifier=_Keys(key),
    )


if __name__ == "__main__":
    serve(create_app(os.environ["BENCHMARK_KEY"]))
