"""Calls one tool of a registered server through libos-mcp, and prints what came of it.

    python call.py SERVER TOOL '{"name": "value"}'

It starts libos-mcp as any MCP client does, with the policy and the state of the folder that it is run in. Exits with 0 when
the tool gave a result, and else with 1.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

GATEWAY = StdioServerParameters(
    command="libos-mcp", args=["--policy", "policy.yaml", "--state", "state", "--as", "agent"]
)


async def call(server_id: str, tool_id: str, arguments: dict[str, Any]) -> bool:
    """Make the call, print the result or why there is none, and tell which of both it was."""
    async with Client(stdio_client(GATEWAY)) as client:
        words = {"server_id": server_id, "tool_id": tool_id, "arguments": arguments}
        answer = (await client.call_tool("call_mcp_tool", words)).structured_content
    assert answer is not None, "All answers of libos-mcp have structured content."
    if "status" not in answer:
        print(_refused(**answer["error"]))
        return False
    print(f"{answer['status']}: {json.dumps(_given(answer['result']) if answer['ok'] else answer['error'])}")
    return bool(answer["ok"])


def _refused(kind: str, message: str, detail: dict[str, Any] | None = None) -> str:
    approval = (detail or {}).get("approval")
    return f"{kind}: {message}" + (f" It is {approval['id']}." if approval else "")


def _given(result: dict[str, Any]) -> Any:
    """What a tool gives is blocks for people, and with many tools a value for programs as well."""
    return result.get("structured_content") or result["content"]


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(0 if asyncio.run(call(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))) else 1)
