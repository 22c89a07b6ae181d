"""What the server says of itself, and that nothing of what goes wrong inside it reaches a client."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp import Client, MCPError
from opentelemetry.trace import NoOpTracerProvider

from verbc.support import server_mcp
from verbc.support.call import Call
from verbc.support.registry import Registry, from_data
from verbc.support.surface_tools import ToolsSurface

from .clients import ERAS, call, structured, with_client


@pytest.mark.parametrize("era", ERAS)
def test_the_server_says_who_it_is(registry: Registry, era: str) -> None:
    async def use(client: Client) -> Any:
        return (await client.list_tools()), client.server_info, client.instructions, client.server_capabilities

    listed, info, instructions, capabilities = with_client(registry, use, era=era)
    if era == "legacy":
        assert (info.name, info.version, info.title) == ("sample", "1.2.3", "Sample")
        assert instructions == "Ask for items."
        assert capabilities.tools is not None
        assert (capabilities.prompts, capabilities.resources, capabilities.logging) == (None, None, None)
    else:
        assert (listed.ttl_ms, listed.cache_scope) == (300_000, "public")
        assert listed.meta["io.modelcontextprotocol/serverInfo"]["version"] == "1.2.3"


def test_the_surface_is_the_registrys_unless_told(registry: Registry) -> None:
    async def use(client: Client) -> Any:
        return [tool.name for tool in (await client.list_tools()).tools]

    assert len(with_client(registry, use)) == 6
    assert with_client(registry, use, surface="request") == ["request"]


def test_there_is_one_page_of_tools(registry: Registry) -> None:
    async def use(client: Client) -> Any:
        return await client.list_tools(cursor="2")

    with pytest.raises(MCPError) as caught:
        with_client(registry, use)
    assert caught.value.error.code == -32602


@pytest.mark.parametrize("era", ERAS)
def test_no_text_of_an_exception_leaves_the_server(
    registry: Registry, era: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(self: ToolsSurface, call: Any) -> Any:
        raise RuntimeError("secret")

    monkeypatch.setattr(ToolsSurface, "call", broken)
    result = call(registry, "free", {}, era=era)
    assert result.is_error
    error = structured(result)["error"]
    assert error["kind"] == "internal"
    assert "secret" not in error["message"]
    assert caplog.records[-1].verbc_fields["correlation_id"] in error["message"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("era", ERAS)
def test_progress_reaches_who_asked_for_it(registry: Registry, era: str) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def work(call: Call) -> Any:
        await call.progress(1, 2, "half")
        await call.progress(2, 2)

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async def use(client: Client) -> None:
        await client.call_tool("free", {}, progress_callback=hear)
        await client.call_tool("free", {})

    with_client(registry, use, era=era, works={"free": work})
    assert heard == [(1, 2, "half"), (2, 2, None)]


def test_a_cancelled_call_is_cancelled_once_and_ends_before_the_server_does(registry: Registry) -> None:
    seen: list[str] = []
    started = asyncio.Event()

    async def work(call: Call) -> Any:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            for _ in range(10):  # a second cancellation would break in here
                await asyncio.sleep(0)
            seen.append("cleaned up")
            raise

    async def use(client: Client) -> None:
        waiting = asyncio.create_task(client.call_tool("free", {}))
        await started.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert structured(await client.call_tool("item.show", {"id": "a"})) == {"id": "a"}

    with_client(registry, use, works={"free": work})
    assert seen == ["cancelled", "cleaned up"]


def test_the_schema_of_a_tool_is_known_without_a_list_where_headers_have_to_fit_it(data: dict[str, Any]) -> None:
    data["verbs"][0]["params"]["properties"]["id"]["x-mcp-header"] = "Id"
    server = server_mcp.build_server(from_data(data), {}, "tools")
    assert server.get_tool_input_schema is not None
    for _ in range(2):
        assert server.get_tool_input_schema("item.show") == data["verbs"][0]["params"]
        assert server.get_tool_input_schema("show_item") == data["verbs"][0]["params"]
        assert server.get_tool_input_schema("item.names") is None
        assert server.get_tool_input_schema("nope") is None


def test_messages_are_traced_where_somebody_listens(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[str] = []

    async def trace(self: Any, ctx: Any, call_next: Any) -> Any:
        traced.append(ctx.method)
        return await call_next(ctx)

    monkeypatch.setattr("mcp.server._otel.OpenTelemetryMiddleware.__call__", trace)
    assert not call(registry, "item.show", {"id": "a"}).is_error
    assert traced == []
    monkeypatch.setattr("verbc.support.offering_server.get_tracer_provider", NoOpTracerProvider)
    assert not call(registry, "item.show", {"id": "a"}).is_error
    assert "tools/call" in traced
