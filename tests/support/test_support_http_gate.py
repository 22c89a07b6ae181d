"""What the server decides about a request before the protocol sees it, over real sockets and in both eras."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from verbc.support.registry import Registry, from_data

from .http_servers import (
    MODERN,
    NAMED,
    OLDER,
    HttpThread,
    calling,
    initializing,
    listing,
    modern,
    modern_lines,
    post,
)
from .samples import DATA

ERAS = (OLDER, MODERN)
OFFERED = [MODERN, OLDER]
MARK = "sub-mitted"
BODY = 65536


def narrowed(**changes: Any) -> Registry:
    """The registry of a server that offers one revision of each era, and tells nobody what he has sent."""
    data = {**copy.deepcopy(DATA), "feedback": "shapes", **changes}
    data["serve"]["protocols"] = OFFERED
    return from_data(data)


@pytest.fixture(scope="module")
def server() -> Iterator[HttpThread]:
    with HttpThread(narrowed()) as running:
        yield running


def of(era: str, message: dict[str, Any]) -> dict[str, Any]:
    """The message as a client of this era writes it."""
    return modern(message) if era == MODERN else message


@pytest.mark.parametrize("era", ERAS)
def test_both_eras_are_served(server: HttpThread, era: str) -> None:
    assert len(server.post(of(era, listing()), revision=era).result["tools"]) == 6
    reply = server.post(of(era, calling("item.show", {"id": "a"})), revision=era)
    assert reply.result["structuredContent"] == {"id": "a"}
    assert reply.header("content-type") == "application/json"
    assert reply.header("mcp-session-id") is None
    assert reply.header("server") is None


def test_the_older_era_begins_with_a_handshake(server: HttpThread) -> None:
    begun = server.post(initializing(), revision=None)
    assert begun.result["protocolVersion"] == OLDER
    assert begun.result["serverInfo"]["title"] == "Sample"
    assert begun.header("mcp-session-id") is None
    reply = server.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (reply.status, reply.body) == (202, b"")


def test_a_notification_of_the_newer_era_is_taken(server: HttpThread) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    reply = server.post(message, revision=MODERN)
    assert (reply.status, reply.body) == (202, b"")


@pytest.mark.parametrize("asked", ["2025-11-25", "2025-03-26", "2024-11-05", MODERN, "junk", ""])
def test_another_revision_is_answered_with_the_one_that_is_offered(server: HttpThread, asked: str) -> None:
    assert server.post(initializing(asked), revision=None).result["protocolVersion"] == OLDER


@pytest.mark.parametrize(
    "header", ["2025-11-25", "2025-03-26", "2024-11-05", "2099-01-01", MARK, f"{OLDER}, {OLDER}", ""]
)
@pytest.mark.parametrize("message", [listing(), initializing()])
def test_a_header_with_another_revision_is_refused(server: HttpThread, header: str, message: dict[str, Any]) -> None:
    reply = server.post(message, revision=header)
    assert reply.error == (400, -32022)
    told = header if header.startswith("20") and len(header) == 10 else "*"
    assert reply.json["error"]["data"] == {"supported": OFFERED, "requested": told}
    assert reply.json["id"] == message["id"]


def test_without_a_header_only_the_handshake_is_taken(server: HttpThread) -> None:
    reply = server.post(listing(), revision=None)
    assert reply.error == (400, -32022)
    assert reply.json["error"]["data"]["supported"] == OFFERED
    assert server.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, revision=None).error == (400, -32022)


def test_without_a_header_the_revision_that_knows_none_is_meant_where_it_is_offered() -> None:
    with HttpThread(from_data(copy.deepcopy(DATA))) as server:
        assert len(server.post(listing(), revision=None).result["tools"]) == 6


@pytest.mark.parametrize(
    ("message", "header", "code"),
    [
        (modern(listing()), OLDER, -32600),
        (modern(listing(), OLDER), OLDER, -32600),
        (modern(initializing()), OLDER, -32600),
        (modern(listing()), "2025-11-25", -32600),
        (initializing(), MODERN, -32600),
        (listing(), MODERN, -32602),
        (modern(listing()), None, -32020),
        (modern(initializing()), None, -32020),
        (modern(listing(), OLDER), MODERN, -32020),
        (modern(listing(), MARK), MODERN, -32020),
        (modern(listing()), "2026-01-01", -32020),
        (modern(listing(), "2099-01-01"), "2099-01-01", -32022),
        ({**listing(), "params": {"_meta": {NAMED: None}}}, MODERN, -32020),
        ({**listing(), "params": {"_meta": {NAMED: {MARK: 1}}}}, MODERN, -32020),
        ({**listing(), "params": {"_meta": {NAMED: MODERN}}}, MODERN, -32602),
        ({**listing(), "params": {"_meta": MARK}}, MODERN, -32602),
    ],
)
def test_header_and_message_agree_on_the_era(server: HttpThread, message: Any, header: str | None, code: int) -> None:
    reply = server.post(message, revision=header)
    assert reply.error == (400, code)
    assert reply.json["id"] == message["id"]
    assert MARK not in reply.body.decode()


def test_a_server_of_the_newer_era_alone_takes_no_handshake() -> None:
    data = copy.deepcopy(DATA)
    data["serve"]["protocols"] = [MODERN]
    with HttpThread(from_data(data)) as server:
        for message, header in (
            (initializing(), None),
            (initializing("junk"), OLDER),
            (listing(), OLDER),
            (listing(), None),
        ):
            assert server.post(message, revision=header).error == (400, -32022)
        assert server.post(modern(listing()), revision=MODERN).status == 200


def test_a_server_of_the_older_era_alone_says_so() -> None:
    data = copy.deepcopy(DATA)
    data["serve"]["protocols"] = [OLDER]
    with HttpThread(from_data(data)) as server:
        reply = server.post(modern({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}), revision=MODERN)
        assert reply.error == (400, -32022)
        assert reply.json["error"]["data"] == {"supported": [OLDER], "requested": MODERN}
        assert server.post(listing()).status == 200


def test_what_is_offered_can_be_asked_for(server: HttpThread) -> None:
    reply = server.post(modern({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}), revision=MODERN)
    assert reply.result["supportedVersions"] == OFFERED
    assert reply.result["instructions"] == "Ask for items."
    assert reply.result["capabilities"] == {"tools": {"listChanged": False}}


@pytest.mark.parametrize(
    "lines", [[f"MCP-Protocol-Version: {OLDER}"], ["MCP-Protocol-Version: 2025-11-25"], ["mcp-protocol-version:"]]
)
def test_several_headers_of_the_revision_are_refused(server: HttpThread, lines: list[str]) -> None:
    assert server.post(listing(), *lines).error == (400, -32600)
    assert server.post(initializing(), *lines).error == (400, -32600)


@pytest.mark.parametrize(
    ("message", "lines", "code"),
    [
        (listing(), [], -32020),
        (listing(), ["Mcp-Method: tools/call"], -32020),
        (listing(), ["Mcp-Method: TOOLS/LIST"], -32020),
        (listing(), ["Mcp-Method: tools/list", "Mcp-Method: tools/list"], -32020),
        (calling("free"), ["Mcp-Method: tools/call"], -32020),
        (calling("free"), ["Mcp-Method: tools/call", f"Mcp-Name: {MARK}"], -32020),
        (calling("free"), ["Mcp-Method: tools/call", "Mcp-Name: free", "Mcp-Name: free"], -32020),
    ],
)
def test_the_routing_headers_agree_with_the_message(
    server: HttpThread, message: dict[str, Any], lines: list[str], code: int
) -> None:
    body = json.dumps(modern(message)).encode()
    reply = server.post(body, *lines, revision=MODERN)
    assert reply.error == (400, code)
    assert MARK not in reply.body.decode()


def test_a_name_may_be_encoded(server: HttpThread) -> None:
    body = json.dumps(modern(calling("free"))).encode()
    assert server.post(body, "MCP-METHOD:  tools/call ", "mcp-name: =?base64?ZnJlZQ==?=", revision=MODERN).status == 200


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH", "TRACE", "FOO", "post"])
@pytest.mark.parametrize("era", [*ERAS, "junk"])
def test_only_post_is_taken(server: HttpThread, method: str, era: str) -> None:
    lines = ["Host: localhost", f"MCP-Protocol-Version: {era}", "Accept: text/event-stream, application/json"]
    reply = server.exchange("\r\n".join([f"{method} /mcp HTTP/1.1", *lines, "", ""]).encode())
    assert (reply.status, reply.header("allow")) == (405, "POST")
    if method != "HEAD":
        assert reply.error == (405, -32600)


@pytest.mark.parametrize(
    "target",
    ["/", "/mcp/", "/MCP", "//mcp", "/%6dcp", "/mcp/x", "/mcp;x", "/./mcp", "/x/../mcp", "http://127.0.0.1/mcp", "*"],
)
def test_elsewhere_there_is_nothing(server: HttpThread, target: str) -> None:
    assert server.post(listing(), target=target).error == (404, -32600)
    reply = server.exchange(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert reply.status == 404


def test_a_query_changes_nothing(server: HttpThread) -> None:
    assert server.post(listing(), target="/mcp?a=b").status == 200


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:80", "127.0.0.1:9", "127.0.0.2", "[::1]", "[0:0::1]:7777", "localhost:"]
)
def test_names_of_this_machine_are_known(server: HttpThread, host: str) -> None:
    assert server.post(listing(), f"Host: {host}", without=["host"]).status == 200


@pytest.mark.parametrize(
    "host",
    [
        *["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "localhost:x"],
        *[
            "localhost:99999",
            "a@localhost",
            "localhost/",
            "0.0.0.0",
            "[::1",
            "::1",
            "[::2]",
            "10.0.0.1",
            "",
            "localhost.",
        ],
        *["127.1", "2130706433", "0x7f.1", "localhost, evil.example", "[::ffff:10.0.0.1]", "[::1%25lo]"],
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET", "OPTIONS"])
def test_other_names_are_not(server: HttpThread, host: str, method: str) -> None:
    request = post(listing(), f"Host: {host}", without=["host"]).replace(b"POST", method.encode(), 1)
    reply = server.exchange(request)
    assert reply.error == (421, -32600)
    assert "evil" not in reply.body.decode()


@pytest.mark.parametrize("lines", [[], ["Host: localhost", "Host: localhost"]])
def test_a_host_is_named_once(server: HttpThread, lines: list[str]) -> None:
    assert server.post(listing(), *lines, without=["host"]).status == 400


def test_an_older_http_names_a_host_too(server: HttpThread) -> None:
    request = post(listing(), without=["host"]).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
    assert server.exchange(request).error == (421, -32600)


@pytest.mark.parametrize(
    "origin",
    [
        *["https://evil.example", "null", "", "http://localhost:1", "http://127.0.0.1:1", "http://evil.example:80"],
        *["http://localhost.evil.example", "http://localhost@evil.example", "localhost", "file://", "http://[::1]"],
        *["http://127.0.0.1/", "http://127.0.0.1, http://127.0.0.1", "ftp://127.0.0.1"],
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET", "OPTIONS", "DELETE"])
def test_web_pages_are_not_let_in(server: HttpThread, origin: str, method: str) -> None:
    reply = server.exchange(post(listing(), f"Origin: {origin}").replace(b"POST", method.encode(), 1))
    assert reply.error == (403, -32600)
    assert "evil" not in reply.body.decode()
    assert reply.header("access-control-allow-origin") is None


def test_several_origins_are_none(server: HttpThread) -> None:
    assert server.post(listing(), "Origin: http://127.0.0.1", "Origin: http://127.0.0.1").error == (403, -32600)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]"])
def test_a_page_of_the_very_same_origin_is(server: HttpThread, name: str) -> None:
    lines = [f"Host: {name}:{server.port}", f"Origin: http://{name}:{server.port}"]
    assert server.post(listing(), *lines, without=["host"]).status == 200


def test_hosts_and_origins_can_be_named() -> None:
    hosts = ("mcp.example", "[2001:db8::1]:8443")
    origins = ("https://App.example:443", "http://localhost:6274", "vscode-webview://x")
    with HttpThread(narrowed(), hosts=hosts, origins=origins) as server:
        for host in ("mcp.example", "MCP.example:1234", "[2001:DB8:0::1]:8443", "localhost"):
            assert server.post(listing(), f"Host: {host}", without=["host"]).status == 200
        for host in ("sub.mcp.example", "[2001:db8::1]", "[2001:db8::1]:443"):
            assert server.post(listing(), f"Host: {host}", without=["host"]).status == 421
        for origin in ("https://app.example", "http://localhost:6274", "vscode-webview://x"):
            assert server.post(listing(), f"Origin: {origin}").status == 200
        for origin in (
            "http://app.example",
            "https://app.example:444",
            "http://localhost",
            "vscode-webview://y",
            "null",
        ):
            assert server.post(listing(), f"Origin: {origin}").status == 403
        # A page of the server's public name is no page of this machine.
        lines = ["Host: mcp.example", "Origin: http://mcp.example"]
        assert server.post(listing(), *lines, without=["host"]).status == 403


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        *[("application/json", 200), ("Application/JSON", 200), ("application/json; charset=utf-8", 200)],
        *[('application/json;Charset="UTF-8"', 200), ("application/json ; x=y", 200), ("text/plain", 400)],
        *[
            ("", 400),
            ("application/jsonx", 400),
            ("application/json, text/plain", 400),
            ("text/plain;application/json", 400),
        ],
        *[("application/x-www-form-urlencoded", 400), ("multipart/form-data; boundary=x", 400)],
        *[("application/json; charset=utf-16", 415), ("application/json; charset=", 415)],
        *[("application/json; charset=utf-8; charset=latin-1", 415)],
    ],
)
@pytest.mark.parametrize("era", ERAS)
def test_the_body_is_said_to_be_json(server: HttpThread, content_type: str, status: int, era: str) -> None:
    message = of(era, listing())
    reply = server.post(message, f"Content-Type: {content_type}", without=["content-type"], revision=era)
    assert reply.status == status


def test_the_kind_of_the_body_is_said_once(server: HttpThread) -> None:
    assert server.post(listing(), without=["content-type"]).error == (400, -32600)
    assert server.post(listing(), "Content-Type: application/json").error == (400, -32600)


@pytest.mark.parametrize(("coding", "status"), [("identity", 200), ("gzip", 415), ("identity, br", 415)])
def test_the_body_is_not_compressed(server: HttpThread, coding: str, status: int) -> None:
    assert server.post(listing(), f"Content-Encoding: {coding}").status == status


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        *[(["application/json, text/event-stream"], 200), (["TEXT/Event-Stream;q=0.5,Application/JSON;q=1.000"], 200)],
        *[(["*/*"], 200), (["application/*, text/*"], 200), (["application/json", "text/event-stream"], 200)],
        *[(["application/json; charset=utf-8, text/event-stream"], 200), (["text/html, */*;q=0.1"], 200)],
        *[(["application/json"], 406), (["text/event-stream"], 406), ([], 406), ([""], 406), (["text/html"], 406)],
        *[(["application/json, text/event-stream;q=0"], 406), (["application/json;q=0.0, */*"], 406)],
        *[(["*/*;q=0"], 406), (["text/*;q=0, */*"], 406), (["text/event-stream, application/json;q=2"], 406)],
        *[(["application/json;q=, text/event-stream"], 406), (["application/json text/event-stream"], 406)],
    ],
)
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("replies", ["json", "stream"])
def test_the_client_takes_both_kinds_of_answers(
    server: HttpThread, streaming: HttpThread, accept: list[str], status: int, era: str, replies: str
) -> None:
    lines = [f"Accept: {line}" for line in accept]
    serving = server if replies == "json" else streaming
    assert serving.post(of(era, listing()), *lines, without=["accept"], revision=era).status == status


@pytest.fixture(scope="module")
def streaming() -> Iterator[HttpThread]:
    with HttpThread(narrowed(), replies="stream") as running:
        yield running


MALFORMED: list[tuple[bytes, int]] = [
    (b"", -32700),
    (b"garbage sub-mitted", -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"', -32700),
    (b"\xff\xfe", -32700),
    (b"\xef\xbb\xbf{}", -32700),
    ('{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"), -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"sub-mitted":1,"sub-mitted":2}}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"id":"sub-mitted","method":"ping"}', -32700),
    (b'{"jsonrpc":"2.0","id":"x","method":"ping","params":{"a":"\\ud800"}}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1e999}}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"1" * 5000 + b"}}", -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * 100 + b"]" * 100 + b"}}", -32700),
    (b"[" * 30000 + b"]" * 30000, -32700),
    (b"[]", -32600),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
    (b"7", -32600),
    (b"null", -32600),
    (b'"sub-mitted"', -32600),
    (b"{}", -32600),
    (b'{"jsonrpc":"2.0","id":"sub-mitted"}', -32600),
    (b'{"jsonrpc":"1.0","id":"sub-mitted","method":"ping"}', -32600),
    (b'{"jsonrpc":2.0,"id":1,"method":"ping"}', -32600),
    (b'{"id":1,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":["sub-mitted"],"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":null}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":["sub-mitted"]}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"result":{"sub-mitted":1}}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"sub-mitted"}}', -32600),
]


@pytest.mark.parametrize(("body", "code"), MALFORMED)
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("replies", ["json", "stream"])
def test_what_is_no_message_is_refused_without_a_word_of_it(
    server: HttpThread, streaming: HttpThread, body: bytes, code: int, era: str, replies: str
) -> None:
    reply = (server if replies == "json" else streaming).post(body, revision=era)
    assert reply.error == (400, code)
    assert reply.json["id"] is None
    assert reply.json.keys() == {"jsonrpc", "id", "error"}
    assert reply.header("content-type") == "application/json"
    assert MARK not in reply.body.decode()


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"jsonrpc": "2.0", "id": 1, "method": MARK}, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": {MARK: 1}}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "free", "arguments": [MARK]}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": MARK}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": MARK}}, -32602),
    ],
)
def test_errors_of_the_protocol_quote_nothing(server: HttpThread, era: str, message: dict[str, Any], code: int) -> None:
    written = of(era, message)
    name = message.get("params", {}).get("name")
    lines = [f"Mcp-Method: {message['method']}", *([f"Mcp-Name: {name}"] if isinstance(name, str) else [])]
    reply = server.post(json.dumps(written).encode(), *lines, revision=era)
    if era == MODERN and isinstance(name, dict):
        assert reply.status == 400  # the name that the header should have
    else:
        assert reply.json["error"]["code"] == code
        assert reply.status == (200 if era == OLDER else 404 if code == -32601 else 400)
    assert reply.json["id"] == 1
    assert MARK not in reply.body.decode()


@pytest.mark.parametrize("replies", ["json", "stream"])
@pytest.mark.parametrize("method", ["ping", "prompts/list", "resources/list"])
def test_other_methods_are_there_or_not(server: HttpThread, streaming: HttpThread, method: str, replies: str) -> None:
    serving = server if replies == "json" else streaming
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}
    reply = serving.post(modern(message), revision=MODERN)
    assert reply.error == (404, -32601)
    older = serving.post(message)
    assert older.status == 200
    assert (b'"result":{}' if method == "ping" else b'"code":-32601') in older.body


@pytest.mark.parametrize("request_id", ["x", "", "\u00e9\u202e", 0, -1, 10**30])
@pytest.mark.parametrize("era", ERAS)
def test_every_id_comes_back_as_it_was(server: HttpThread, request_id: Any, era: str) -> None:
    reply = server.post(of(era, listing(request_id)), revision=era)
    assert reply.status == 200
    assert reply.json["id"] == request_id
    assert type(reply.json["id"]) is type(request_id)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("chunks", [None, [1, 1, 1], [100] * 5, [40000]])
def test_a_body_may_come_in_any_pieces(server: HttpThread, era: str, chunks: list[int] | None) -> None:
    message = json.dumps(of(era, calling("item.show", {"id": "a"}))).encode()
    lines = modern_lines(calling("item.show")) if era == MODERN else []
    for size in (len(message), BODY):
        reply = server.post(message.ljust(size), *lines, revision=era, chunks=chunks)
        assert reply.result["structuredContent"] == {"id": "a"}


@pytest.mark.parametrize("chunks", [None, [1], [BODY], [BODY, 1], [30000, 30000, 30000]])
def test_a_body_that_is_too_large_is_refused(server: HttpThread, chunks: list[int] | None) -> None:
    message = json.dumps(listing()).encode()
    assert server.post(message.ljust(BODY + 1), chunks=chunks).error == (413, -32600)
    assert server.post(message.ljust(3 * BODY), chunks=chunks).error == (413, -32600)


def test_a_body_of_a_declared_size_is_refused_before_it_comes(server: HttpThread) -> None:
    head = post(b"", f"Content-Length: {BODY + 1}", "Expect: 100-continue", without=["content-length"])
    with server.connect() as connection:
        assert connection.exchange(head).error == (413, -32600)


def test_a_client_that_waits_to_be_asked_for_the_body_is_asked(server: HttpThread) -> None:
    body = json.dumps(listing()).encode()
    head = post(b"", f"Content-Length: {len(body)}", "Expect: 100-continue", without=["content-length"])
    with server.connect() as connection:
        connection.send(head)
        connection.send(body)
        assert connection.reply().status == 200


def test_the_size_of_the_body_is_told_in_one_way(server: HttpThread) -> None:
    body = json.dumps(listing()).encode()
    with server.connect() as connection:
        connection.send(post(body, f"Content-Length: {len(body)}", chunks=[1]))
        assert connection.reply().error == (400, -32600)
        assert connection.is_over()


@pytest.mark.parametrize("sent_first", [b"1\r\n{\r\n", b""])
def test_pieces_that_are_none_end_the_connection(server: HttpThread, sent_first: bytes) -> None:
    with server.connect() as connection:
        connection.send(post(b"", "Transfer-Encoding: chunked", without=["content-length"]) + sent_first)
        connection.send(b"zz\r\n")
        assert connection.reply().body == b"Invalid HTTP request received."
        assert connection.is_over()


def test_pieces_that_are_none_after_the_answer_end_the_connection(
    server: HttpThread, caplog: pytest.LogCaptureFixture
) -> None:
    with server.connect() as connection:
        connection.send(post(b"", "Transfer-Encoding: chunked", "Origin: null", without=["content-length"]))
        assert connection.reply().status == 403
        connection.send(b"zz\r\n")
        assert connection.is_over()
    assert not [record for record in caplog.records if record.name == "asyncio"]


@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: 5", "Content-Length: 6"],
        ["Content-Length: -1"],
        ["Content-Length: 1e3"],
        [f"Content-Length: {'9' * 5000}"],
        ["Transfer-Encoding: gzip, chunked"],
        ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
        ["Bad Name: x"],
        ["X: \x00"],
    ],
)
def test_what_is_no_http_is_told_so_without_a_word_of_it(server: HttpThread, lines: list[str]) -> None:
    request = post(b"", *lines, without=["content-length"])
    reply = server.exchange(request)
    assert reply.status == 400
    assert reply.body == b"Invalid HTTP request received."


def test_a_folded_header_is_read_as_one_line(server: HttpThread) -> None:
    request = post(listing(), "MCP-Protocol-Version: 2025-06-18", " 2025-06-18", revision=None)
    assert server.exchange(request).error == (400, -32022)
    folded = post(listing(), "Host: localhost", "\tevil.example", without=["host"])
    assert server.exchange(folded).error == (421, -32600)


def test_a_head_has_a_limit(server: HttpThread) -> None:
    with server.connect() as connection:
        connection.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 200_000)
        assert connection.head()[0] == 400


def test_what_a_fault_says_stays_in_the_server(
    server: HttpThread, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError(MARK)

    monkeypatch.setattr("verbc.support.http_gate.read_body", broken)
    reply = server.post(listing())
    assert reply.error == (500, -32603)
    assert MARK not in reply.body.decode()
    assert caplog.records[-1].verbc_fields["correlation_id"] in reply.json["error"]["message"]  # type: ignore[attr-defined]
