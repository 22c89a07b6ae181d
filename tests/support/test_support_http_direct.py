"""Calls are answered alike whichever way they go: straight to the SDK, or through its own transports."""

from __future__ import annotations

import asyncio
import copy
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from verbc.support import http_app, server_mcp
from verbc.support.call import LOCAL, Call
from verbc.support.http_app import HttpApp
from verbc.support.http_callers import anybody
from verbc.support.http_direct import DirectCalls
from verbc.support.http_envelope import Message
from verbc.support.offering_server import OfferingServer
from verbc.support.refusal import Refusal
from verbc.support.registry import Registry, from_data

from .http_servers import CAPABILITIES, MODERN, NAMED, OLDER, HttpThread, Reply, calling, modern, modern_lines, post
from .programs import finish
from .samples import DATA, Functions, Work, verb_data

ERAS = (OLDER, MODERN)
REVISIONS: list[str] = DATA["serve"]["protocols"]
INFO = "io.modelcontextprotocol/clientInfo"
LEVEL = "io.modelcontextprotocol/logLevel"
MARK = "sub-mitted"
METHOD, NAME = "Mcp-Method: tools/call", "Mcp-Name: free"
HEADED = {"properties": {"id": {"type": "string", "x-mcp-header": "Id"}, "n": {"type": "integer"}}}


async def everything(call: Call) -> Any:
    await call.progress(1, 2, "half")
    numbers = [1.0, 0.5, 10**30, -0.0]
    return {"text": "\u00e9 \U0001f600 \u202e </\u2028\x7f", "none": None, "numbers": numbers, "in": {"none": [None]}}


async def failing(call: Call) -> Any:
    raise RuntimeError(MARK)


async def cancelled(call: Call) -> Any:
    raise asyncio.CancelledError


async def refusing(call: Call) -> Any:
    raise Refusal("conflict", "It is \u00e9.", {"d\u00e9tail": None, "n": 1.0})


WORKS: Mapping[str, Work] = {
    "free": everything,
    "headed": everything,
    "item.names": failing,
    "refusing": refusing,
    "spawn": cancelled,
}


class Never(DirectCalls):
    """Leaves all to the SDK's transports."""

    async def answer(self, *request: Any) -> bool:
        return False


class Noting(DirectCalls):
    """Notes what has been answered directly."""

    noted: list[str]

    async def answer(self, scope: Any, message: Message, revision: str, send: Any) -> bool:
        async def note(event: Any) -> None:
            self.noted.append(message.method)
            await send(event)

        return await super().answer(scope, message, revision, note)


def sample() -> Registry:
    data = copy.deepcopy(DATA)
    data["verbs"] += [verb_data("headed", HEADED), verb_data("refusing")]
    return from_data(data)


def serving(calls: type[DirectCalls], works: Mapping[str, Work] = WORKS) -> HttpThread:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_app, "DirectCalls", calls)
        return HttpThread(sample(), works=works, replies="json")


@dataclass(frozen=True)
class Ways:
    """One server that answers calls directly, and one that never does."""

    direct: HttpThread
    other: HttpThread
    noted: list[str]

    def answers(self, request: bytes) -> tuple[Any, Any, bool]:
        """What both say to a request, and whether the first one said it directly."""
        self.noted.clear()
        return seen(self.direct.exchange(request)), seen(self.other.exchange(request)), bool(self.noted)


def seen(reply: Reply) -> Any:
    """What a client sees of a reply, but for the name that its call has in the log."""
    return reply.status, reply.header("content-type"), re.sub(rb"under corr_[0-9a-f]{16}", b"", reply.body)


@pytest.fixture(scope="module")
def ways() -> Iterator[Ways]:
    noted: list[str] = []
    with serving(type("Noted", (Noting,), {"noted": noted})) as direct, serving(Never) as other:
        yield Ways(direct, other, noted)


@dataclass(frozen=True)
class Row:
    """A message, and whether it is answered directly in the older and in the newer era.

    `lines` are those that go with it in the newer era, where they are not simply those that should.
    """

    message: dict[str, Any]
    older: bool = True
    newer: bool = True
    lines: Sequence[str] | None = None

    def request(self, revision: str) -> bytes:
        newer = revision == MODERN
        message = modern(self.message) if newer and NAMED not in json.dumps(self.message) else self.message
        lines = (modern_lines(message) if self.lines is None else self.lines) if newer else ()
        return post(json.dumps(message, ensure_ascii=False).encode(), *lines, revision=revision)


def with_params(**params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def without_id(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key != "id"}


SHOW = calling("item.show", {"id": "a"})
FREE = calling("free")

MESSAGES = {
    "success": Row(SHOW),
    "a synonym": Row(calling("show_item", {"id": "a"})),
    "a whole number with a point": Row(calling("item.show", {"id": "a", "count": 2.0})),
    "all kinds of values": Row(FREE),
    "arguments that do not fit": Row(calling("item.show", {"id": 1})),
    "a result that does not fit": Row(calling("item.show", {"id": "a", "color": "red"})),
    "a refusal": Row(calling("refusing")),
    "a fingerprint that does not fit": Row(calling("spawn", {"query": []}, schema_fingerprint="0" * 16)),
    "an exception behind the tool": Row(calling("item.names")),
    "cancelled behind the tool": Row(calling("spawn")),
    "an unknown tool": Row(calling("nope")),
    "an unknown tool beyond ASCII": Row(calling("n\u00f6pe")),
    "a tool that is gone": Row(calling("gone")),
    "no params": Row({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}),
    "no name": Row(with_params(arguments={})),
    "null for a name": Row(with_params(name=None)),
    "a number for a name": Row(with_params(name=3), newer=False),
    "no arguments": Row(with_params(name="free")),
    "null for arguments": Row(with_params(name="free", arguments=None)),
    "a list of arguments": Row(with_params(name="free", arguments=[1])),
    "further params": Row(with_params(name="free", more=1, task={"ttl": 5.0})),
    "params that are none": Row(with_params(name="free", task=1, inputResponses=3)),
    "further members": Row({**SHOW, "more": 1, "result": {}, "error": None}),
    "a text for an id": Row({**SHOW, "id": "\u00e9\u202e"}),
    "an empty text for an id": Row({**SHOW, "id": ""}),
    "a large id": Row({**SHOW, "id": -(10**30)}),
    "progress by a number": Row(calling("free", progressToken=7)),
    "progress by a number with a point": Row(calling("free", progressToken=7.0)),
    "progress by a text": Row(calling("free", progressToken="a")),
    "progress by a list": Row(calling("free", progressToken=[1])),
    "progress by a boolean": Row(calling("free", progressToken=True)),
    "a trace": Row(calling("free", traceparent=f"00-{'1' * 32}-{'2' * 16}-01")),
    "further meta": Row(calling("free", more={"a": [1.0, None]})),
    "a tool with an argument in a header": Row(calling("headed", {"id": "a"}), newer=False),
    "a tool with an argument in a header, without it": Row(calling("headed"), newer=False),
    "no id": Row(without_id(SHOW), older=False, newer=False),
    "another method": Row({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}, older=False, newer=False),
    "an unknown method": Row({"jsonrpc": "2.0", "id": 1, "method": "tools/calls"}, older=False, newer=False),
}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("name", MESSAGES)
def test_both_ways_answer_alike(ways: Ways, name: str, revision: str) -> None:
    row = MESSAGES[name]
    directly, otherwise, direct = ways.answers(row.request(revision))
    assert directly == otherwise
    assert direct is (row.newer if revision == MODERN else row.older)


def with_meta(**meta: Any) -> dict[str, Any]:
    return calling("free", **{NAMED: MODERN, CAPABILITIES: {}, **meta})


MODERN_MESSAGES = {
    "an encoded name": Row(FREE, lines=[METHOD, "mcp-name: =?base64?ZnJlZQ==?="]),
    "a badly encoded name": Row(FREE, newer=False, lines=[METHOD, "Mcp-Name: =?base64?ZnJlZR==?="]),
    "no lines": Row(FREE, newer=False, lines=[]),
    "no method": Row(FREE, newer=False, lines=[NAME]),
    "no name": Row(FREE, newer=False, lines=[METHOD]),
    "another method": Row(FREE, newer=False, lines=["Mcp-Method: tools/list", NAME]),
    "another name": Row(FREE, newer=False, lines=[METHOD, "Mcp-Name: item.names"]),
    "the name twice": Row(FREE, newer=False, lines=[METHOD, NAME, NAME]),
    "another name before it": Row(FREE, newer=False, lines=[METHOD, "Mcp-Name: item.names", NAME]),
    "the method twice": Row(FREE, newer=False, lines=[METHOD, METHOD, NAME]),
    "a header for no argument": Row(FREE, lines=[METHOD, NAME, "Mcp-Param-Id: b"]),
    "no such argument": Row(
        calling("headed", {"n": 1}), newer=False, lines=[METHOD, "Mcp-Name: headed", "Mcp-Param-Id: b"]
    ),
    "an argument and its header": Row(
        calling("headed", {"id": "a"}), newer=False, lines=[METHOD, "Mcp-Name: headed", "Mcp-Param-Id: a"]
    ),
    "an argument and another header": Row(
        calling("headed", {"id": "a"}), newer=False, lines=[METHOD, "Mcp-Name: headed", "Mcp-Param-Id: b"]
    ),
    "no id": Row(without_id(FREE), newer=False, lines=[]),
    "no capabilities": Row(calling("free", **{NAMED: MODERN}), newer=False),
    "null for capabilities": Row(with_meta(**{CAPABILITIES: None})),
    "a number for capabilities": Row(with_meta(**{CAPABILITIES: 3})),
    "capabilities": Row(with_meta(**{CAPABILITIES: {"elicitation": {}, "extensions": {"a/b": {}}, "more": 1.0}})),
    "who asks": Row(with_meta(**{INFO: {"name": "\u00e9", "version": "1"}})),
    "a number for who asks": Row(with_meta(**{INFO: 3})),
    "a level for the log": Row(with_meta(**{LEVEL: "debug"})),
    "a number for the level": Row(with_meta(**{LEVEL: 1})),
    "another revision": Row(with_meta(**{NAMED: "2099-01-01"}), newer=False),
    "progress by a list": Row(with_meta(progressToken=[1])),
}


@pytest.mark.parametrize("name", MODERN_MESSAGES)
def test_both_ways_answer_alike_in_what_is_new(ways: Ways, name: str) -> None:
    row = MODERN_MESSAGES[name]
    directly, otherwise, direct = ways.answers(row.request(MODERN))
    assert directly == otherwise
    assert direct is row.newer


@pytest.mark.parametrize("message", [with_params(name="free", _meta="x"), with_params(name="free", _meta=[])])
@pytest.mark.parametrize("revision", REVISIONS)
def test_both_ways_answer_alike_where_meta_is_no_object(ways: Ways, message: Any, revision: str) -> None:
    directly, otherwise, _ = ways.answers(post(message, revision=revision))
    assert directly == otherwise
    assert b"-32602" in directly[2]


def test_streams_are_the_sdks_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_app, "DirectCalls", None)
    with HttpThread(sample(), replies="stream") as server:
        assert server.post(FREE).header("content-type") == "text/event-stream"


@pytest.mark.parametrize("era", ERAS)
def test_what_goes_with_a_call_is_the_same(era: str, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[Any] = []

    @asynccontextmanager
    async def live(_: Any) -> AsyncIterator[Any]:
        noted.append("begun")
        yield {"kept": "open"}
        noted.append("ended")

    async def note(ctx: Any, call_next: Any) -> Any:
        request, session = ctx.request, ctx.session
        of_request = dict(request.headers), request.method, request.url.path, request.state.caller
        of_session = session.can_send_request, session.protocol_version, session.client_params
        of_message = ctx.method, ctx.params, ctx.request_id, ctx.meta, ctx.protocol_version
        noted.append((ctx.lifespan_context, of_request, of_session, of_message))
        return await call_next(ctx)

    monkeypatch.setattr(server_mcp, "OfferingServer", partial(OfferingServer, lifespan=live))
    monkeypatch.setattr(server_mcp, "_name_no_method", note)
    message = calling("item.show", {"id": "a"}, progressToken=1, **{INFO: {"name": "test", "version": "1"}})
    for way in (DirectCalls, Never):
        with serving(way) as server:
            assert server.exchange(Row(message).request(era)).status == 200
    assert noted[:3] == noted[3:]
    assert (noted[0], noted[1][0], noted[2]) == ("begun", {"kept": "open"}, "ended")


@pytest.mark.parametrize("era", ERAS)
def test_a_call_is_traced_where_somebody_listens(era: str, monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[Any] = []

    async def trace(self: Any, ctx: Any, call_next: Any) -> Any:
        traced.append((ctx.method, ctx.meta))
        return await call_next(ctx)

    monkeypatch.setattr("mcp.server._otel.OpenTelemetryMiddleware.__call__", trace)
    monkeypatch.setattr("verbc.support.offering_server.get_tracer_provider", object)
    request = Row(calling("free", traceparent=f"00-{'1' * 32}-{'2' * 16}-01")).request(era)
    for way in (DirectCalls, Never):
        with serving(way) as server:
            assert server.exchange(request).status == 200
    assert traced[0] == traced[1]
    assert traced[0][1]["traceparent"].startswith("00-1")


@pytest.mark.parametrize("era", ERAS)
def test_what_a_fault_in_the_server_says_stays_there(
    era: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(ctx: Any, call_next: Any) -> Any:
        raise RuntimeError(MARK)

    monkeypatch.setattr(server_mcp, "_name_no_method", broken)
    with serving(DirectCalls) as server:
        reply = server.exchange(Row(FREE).request(era))
    assert reply.error == (200, -32603)
    assert MARK not in reply.body.decode()
    assert caplog.records[-1].getMessage() == "a request failed"
    assert MARK not in caplog.text
    if era == MODERN:  # in the older era the SDK would send the text
        with serving(Never) as server:
            assert seen(server.exchange(Row(FREE).request(era))) == seen(reply)


class Ending:
    """Work that waits, and that takes many turns of the loop to end once it is cancelled."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.noted: list[str] = []

    async def __call__(self, call: Call) -> Any:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(100):  # a second cancellation would break in here
                await asyncio.sleep(0)
            self.noted.append("in order")

    @asynccontextmanager
    async def live(self, _: Any) -> AsyncIterator[Any]:
        yield {}
        self.noted.append("server ended")


@pytest.mark.parametrize("way", [DirectCalls, Never])
@pytest.mark.parametrize("era", ERAS)
def test_what_is_cancelled_ends_before_the_server_does(
    way: type[DirectCalls], era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Ending()
    monkeypatch.setattr(server_mcp, "OfferingServer", partial(OfferingServer, lifespan=work.live))
    monkeypatch.setattr(http_app, "DirectCalls", way)
    statuses: list[int] = []

    async def answer(message: Any) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    async def scenario() -> None:
        registry = sample()
        assert registry.serve.http is not None
        server = server_mcp.build_server(registry, {"local": Functions({"free": work}), "li": Functions()})
        app = HttpApp(server, registry, registry.serve.http, anybody(LOCAL).authenticate)
        told: asyncio.Queue[Any] = asyncio.Queue()
        said: asyncio.Queue[Any] = asyncio.Queue()
        living = asyncio.create_task(app({"type": "lifespan"}, told.get, said.put))
        told.put_nowait({"type": "lifespan.startup"})
        assert (await said.get())["type"] == "lifespan.startup.complete"
        call = asyncio.create_task(app(*as_asgi(Row(FREE).request(era)), answer))
        await work.begun.wait()
        call.cancel()  # as uvicorn does when time is up, and goes on at once
        told.put_nowait({"type": "lifespan.shutdown"})
        await living
        await call

    finish(scenario())
    assert (work.noted, statuses) == (["in order", "server ended"], [503])


def as_asgi(request: bytes) -> tuple[Any, Any]:
    """A request as an application gets it: its scope, and what gives its body."""
    head, _, body = request.partition(b"\r\n\r\n")
    lines = [line.partition(b":") for line in head.split(b"\r\n")[1:]]
    headers = [(name.lower(), value.strip()) for name, _, value in lines]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "raw_path": b"/mcp", "headers": headers}

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    return scope, receive
