"""Upstreams over HTTP: what is sent, what is taken for an answer, where requests go, and what nobody gets them to do."""

from __future__ import annotations

import asyncio
import gzip
import json
import secrets
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from cryptography import x509
from mcp.server import MCPServer

from verbc.support import upstream_addresses
from verbc.support.registry import Registry
from verbc.support.upstream_errors import NotStartedError, UpstreamError
from verbc.support.upstreams import Upstreams

from .certificates import certificate_of
from .http_servers import HttpThread
from .programs import finish, move_clock
from .rest_services import Answer, Exchange, RawService, endless, hang_up, reply, say_nothing, saying
from .upstream_programs import ECHO
from .upstream_samples import Visits, far, service

INITIALIZE = "initialize"
LIST = "tools/list"
CALL = "tools/call"
LIMIT = 2000  # bytes
JSON = "Content-Type: application/json"
EVENTS = "Content-Type: text/event-stream"
DONE = {"content": [{"type": "text", "text": "done"}]}


class Upstream:
    """Answers as a well-behaved server does, but for the methods that have other answers: one, or one for each time."""

    def __init__(
        self,
        answers: Mapping[str, Answer | bytes | list[Answer | bytes]] | None = None,
        *,
        session_id: str | None = None,
        events: bool = False,
    ) -> None:
        self._answers = {
            name: [*found] if isinstance(found, list) else [found] for name, found in (answers or {}).items()
        }
        self._session_id = session_id
        self._events = events
        self.heard: list[str] = []

    async def __call__(self, exchange: Exchange) -> None:
        heard = exchange.heard
        message = json.loads(heard.body) if heard.body else {}
        method = message.get("method", "answer") if heard.method == "POST" else heard.method
        self.heard.append(method)
        if answers := self._answers.get(method):
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            await (answer(exchange) if callable(answer) else exchange.say(answer))
        elif "id" in message and method != "answer":
            await exchange.say(self.usual(message))
        else:
            await exchange.say(reply(202, b""))

    def usual(self, message: Mapping[str, Any]) -> bytes:
        results: dict[str, Any] = {LIST: {"tools": [ECHO]}, CALL: DONE}
        offered = {"protocolVersion": message["params"].get("protocolVersion"), "capabilities": {}, "serverInfo": {}}
        found = {"jsonrpc": "2.0", "id": message["id"], "result": results.get(message["method"], offered)}
        further = (
            [f"Mcp-Session-Id: {self._session_id}"] if message["method"] == INITIALIZE and self._session_id else []
        )
        if self._events:
            return reply(200, b"event: message\r\ndata: " + json.dumps(found).encode() + b"\r\n\r\n", EVENTS, *further)
        return reply(200, found, JSON, *further)


def answering(result: Any, *headers: str, status: int = 200, **changes: Any) -> Answer:
    """A reply to whatever was asked, with `changes` of the message."""

    async def answer(exchange: Exchange) -> None:
        asked = json.loads(exchange.heard.body)
        message = {"jsonrpc": "2.0", "id": asked["id"], "result": result, **changes}
        await exchange.say(reply(status, message, *(headers or (JSON,))))

    return answer


def failing(*, method: str = CALL, answer: Answer | bytes, **options: Any) -> UpstreamError:
    async def work() -> UpstreamError:
        upstream = Upstream({method: answer}, **options)
        async with RawService(upstream) as raw, Visits() as visits:
            with pytest.raises(UpstreamError) as error:
                await visits.call(service(raw.url, max_response_bytes=LIMIT))
            assert upstream.heard.count(CALL) == visits.sent == (1 if method == CALL else 0)
            return error.value

    return finish(work())


def test_requests_say_what_they_have_to_and_no_more() -> None:
    secret = secrets.token_hex()

    async def work() -> None:
        async with RawService(Upstream(session_id="s-1")) as raw, Visits() as visits:
            manifest = service(f"{raw.url}/mcp?x=1", {"Authorization": {"env": "KEY", "prefix": "Bearer "}})
            await visits.call(manifest, {"a": 1}, environ={"KEY": secret})
            await visits.upstreams.close()
            heard = raw.heard
            assert [one.method for one in heard] == ["POST"] * 4 + ["DELETE"]
            assert {one.target for one in heard} == {"/mcp?x=1"}
            usual = {
                "authorization": f"Bearer {secret}",
                "accept": "application/json, text/event-stream",
                "accept-encoding": "identity",
                "user-agent": "verbc",
                "host": raw.url.removeprefix("http://"),
            }
            posted = {"content-type": "application/json", "content-length": str(len(heard[0].body))}
            agreed = {"mcp-session-id": "s-1", "mcp-protocol-version": "2025-11-25"}
            assert dict(heard[0].headers) == usual | posted
            assert dict(heard[4].headers) == usual | agreed
            assert dict(heard[3].headers).items() >= agreed.items()
            assert json.loads(heard[3].body)["params"] == {"name": "echo", "arguments": {"a": 1}}
            assert raw.connections == 1
            assert (visits.contacted, visits.sent) == (1, 1)

    finish(work())


@pytest.mark.parametrize("events", [False, True])
def test_a_tool_is_listed_and_called(events: bool) -> None:
    async def work() -> None:
        async with RawService(Upstream(events=events)) as raw, Visits() as visits:
            manifest = service(raw.url)
            async with visits.session(manifest) as session:
                listed = [await visits.listed(session, manifest) for _ in range(2)]
                assert listed[0].tools == [ECHO]
                assert listed[0].raw == listed[1].raw
                received = await visits.called(session)
                assert received.result == DONE
                assert received.response_bytes > len(json.dumps(DONE))

    finish(work())


def event(message: Any) -> bytes:
    return b"data: " + json.dumps(message).encode() + b"\n\n"


def stream(*pieces: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n" + b"".join(pieces)


def test_what_comes_before_a_reply_is_heard_and_the_stream_left_afterwards() -> None:
    said = [
        b": a comment\n\nid: 1\nretry: 5\ndata:\n\n",
        event({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}),
        event({"jsonrpc": "2.0", "id": "p", "method": "ping"}),
        event({"jsonrpc": "2.0", "id": 3, "method": "sampling/createMessage", "params": {}}),
        event({"jsonrpc": "2.0", "id": 3, "result": DONE}),
    ]

    async def work() -> None:
        upstream = Upstream({CALL: saying(stream(*said), say_nothing)})
        async with RawService(upstream) as raw, Visits() as visits:
            received = await visits.call(service(raw.url))
            assert received.result == DONE
            answers = [json.loads(heard.body) for heard in raw.heard[-2:]]
            assert answers[0] == {"jsonrpc": "2.0", "id": "p", "result": {}}
            assert answers[1]["error"]["code"] == -32601
            await raw.ended.wait()

    finish(work())


def test_a_stream_that_stays_open_does_not_hold_up_the_next_request() -> None:
    async def work() -> None:
        upstream = Upstream(
            {LIST: saying(stream(event({"jsonrpc": "2.0", "id": 2, "result": {"tools": []}})), say_nothing)}
        )
        async with RawService(upstream) as raw, Visits() as visits:
            assert (await visits.call(service(raw.url))).result == DONE

    finish(work())


def test_a_stream_that_is_torn_behind_its_reply_is_none_the_worse() -> None:
    text = b"data: " + json.dumps({"jsonrpc": "2.0", "id": 2, "result": {"tools": []}}).encode() + b"\n\n"
    torn = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (
        len(text),
        text,
    )

    async def work() -> None:
        async with RawService(Upstream({LIST: saying(torn, hang_up)})) as raw, Visits() as visits:
            assert (await visits.call(service(raw.url))).result == DONE

    finish(work())


MISBEHAVIOR: list[tuple[Answer | bytes, str]] = [
    (hang_up, "McpConnectionLost"),
    (saying(b"HTTP/1.1 200 OK\r\nContent-Le"), "McpConnectionLost"),
    (saying(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{}"), "McpConnectionLost"),
    (saying(b"SSH-2.0-x\r\n\r\n"), "McpConnectionLost"),
    (reply(200, b"", JSON), "McpConnectionLost"),
    (saying(stream()), "McpConnectionLost"),
    (saying(stream(b"data: {")), "McpConnectionLost"),
    (reply(200, {"jsonrpc": "2.0", "id": 3, "result": DONE}), "McpHttpContentType"),
    (reply(200, b"<html>", "Content-Type: text/html"), "McpHttpContentType"),
    (reply(202, b""), "McpHttpStatus"),
    (reply(301, b"", "Location: /elsewhere", JSON), "McpHttpStatus"),
    (reply(307, b"", "Location: http://127.0.0.1:1/", JSON), "McpHttpStatus"),
    (reply(401, {"error": "x"}, JSON, "WWW-Authenticate: Bearer"), "McpHttpStatus"),
    (reply(404, b""), "McpHttpStatus"),
    (reply(500, {"jsonrpc": "2.0", "id": 3, "result": DONE}, JSON), "McpHttpStatus"),
    (answering(DONE, JSON, "Content-Encoding: gzip"), "McpHttpContentEncodingDenied"),
    (reply(200, gzip.compress(b"{}" * 1000), JSON, "Content-Encoding: br"), "McpHttpContentEncodingDenied"),
    (reply(200, b"not JSON", JSON), "McpProtocolError"),
    (answering(DONE, id=99), "McpProtocolError"),
    (answering([]), "McpProtocolError"),
    (answering({}), "McpProtocolError"),
    (saying(stream(b"data: x\n\n")), "McpProtocolError"),
    (reply(200, {"jsonrpc": "2.0", "id": 3, "error": {"code": 1, "message": "a secret"}}, JSON), "McpErrorReply"),
    (answering({**DONE, "_meta": {"x": "y" * 6100}}), "McpHttpResponseTooLarge"),
    (endless(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", b" " * 100), "McpHttpResponseTooLarge"),
    (endless(stream(), b"data: " + b"x" * 1000 + b"\n"), "McpHttpSseFrameTooLarge"),
    (endless(stream(), b"x" * 1000), "McpHttpSseFrameTooLarge"),
    (endless(stream(), b": x\n\n" * 200), "McpHttpOperationTooLarge"),
    (endless(stream(), event({"jsonrpc": "2.0", "method": "x"}) * 20), "McpHttpOperationTooLarge"),
]


@pytest.mark.parametrize(("answer", "error_type"), MISBEHAVIOR)
def test_what_is_no_answer_to_a_call_is_told_by_its_name_alone(answer: Answer | bytes, error_type: str) -> None:
    error = failing(answer=answer)
    assert type(error) is UpstreamError
    assert str(error) == error.error_type == error_type


def test_the_status_of_a_reply_goes_with_its_error() -> None:
    assert failing(answer=reply(401, {"error": "x"}, JSON)).http_status == 401
    assert failing(answer=reply(200, b"not JSON", JSON)).http_status is None


@pytest.mark.parametrize("method", [INITIALIZE, LIST])
@pytest.mark.parametrize(("answer", "error_type"), [MISBEHAVIOR[0], MISBEHAVIOR[10], MISBEHAVIOR[13], MISBEHAVIOR[15]])
def test_before_a_call_it_is_the_same_and_nothing_was_sent(
    method: str, answer: Answer | bytes, error_type: str
) -> None:
    assert failing(method=method, answer=answer).error_type == error_type


@pytest.mark.parametrize("session_id", ["with blank", "x" * 1025, "\u00fc"])
def test_a_session_needs_an_id_that_can_be_sent_back(session_id: str) -> None:
    error = failing(method="nothing", answer=b"", session_id=session_id)
    assert error.error_type == "McpProtocolError"


def test_nobody_listens() -> None:
    async def work() -> None:
        async with RawService(reply()) as raw:
            url = raw.url
        async with Visits() as visits:
            with pytest.raises(UpstreamError) as error:
                await visits.call(service(url))
            assert error.value.error_type == "McpConnectFailed"
            assert not isinstance(error.value, NotStartedError)
            assert (visits.contacted, visits.sent) == (1, 0)

    finish(work())


def test_time_runs_out() -> None:
    async def late(exchange: Exchange) -> None:
        move_clock(2_000_000)
        await say_nothing(exchange)

    assert failing(answer=late).error_type == "McpTimeout"


def test_a_call_that_is_given_up_is_called_off() -> None:
    async def work() -> None:
        asked = asyncio.Event()

        async def wait(exchange: Exchange) -> None:
            asked.set()
            await say_nothing(exchange)

        upstream = Upstream({CALL: wait}, session_id="s")
        async with RawService(upstream) as raw, Visits() as visits:
            calling = asyncio.create_task(visits.call(service(raw.url)))
            await asked.wait()
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            await visits.upstreams.close()
            assert upstream.heard[-2:] == ["notifications/cancelled", "DELETE"]
            assert json.loads(raw.heard[-2].body)["params"] == {"requestId": 3}

    finish(work())


def test_a_session_that_the_upstream_no_longer_knows_is_opened_again_for_a_list_and_never_for_a_call() -> None:
    async def work() -> None:
        upstream = Upstream(session_id="s")
        async with RawService(upstream) as raw, Visits() as visits:
            manifest = service(raw.url)
            await visits.call(manifest, warm=True)
            upstream._answers[LIST] = [reply(404, b""), answering({"tools": [ECHO]})]
            upstream._answers[CALL] = [reply(404, b"")]
            with pytest.raises(UpstreamError) as error:
                await visits.call(manifest, warm=True)
            assert error.value.error_type == "McpSessionLost"
            assert upstream.heard.count(INITIALIZE) == 2
            assert upstream.heard.count(CALL) == 2
            await visits.upstreams.close()

    finish(work())


def test_a_warm_session_is_kept_over_one_connection() -> None:
    async def work() -> None:
        upstream = Upstream(session_id="s")
        async with RawService(upstream) as raw, Visits() as visits:
            for _ in range(3):
                await visits.call(service(raw.url), warm=True)
            assert upstream.heard == [INITIALIZE, "notifications/initialized", *[LIST, CALL] * 3]
            assert raw.connections == 1

    finish(work())


def test_neither_proxies_nor_netrc_of_the_environment_are_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    (tmp_path / "netrc").write_text("default login me password s3cret")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))

    async def work() -> None:
        async with RawService(Upstream()) as raw, Visits() as visits:
            await visits.call(service(raw.url))
            assert raw.heard[0].header("authorization") is None

    finish(work())


def named(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Let every name lead to these addresses; gives the names that were looked up."""
    asked: list[str] = []

    def look_up(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        if not addresses:
            raise socket.gaierror
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.0.0.1"],
        ["169.254.169.254"],
        ["192.0.2.1"],
        ["0.0.0.0"],
        ["::1"],
        ["fe80::1%eth0"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["fec0::1"],
        ["::a9fe:a9fe"],
        ["192.0.0.192"],
        ["93.184.215.14", "127.0.0.1"],
    ],
)
def test_a_name_that_leads_to_an_address_that_is_not_public_is_not_followed(
    addresses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = named(monkeypatch, *addresses)

    async def work() -> None:
        async with Visits() as visits:
            with pytest.raises(UpstreamError) as error:
                await visits.call(service("https://tools.example.org/mcp"))
            assert error.value.error_type == "McpAddressDenied"
            assert asked == ["tools.example.org"]
            assert (visits.contacted, visits.sent) == (1, 0)

    finish(work())


def test_this_machine_by_name_is_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, "93.184.215.14")

    async def work() -> None:
        async with Visits() as visits:
            with pytest.raises(UpstreamError) as error:
                await visits.call(service("http://localhost:1/mcp"))
            assert error.value.error_type == "McpAddressDenied"

    finish(work())


def test_where_nobody_listens_at_one_address_the_next_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, "127.0.0.2", "127.0.0.1")

    async def work() -> None:
        async with RawService(Upstream()) as raw, Visits() as visits:
            assert (await visits.call(service(raw.url.replace("127.0.0.1", "localhost")))).result == DONE

    finish(work())


def test_a_name_that_nobody_knows_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch)

    async def work() -> None:
        async with Visits() as visits:
            with pytest.raises(UpstreamError) as error:
                await visits.call(service("https://tools.example.org/mcp"))
            assert error.value.error_type == "McpDnsFailed"

    finish(work())


def test_a_name_that_takes_too_long_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def look_up(*_: Any, **__: Any) -> list[Any]:
        begun.set()
        go_on.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    async def work() -> None:
        async with Visits() as visits:
            calling = asyncio.create_task(visits.call(service("https://tools.example.org/mcp")))
            await asyncio.to_thread(begun.wait, 60)
            move_clock(2_000_000)
            with pytest.raises(UpstreamError) as error:
                await calling
            go_on.set()
            assert error.value.error_type == "McpDnsTimeout"

    finish(work())


def test_names_that_nobody_answers_for_hold_up_no_other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    go_on = threading.Event()

    def look_up(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        if host.startswith("slow"):
            go_on.wait(60)
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("93.184.215.14", port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    async def work() -> None:
        resolver = upstream_addresses.Resolver()
        given_up = [asyncio.ensure_future(resolver(f"slow{number}", 443)) for number in range(40)]
        await asyncio.sleep(0)
        for looking in given_up:
            looking.cancel()
        assert await resolver("tools.example.org", 443) == ["93.184.215.14"]
        waiting = [asyncio.ensure_future(resolver("slow0", port)) for port in (443, 444, 445)]
        await asyncio.sleep(0)
        go_on.set()
        assert await asyncio.gather(*waiting) == [["93.184.215.14"]] * 3
        assert asked.count("slow0") == 1
        assert await resolver("slow0", 443) == ["93.184.215.14"]  # once it is over, it is looked up anew
        assert asked.count("slow0") == 2
        resolver.close()

    finish(work())


def test_only_so_many_names_are_looked_up_at_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_addresses, "_MOST_NAMES", 2)
    go_on = threading.Event()

    def look_up(*_: Any, **__: Any) -> list[Any]:
        go_on.wait(60)
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    async def work() -> None:
        resolver = upstream_addresses.Resolver()
        looking = [asyncio.ensure_future(resolver(f"slow{number}", 443)) for number in range(3)]
        with pytest.raises(OSError, match="too many"):
            await looking.pop()
        go_on.set()
        assert [type(error) for error in await asyncio.gather(*looking, return_exceptions=True)] == [
            socket.gaierror
        ] * 2
        resolver.close()

    finish(work())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of tools.example.org, signed by itself, and its key."""
    return certificate_of(x509.DNSName("tools.example.org"), tmp_path_factory.mktemp("certificate"))


@pytest.mark.parametrize(("host", "reached"), [("tools.example.org", True), ("other.example.org", False)])
def test_connected_to_is_the_address_that_was_checked_and_proven_is_the_name(
    certificate: Path, host: str, reached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    asked = named(monkeypatch, "127.0.0.1")
    monkeypatch.setattr(upstream_addresses, "is_public", lambda _address: True)

    async def work() -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        async with RawService(Upstream(), tls=context) as raw, Visits() as visits:
            manifest = service(f"https://{host}:{raw.url.rpartition(':')[2]}/mcp")
            if reached:
                assert (await visits.call(manifest)).result == DONE
            else:
                with pytest.raises(UpstreamError) as error:
                    await visits.call(manifest)
                assert error.value.error_type == "McpConnectFailed"
                assert raw.heard == []
            assert asked == [host]

    asyncio.run(work())


@contextmanager
def sdk_service(*, json_response: bool) -> Iterator[str]:
    """The address of a server of the SDK, with one tool."""
    server = MCPServer("sdk")

    @server.tool()
    def echo(text: str) -> str:
        return text

    app = server.streamable_http_app(json_response=json_response)
    listener = socket.create_server(("127.0.0.1", 0))
    served = uvicorn.Server(uvicorn.Config(app, log_config=None))
    thread = threading.Thread(target=served.run, args=([listener],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    finally:
        served.should_exit = True
        thread.join()
        listener.close()


@pytest.mark.parametrize("json_response", [False, True])
def test_a_server_of_the_sdk_is_listed_and_called(json_response: bool) -> None:
    async def work(url: str) -> None:
        async with Visits(Upstreams()) as visits:
            for _ in range(2):
                received = await visits.call(service(url), {"text": "hello"}, warm=True)
                assert received.result["content"] == [{"type": "text", "text": "hello"}]

    with sdk_service(json_response=json_response) as url:
        asyncio.run(work(url))


def test_a_server_of_our_own_is_listed_and_called(registry: Registry) -> None:
    async def work(url: str) -> None:
        async with Visits() as visits, visits.session(service(url)) as session:
            tools = (await visits.listed(session, service(url))).tools
            assert "item.show" in [tool["name"] for tool in tools]
            received = await session.call_tool("item.show", {"id": "a"}, deadline=far(), sent=lambda: None)
            assert received.result["structuredContent"] == {"id": "a"}

    with HttpThread(registry) as server:
        asyncio.run(work(server.url))
