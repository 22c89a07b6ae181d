"""libos-mcp over HTTP: the same tools, by the SDK's client in both eras, from several processes that share one state."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from mcp import Client

from .consenting import over_http, reply
from .places import Place
from .processes import HttpGateway
from .scripted import Scripted

ERAS = ("legacy", "2026-07-28")
RIGHTS = ("read mcp:calendar:*", "read mcp_server:*", "execute mcp_server:*")


@pytest.fixture(scope="module")
def served(place: Place) -> Iterator[HttpGateway]:
    with place.serving_http("--workers", "2") as gateway:
        yield gateway


@pytest.fixture(autouse=True)
def rights(place: Place) -> None:
    place.grant(*RIGHTS, ask=["write mcp:*"])


@pytest.mark.parametrize("era", ERAS)
def test_the_tools_are_the_same(served: HttpGateway, calendar: Scripted, era: str) -> None:
    async def use(client: Client) -> None:
        assert len((await client.list_tools()).tools) == 4  # so that results are checked against what is declared
        found = reply(await client.call_tool("list_mcp_servers", {"text": "calendar"})).done
        assert [entry["server_id"] for entry in found["servers"]] == ["calendar"]
        shown = reply(await client.call_tool("inspect_mcp_server", {"server_id": "calendar"})).done
        assert shown["server"] == found["servers"][0]
        tools = reply(await client.call_tool("list_mcp_tools", {"server_id": "calendar", "refresh": True})).done
        assert tools["refreshed"] is True
        call = {"server_id": "calendar", "tool_id": "event_get", "arguments": {"event_id": era}}
        assert reply(await client.call_tool("call_mcp_tool", call)).result["structured_content"]["tool"] == "cal.get"
        calendar.tell(results={"cal.get": {"content": [{"type": "text", "text": "no"}], "isError": True}})
        assert reply(await client.call_tool("call_mcp_tool", call)).called["status"] == "mcp_error"
        calendar.tell(tools=[])
        assert reply(await client.call_tool("call_mcp_tool", call)).called["status"] == "invalid_response"
        assert reply(await client.call_tool("call_mcp_tool", {**call, "tool_id": "nope"})).kind == "not_found"

    over_http(served.url, era, None, use)


@pytest.mark.parametrize("era", ERAS)
def test_an_approved_call_runs_once_whoever_serves_it(
    place: Place, served: HttpGateway, calendar: Scripted, era: str
) -> None:
    call = {"server_id": "calendar", "tool_id": "event_put", "arguments": {"event_id": f"http {era}"}}

    async def use(client: Client) -> None:
        waiting = reply(await client.call_tool("call_mcp_tool", call))
        await asyncio.to_thread(place.approve, waiting.approval)
        replies = [
            reply(result)
            for result in await asyncio.gather(*(client.call_tool("call_mcp_tool", call) for _ in range(6)))
        ]
        assert sorted(one.failed for one in replies) == [False] + [True] * 5
        assert {one.kind for one in replies if one.failed} == {"pending"}

    over_http(served.url, era, None, use)
    assert calendar.count("call") == 1
