"""What a call of an upstream tool costs through a governed gateway, beside the same call made directly."""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any, Final

from mcp import Client, StdioServerParameters

from .client import AnswerError
from .command import main, turns
from .gateway_server import COLD_SERVER, TOOL, WARM_SERVER, Gateway
from .places import LIBOS_MCP, OWN, ROOT, compile_bytecode, require
from .report import TENTHS, TIMES, Target, quotient, table, title
from .upstream_server import NAME

ROUNDS: Final = 10
WARM_CALLS: Final = 40
DIRECT: Final = "SDK client, directly"
OURS: Final = "through libos-mcp"
NOTE: Final = {"note_id": "n1"}
WARM: Final = Target(f"{OURS} / {DIRECT}, warm", (OURS, DIRECT), quotient, TIMES, most=3)
COLD: Final = Target(f"{OURS} / {DIRECT}, cold", (OURS, DIRECT), quotient, TIMES, most=1.2)


def measure(folder: Path, rounds: int) -> None:
    """Call in turns, with sessions that stay and with a new process for each call."""
    require((OWN / "bin" / "python", LIBOS_MCP / "libos_mcp"))
    for place in (OWN, LIBOS_MCP, ROOT / "benchmarks"):
        compile_bytecode(place)
    warm, cold = asyncio.run(_measured(Gateway(folder), rounds))
    title("gateway: from asking the SDK's client for a call to its result, over stdio")
    for how, samples, target in (("warm", warm, WARM), ("cold", cold, COLD)):
        table(samples, TENTHS, f", {how}")
        target.judge(samples)


async def _measured(gateway: Gateway, rounds: int) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    warm: dict[str, list[float]] = {DIRECT: [], OURS: []}
    cold: dict[str, list[float]] = {DIRECT: [], OURS: []}
    async with Client(gateway.upstream) as direct, Client(gateway.server) as ours:
        for _ in turns(rounds):
            warm[DIRECT] += [await _timed_directly(direct) for _ in range(WARM_CALLS)][1:]
            warm[OURS] += [await _timed(ours, WARM_SERVER) for _ in range(WARM_CALLS)][1:]
            cold[DIRECT].append(await _timed_cold(gateway.upstream))
            cold[OURS].append(await _timed(ours, COLD_SERVER))
    return warm, cold


async def _timed_directly(client: Client) -> float:
    began = time.perf_counter()
    result = await client.call_tool(NAME, NOTE)
    seconds = time.perf_counter() - began
    _see_that_it_is_the_note(result.structured_content)
    return seconds


async def _timed_cold(upstream: StdioServerParameters) -> float:
    """A call with a process of its own; that it ends is not counted, as the gateway does not wait for that either."""
    began = time.perf_counter()
    async with Client(upstream) as client:
        result = await client.call_tool(NAME, NOTE)
        seconds = time.perf_counter() - began
    _see_that_it_is_the_note(result.structured_content)
    return seconds


async def _timed(client: Client, server: str) -> float:
    began = time.perf_counter()
    result = await client.call_tool("call_mcp_tool", {"server_id": server, "tool_id": TOOL, "arguments": NOTE})
    seconds = time.perf_counter() - began
    called = result.structured_content or {}
    _see_that_it_is_the_note((called.get("result") or {}).get("structured_content"), called)
    return seconds


def _see_that_it_is_the_note(found: Any, whole: Any = None) -> None:
    if not isinstance(found, dict) or found.get("note_id") != NOTE["note_id"]:
        raise AnswerError(f"the call was answered with {whole or found}")


if __name__ == "__main__":
    sys.exit(main({measure: ROUNDS}))
