"""The same tool on FastMCP, in the environment of that, with its own check of keys."""

import os
from typing import Any

from fastmcp import FastMCP  # type: ignore[import-not-found]  # only where this runs
from fastmcp.server.auth.providers.jwt import StaticTokenVerifier  # type: ignore[import-not-found]

from .http_messages import STRUCTURED
from .http_peers import serve


async def noop(note: str) -> dict[str, bool]:
    """Does nothing."""
    return STRUCTURED


def create_app(key: str) -> Any:
    keys = StaticTokenVerifier({key: {"client_id": "benchmark", "sub": "benchmark", "scopes": []}})
    server = FastMCP("peer", version="1", auth=keys)
    server.tool(noop)
    return server.http_app(path="/mcp", json_response=True, stateless_http=True)


if __name__ == "__main__":
    serve(create_app(os.environ["BENCHMARK_KEY"]))
