"""The SDK's own client over HTTP, in each of its modes, and what a client that goes away does to its call."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
from mcp import Client, MCPError

from verbc.support import http_app, http_gate
from verbc.support.call import Call, Caller
from verbc.support.http_answers import refused
from verbc.support.http_callers import anybody
from verbc.support.http_gate import Entry, Gate
from verbc.support.http_headers import Headers
from verbc.support.http_origins import ServedNames
from verbc.support.protocols import Offer
from verbc.support.registry import Registry, from_data

from .clients import structured
from .http_servers import MODERN, OLDER, HttpThread, calling, initializing, listing, modern, post
from .raw_server import PATIENCE
from .samples import DATA, Work

MODES = ("legacy", "auto", MODERN)
REPLIES = ("json", "stream")
ALL = ("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")


def offering(*revisions: str) -> Registry:
    data = copy.deepcopy(DATA)
    data["serve"]["protocols"] = list(revisions)
    return from_data(data)


def with_client(server: HttpThread, mode: str, use: Callable[[Client], Awaitable[Any]]) -> Any:
    """What `use` makes of the SDK's client. Raises MCPError for a protocol error in it."""

    async def connected() -> Any:
        async with asyncio.timeout(PATIENCE), Client(server.url, mode=mode) as client:
            try:
                return await use(client)
            except MCPError as error:
                return error

    if isinstance(answer := asyncio.run(connected()), MCPError):
        raise answer
    return answer


@pytest.mark.parametrize("replies", REPLIES)
@pytest.mark.parametrize(
    ("revisions", "mode", "settled"),
    [
        (ALL, "legacy", "2025-11-25"),
        (ALL, "auto", MODERN),
        (ALL, MODERN, MODERN),
        ((MODERN, OLDER), "legacy", OLDER),
        ((MODERN, OLDER), "auto", MODERN),
        ((MODERN, OLDER), MODERN, MODERN),
        ((OLDER,), "legacy", OLDER),
        ((OLDER,), "auto", OLDER),
        ((MODERN,), "auto", MODERN),
        (("2025-03-26",), "auto", "2025-03-26"),
    ],
)
def test_each_client_settles_on_what_is_offered(
    replies: str, revisions: Sequence[str], mode: str, settled: str
) -> None:
    async def use(client: Client) -> Any:
        names = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("item.show", {"id": "a"})
        refused = await client.call_tool("item.show", {"id": ""})
        return client.protocol_version, len(names), structured(result), refused.is_error

    with HttpThread(offering(*revisions), replies=replies) as server:
        assert with_client(server, mode, use) == (settled, 6, {"id": "a"}, True)


@pytest.mark.parametrize(("revisions", "mode"), [((MODERN,), "legacy"), ((OLDER,), MODERN)])
def test_a_client_that_shares_no_revision_is_told(revisions: Sequence[str], mode: str) -> None:
    async def use(client: Client) -> Any:
        return await client.list_tools()

    with HttpThread(offering(*revisions)) as server, pytest.raises((MCPError, ExceptionGroup)) as caught:
        with_client(server, mode, use)
    error = caught.value
    while isinstance(error, ExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, MCPError)
    assert error.code == -32022


@pytest.mark.parametrize("replies", REPLIES)
@pytest.mark.parametrize("mode", MODES)
def test_an_unknown_tool_is_an_error_of_the_protocol(replies: str, mode: str) -> None:
    async def use(client: Client) -> Any:
        return await client.call_tool("nope", {})

    with HttpThread(offering(*ALL), replies=replies) as server, pytest.raises(MCPError) as caught:
        with_client(server, mode, use)
    assert caught.value.code == -32602


@pytest.mark.parametrize("replies", REPLIES)
@pytest.mark.parametrize("mode", MODES)
def test_progress_is_told_where_answers_are_streams(replies: str, mode: str) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def work(call: Call) -> Any:
        await call.progress(1, 2, "half")
        await call.progress(2, 2)
        return {}

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async def use(client: Client) -> Any:
        return (await client.call_tool("free", {}, progress_callback=hear)).is_error

    with HttpThread(offering(*ALL), works={"free": work}, replies=replies) as server:
        assert with_client(server, mode, use) is False
    assert heard == ([(1, 2, "half"), (2, 2, None)] if replies == "stream" else [])


class Waiting:
    """Work that waits until it is let go, or cancelled, and says which of the two it was."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.ended = threading.Event()
        self.how = ""
        self._go_on: asyncio.Event
        self._loop: asyncio.AbstractEventLoop

    async def __call__(self, call: Call) -> Any:
        self._loop, self._go_on = asyncio.get_running_loop(), asyncio.Event()
        self.started.set()
        try:
            await self._go_on.wait()
            self.how = "went on"
        except asyncio.CancelledError:
            for _ in range(10):  # a second cancellation would break in here
                await asyncio.sleep(0)
            self.how = "cancelled"
            raise
        finally:
            self.ended.set()
        return {}

    def go_on(self) -> None:
        self._loop.call_soon_threadsafe(self._go_on.set)


def sent(era: str, message: dict[str, Any]) -> bytes:
    return post(modern(message) if era == MODERN else message, revision=era)


@pytest.mark.parametrize("era", [OLDER, MODERN])
def test_a_call_whose_client_has_gone_goes_on(era: str) -> None:
    work = Waiting()
    with HttpThread(offering(*ALL), works={"free": work}, replies="json") as server:
        with server.connect() as connection:
            connection.send(sent(era, calling("free")))
            assert work.started.wait(PATIENCE)
        server.until(lambda: server.connections == 0)
        server.turn()
        assert not work.ended.is_set()
        work.go_on()
        assert work.ended.wait(PATIENCE)
    assert work.how == "went on"


@pytest.mark.parametrize("era", [OLDER, MODERN])
def test_a_call_whose_client_has_gone_is_cancelled_once_where_answers_are_streams(era: str) -> None:
    work = Waiting()
    with HttpThread(offering(*ALL), works={"free": work}, replies="stream") as server:
        with server.connect() as connection:
            connection.send(sent(era, calling("free")))
            assert work.started.wait(PATIENCE)
        assert work.ended.wait(PATIENCE)
    assert work.how == "cancelled"


@pytest.mark.parametrize("replies", REPLIES)
@pytest.mark.parametrize("era", [OLDER, MODERN])
def test_nobody_cancels_what_came_over_another_connection(replies: str, era: str) -> None:
    work = Waiting()
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    with HttpThread(offering(*ALL), works={"free": work}, replies=replies) as server, server.connect() as connection:
        connection.send(sent(era, calling("free", request_id=1)))
        assert work.started.wait(PATIENCE)
        assert server.exchange(sent(era, cancelled)).status == 202
        assert server.post(listing(1)).status == 200
        work.go_on()
        assert connection.reply().status == 200
    assert work.how == "went on"


@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_gives_up_cancels_its_call_where_answers_are_streams(mode: str) -> None:
    work = Waiting()

    async def use(client: Client) -> None:
        waiting = asyncio.create_task(client.call_tool("free", {}))
        await asyncio.to_thread(work.started.wait, PATIENCE)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    with HttpThread(offering(*ALL), works={"free": work}, replies="stream") as server:
        with_client(server, mode, use)
        assert work.ended.wait(PATIENCE)
    assert work.how == "cancelled"


@pytest.mark.parametrize("replies", REPLIES)
@pytest.mark.parametrize("era", [OLDER, MODERN])
def test_what_runs_is_answered_before_the_server_ends(replies: str, era: str) -> None:
    work = Waiting()
    with HttpThread(offering(*ALL), works={"free": work}, replies=replies) as server, server.connect() as connection:
        connection.send(sent(era, calling("free")))
        assert work.started.wait(PATIENCE)
        server.loop.call_soon_threadsafe(server.server.stop)
        work.go_on()
        reply = connection.reply()
        assert reply.status == 200
        assert b"structuredContent" in reply.body
        assert connection.is_over()


@pytest.mark.parametrize("replies", REPLIES)
@pytest.mark.parametrize("era", [OLDER, MODERN])
def test_what_does_not_end_is_cancelled_in_the_end(replies: str, era: str) -> None:
    work = Waiting()
    with HttpThread(offering(*ALL), works={"free": work}, replies=replies) as server, server.connect() as connection:
        connection.send(sent(era, calling("free")))
        assert work.started.wait(PATIENCE)
        server.loop.call_soon_threadsafe(server.server.stop)
        server.move_clock(1)
        assert not work.ended.is_set()
        server.move_clock(30)
        assert work.ended.wait(PATIENCE)
    assert work.how == "cancelled"


@pytest.fixture
def told() -> list[Caller]:
    return []


def telling(told: list[Caller]) -> Mapping[str, Work]:
    async def work(call: Call) -> Any:
        told.append(call.caller)
        return {}

    return {"free": work}


@pytest.mark.parametrize("replies", REPLIES)
@pytest.mark.parametrize("era", [OLDER, MODERN])
def test_each_request_has_its_own_caller(told: list[Caller], replies: str, era: str) -> None:
    async def authenticate(headers: Any) -> Caller:
        (key,) = Headers(headers).values(b"authorization")
        return Caller(key, "account", frozenset({"scope"}))

    with HttpThread(offering(*ALL), works=telling(told), authenticate=authenticate, replies=replies) as server:
        for key in ("a", "b"):
            assert (
                server.exchange(
                    post(
                        modern(calling("free")) if era == MODERN else calling("free"),
                        f"Authorization: {key}",
                        revision=era,
                    )
                ).status
                == 200
            )
    assert told == [Caller(key, "account", frozenset({"scope"})) for key in ("a", "b")]


def test_where_nobody_asks_everybody_is_who_was_named(told: list[Caller]) -> None:
    authenticate = anybody(Caller("me")).authenticate
    with HttpThread(offering(*ALL), works=telling(told), authenticate=authenticate) as server:
        assert server.post(calling("free")).status == 200
    assert told == [Caller("me")]


def test_who_is_not_let_in_is_told_before_anything_of_him_is_read() -> None:
    asked: list[Any] = []

    async def authenticate(headers: Any) -> Caller:
        asked.append(headers)
        raise refused(401, "No.", ((b"www-authenticate", b"Bearer"),))

    with HttpThread(offering(*ALL), authenticate=authenticate) as server:
        for request in (
            post(listing()),
            post(b"{"),
            post(b"", "Content-Length: 999999999", without=["content-length"]),
        ):
            reply = server.exchange(request)
            assert (reply.status, reply.header("www-authenticate")) == (401, "Bearer")
        assert len(asked) == 3
        # Whose request makes no sense to begin with has no reason to show his key.
        assert server.post(listing(), "Origin: null").status == 403
        assert server.exchange(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 405
        assert len(asked) == 3


def test_who_cannot_be_told_is_not_let_in(caplog: pytest.LogCaptureFixture, told: list[Caller]) -> None:
    async def authenticate(headers: Any) -> Caller:
        raise RuntimeError("secret")

    with HttpThread(offering(*ALL), works=telling(told), authenticate=authenticate) as server:
        reply = server.post(calling("free"))
        assert reply.error == (503, -32603)
        assert server.post(initializing(), revision=None).status == 503
    assert "secret" not in reply.body.decode()
    assert "secret" not in caplog.text
    assert told == []


def test_what_goes_on_from_the_gate_has_one_form_and_no_key() -> None:
    seen: list[Any] = []

    async def look(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope, await receive()))

    async def receive() -> Any:
        return {"type": "http.request", "body": json.dumps(listing()).encode(), "more_body": False}

    async def send(message: Any) -> None:
        raise AssertionError(message)

    registry = offering(*ALL)
    http = registry.serve.http
    assert http is not None
    authenticate = anybody(Caller("me")).authenticate
    gate = Gate(look, Entry(http.path, ServedNames(http), Offer.of(registry), authenticate, 1000))
    lines = ["Authorization: Bearer secret", "Cookie: secret", "Mcp-Session-Id: x", "X-Any: secret", "Mcp-Param-A: b"]
    head = post(listing(), *lines).split(b"\r\n\r\n")[0].split(b"\r\n")[1:]
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in head)]
    scope = {"type": "http", "method": "POST", "raw_path": b"/mcp", "headers": headers, "state": {"kept": 1}}
    asyncio.run(gate(scope, receive, send))
    ((passed, message),) = seen
    assert message == asyncio.run(receive())
    assert passed["state"] == {"kept": 1, "caller": Caller("me")}
    assert sorted(passed["headers"]) == [
        (b"accept", b"application/json, text/event-stream"),
        (b"content-type", b"application/json"),
        (b"mcp-param-a", b"b"),
        (b"mcp-protocol-version", OLDER.encode()),
    ]


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("era", [OLDER, MODERN])
def test_a_request_without_a_caller_is_a_fault_and_nobody_local(
    told: list[Caller], monkeypatch: pytest.MonkeyPatch, era: str, direct: bool
) -> None:
    passed = http_gate._passed

    def forgotten(*arguments: Any) -> Any:
        scope = dict(passed(*arguments))
        return {**scope, "state": {}}

    monkeypatch.setattr(http_gate, "_passed", forgotten)
    if not direct:
        monkeypatch.setattr(http_app, "DirectCalls", lambda _: None)
    with HttpThread(offering(*ALL), works=telling(told)) as server:
        result = server.exchange(sent(era, calling("free"))).result
    assert result["isError"]
    assert result["structuredContent"]["error"]["kind"] == "internal"
    assert told == []
