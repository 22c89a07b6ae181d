"""What clients of others get to see of a server, in one form; and the Python SDK's own client, which gets to see it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from .peers import Endpoint
from .samples import Call, Sample

ERAS = ("legacy", "modern")  # of the Inspector
MODES = ("legacy", "auto", "2026-07-28")  # of the Python SDK's client


@dataclass(frozen=True, slots=True)
class Seen:
    """The revision that a client and a server settled on, the names of the tools, and the results of calls."""

    revision: str
    tools: tuple[str, ...]
    answers: list[dict[str, Any]]


def answer_of(result: dict[str, Any]) -> Any:
    """The structured content of a result, which its text repeats; the text where there is none."""
    (block,) = result["content"]
    text = block["text"]
    if "structuredContent" not in result:
        return text
    assert json.loads(text) == result["structuredContent"]
    return result["structuredContent"]


def refusal_of(result: dict[str, Any]) -> dict[str, Any]:
    """The refusal that a result is."""
    assert result["isError"] is True, result
    error = answer_of(result)["error"]
    assert set(error) - {"detail"} == {"kind", "message"}
    assert isinstance(error, dict)
    return error


def called(server: Any, mode: str, calls: Sequence[Call]) -> Seen:
    """What the Python SDK's client sees of `server`, which is an endpoint, or whatever else that client takes."""
    return asyncio.run(_over_http(server, mode, calls) if isinstance(server, Endpoint) else _seen(server, mode, calls))


async def _over_http(endpoint: Endpoint, mode: str, calls: Sequence[Call]) -> Seen:
    async with httpx2.AsyncClient(headers=endpoint.headers, trust_env=False) as http:
        return await _seen(streamable_http_client(endpoint.url, http_client=http), mode, calls)


async def _seen(server: Any, mode: str, calls: Sequence[Call]) -> Seen:
    async with Client(server, mode=mode) as client:
        tools = tuple(tool.name for tool in (await client.list_tools()).tools)
        answers = [_wire(await client.call_tool(*call)) for call in calls]
        return Seen(str(client.protocol_version), tools, answers)


def _wire(result: Any) -> dict[str, Any]:
    form: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=False, exclude_unset=True)
    return form


def check(sample: Sample, seen: Seen) -> None:
    """See that the calls of a sample brought what they have to."""
    assert seen.tools == sample.tools
    success, refusal = seen.answers
    assert answer_of(success) == sample.result
    error = refusal_of(refusal)
    assert error["kind"] == sample.kind
    assert sample.message in error["message"]
