"""lion-mcp as an MCP server: what it says of itself, and what it does with lines that are no requests."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from .mcp_process import McpProcess
from .mistakes import REFUSALS, WHOLE_CALLS
from .servers import GENERATED, environment, start_ours


def test_the_server_says_who_it_is(server: McpProcess) -> None:
    greeting = server.greeting
    registry = json.loads((GENERATED / "lion_mcp" / "registry.json").read_text())
    assert greeting["serverInfo"]["name"] == "lion"
    assert greeting["serverInfo"]["version"] == registry["server"]["version"] == "0.1.0"
    assert greeting["capabilities"].keys() == {"tools"}
    assert "help" in greeting["instructions"]
    info = server.op("server.info")["result"]
    assert info["server"] == {"name": "lion", "version": "0.1.0", "registry": registry["digest"]}
    assert (info["contract_version"], info["verb_count"], info["absent_verb_count"]) == (1, 44, 26)


def test_there_is_one_small_tool(server: McpProcess) -> None:
    reply = server.ask("tools/list")
    (tool,) = reply["result"]["tools"]
    assert tool["name"] == "request"
    assert tool["inputSchema"]["properties"].keys() == {"ops", "help"}
    assert tool["inputSchema"]["additionalProperties"] is False
    assert "required" not in tool["inputSchema"]
    assert len(json.dumps(reply["result"]["tools"], separators=(",", ":"))) <= 4096


def test_an_unknown_tool_is_a_protocol_error(server: McpProcess) -> None:
    assert server.ask("tools/call", {"name": "nope", "arguments": {}})["error"]["code"] == -32602


@pytest.mark.parametrize(
    "line",
    [
        b"{garbage",
        b"[1, 2",
        b"\xff\xfe",
        b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"x": NaN}}',
        b"nul\0",
    ],
)
def test_what_cannot_be_parsed_is_answered(server: McpProcess, line: bytes) -> None:
    server.send_line(line)
    message = server.receive()
    assert message["error"]["code"] == -32700
    assert server.op("server.info")["ok"]


@pytest.mark.parametrize(
    "value",
    [r'"\ud800"', "1e999", '{"a": 1, "a": 2}', "[" * 5000 + "]" * 5000],
    ids=["lone surrogate", "overflow", "twice", "deep"],
)
def test_what_no_json_value_should_be_is_answered(server: McpProcess, value: str) -> None:
    line = '{"jsonrpc": "2.0", "id": "odd", "method": "tools/call", "params": {"name": "request", "arguments": '
    server.send_line((line + '{"ops": [{"op": "team.show", "args": {"team": ' + value + "}}]}}}").encode())
    message = server.receive()
    assert "error" in message or outline_fails(message)
    assert server.op("server.info")["ok"]


def outline_fails(message: dict[str, Any]) -> bool:
    result = message["result"]
    return bool(result.get("isError")) or not result["structuredContent"]["ops"][0]["ok"]


def test_the_end_of_input_is_the_end_and_stderr_holds_json_lines(lion_mcp: Path, stub: Path, tmp_path: Path) -> None:
    server = start_ours(tmp_path, tmp_path, stub)
    with server:
        for request in [*WHOLE_CALLS.values(), *REFUSALS.values()]:
            server.call(request)
        assert server.close() == 0
    lines = server.log_path.read_text().splitlines()
    assert all(isinstance(json.loads(line), dict) for line in lines)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_sdk_client_is_served_in_both_eras(lion_mcp: Path, stub: Path, tmp_path: Path, mode: Any) -> None:
    variables = environment(tmp_path, {"PYTHONPATH": str(GENERATED), "LIONAGI_MCP_LI_BIN": str(stub)})
    process = StdioServerParameters(command=sys.executable, args=["-m", "lion_mcp"], env=variables, cwd=tmp_path)

    async def talk() -> None:
        async with Client(process, mode=mode) as client:
            (tool,) = (await client.list_tools()).tools
            assert tool.name == "request"
            told = await client.call_tool("request", {"help": True})
            assert told.structured_content is not None
            assert told.structured_content["verb_count"] == 70
            done = await client.call_tool("request", {"ops": [{"op": "runs"}, {"op": "nope"}]})
            assert done.structured_content is not None
            assert [entry["ok"] for entry in done.structured_content["ops"]] == [True, False]
            refused = await client.call_tool("request", {})
            assert refused.is_error
            assert refused.structured_content is not None
            assert refused.structured_content["error"]["kind"] == "invalid_input"

    asyncio.run(talk())
