"""Every rule of HTTP, byte by byte, in both revisions: what is refused, with what, and that nothing is echoed.

The request that is put out of order asks for a quote, so whatever gets through by mistake is seen at the service.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from .wire import BOTH_TYPES, Request, connected, read_reply
from .world import World
from .wrong import ACCEPT, CONTENT_TYPE, ENVELOPE, JSON, MARK, PARTS, Wrong, sent

BODY_LIMIT = 256 * 1024

pytestmark = pytest.mark.usefixtures("nothing_logged")


def test_what_nothing_is_wrong_with_is_answered(world: World, good: Request) -> None:
    assert world.ada.endpoint.send(good).work["state"] == "quoted"


@pytest.mark.parametrize("wrong", PARTS, ids=str)
def test_a_part_that_is_wrong(world: World, good: Request, wrong: Wrong) -> None:
    reply = sent(world, wrong.change(good))
    assert reply.status in wrong.statuses, reply
    if reply.body:
        assert reply.header("content-type") == "application/json"
        assert set(reply.json) == {"jsonrpc", "id", "error"}
        assert reply.error["code"] in (wrong.codes or (reply.error["code"],))


@pytest.mark.parametrize("wrong", PARTS, ids=str)
@pytest.mark.parametrize("key", [None, "zqmark-no-key"])
def test_without_a_key_nothing_but_that_is_told(world: World, good: Request, wrong: Wrong, key: str | None) -> None:
    keyless = good.with_header("Authorization", *([] if key is None else [f"Bearer {key}"]))
    reply = sent(world, wrong.change(keyless))
    assert reply.status == 401, reply
    assert reply.json["error"] == "invalid_token"


# Methods


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH", "QUERY", "ZQMARK"])
def test_no_method_but_post(world: World, good: Request, method: str) -> None:
    reply = sent(world, good.with_method(method))
    assert reply.status == 405
    assert reply.header("allow") == "POST"


@pytest.mark.parametrize("method", ["GET", "DELETE", "HEAD", "OPTIONS"])
def test_no_method_but_post_without_a_body_either(world: World, good: Request, method: str) -> None:
    reply = sent(world, good.with_method(method).with_body("").with_header("Content-Type"))
    assert reply.status == 405
    assert reply.header("allow") == "POST"


def test_a_get_that_asks_for_a_stream_has_an_end(world: World, good: Request) -> None:
    asking = good.with_method("GET").with_body("").with_header("Accept", "text/event-stream")
    reply = sent(world, asking)
    assert reply.status == 405
    assert reply.header("content-type") != "text/event-stream"


def test_an_unknown_method_of_http_comes_to_its_end_before_its_key_is_looked_at(world: World, good: Request) -> None:
    reply = sent(world, good.with_method("GET").with_header("Authorization"))
    assert reply.status in (401, 405)


# Host and Origin


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "HEAD", "OPTIONS"])
@pytest.mark.parametrize(
    "host",
    [
        "zqmark.example",
        "127.0.0.1.zqmark.example:{port}",
        "localhost.zqmark:{port}",
        "zqmark@localhost:{port}",
        "zqmark\xe9",
        "",
    ],
)
def test_a_host_that_is_not_this_one(world: World, good: Request, method: str, host: str) -> None:
    reply = sent(world, good.with_method(method).with_header("Host", host.format(port=world.server.port)))
    assert reply.status == 421, reply


def test_no_host_or_two(world: World, good: Request) -> None:
    own = f"127.0.0.1:{world.server.port}"
    for values in ([], [own, "zqmark.example"], ["zqmark.example", own]):
        assert sent(world, good.with_header("Host", *values)).status in (400, 421)


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}"])
def test_hosts_of_this_machine(world: World, good: Request, host: str) -> None:
    request = good.with_header("Host", host.format(port=world.server.port))
    assert world.ada.endpoint.send(request).status == 200


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "HEAD", "OPTIONS"])
@pytest.mark.parametrize(
    "origin",
    [
        "http://zqmark.example",
        "https://zqmark.example:443",
        "null",
        "",
        "http://127.0.0.1.zqmark.example:{port}",
        "http://localhost:{port}.zqmark.example",
        "http://localhost:{port}@zqmark.example",
        "http://zqmark@localhost:{port}",
        "zqmark",
        "http://localhost:{port}/zqmark",
        "zqmark\xe9",
    ],
)
def test_an_origin_that_is_not_let_in(world: World, good: Request, method: str, origin: str) -> None:
    reply = sent(world, good.with_method(method).with_header("Origin", origin.format(port=world.server.port)))
    assert reply.status == 403, reply
    assert reply.header("access-control-allow-origin") is None


def test_two_origins_are_not_let_in(world: World, good: Request) -> None:
    own = f"http://127.0.0.1:{world.server.port}"
    for values in ([own, "http://zqmark.example"], ["http://zqmark.example", own]):
        assert sent(world, good.with_header("Origin", *values)).status in (400, 403)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_own_origin(world: World, good: Request, host: str) -> None:
    request = good.with_header("Origin", f"http://{host}:{world.server.port}")
    assert world.ada.endpoint.send(request.with_header("Host", f"{host}:{world.server.port}")).status == 200


# Keys


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [""],
        ["Bearer"],
        ["Bearer "],
        ["Bearer zqmark"],
        ["Basic zqmark"],
        ["Basic {key}"],
        ["{key}"],
        ["Bearer {key}x"],
        ["Bearer {key} zqmark"],
        ["Bearer zqmark,Bearer {key}"],
        ["Bearer {key}", "Bearer {key}"],
        ["Bearer zqmark", "Bearer {key}"],
        ["Bearer zqmark\xe9"],
        ["Bearer " + "zqmark" * 1000],
    ],
    ids=repr,
)
def test_no_key_or_no_good_one(world: World, good: Request, lines: list[str]) -> None:
    request = good.with_header("Authorization", *(line.replace("{key}", world.ada.key) for line in lines))
    reply = sent(world, request)
    assert reply.status == 401, reply
    assert str(reply.header("www-authenticate")).startswith("Bearer")
    assert reply.json["error"] == "invalid_token"
    assert not reply.holds(world.ada.key)


def test_a_key_anywhere_else_is_none(world: World, good: Request) -> None:
    keyless = good.with_header("Authorization")
    elsewhere = [
        replace(keyless, target=f"/mcp?access_token={world.ada.key}"),
        keyless.with_header("X-Api-Key", world.ada.key),
        keyless.with_header("Cookie", f"access_token={world.ada.key}"),
        keyless.with_header("Proxy-Authorization", f"Bearer {world.ada.key}"),
    ]
    assert [sent(world, request).status for request in elsewhere] == [401] * 4


@pytest.mark.parametrize("word", ["bearer", "BEARER", "Bearer"])
def test_the_word_before_a_key_in_any_case(world: World, good: Request, word: str) -> None:
    assert world.ada.endpoint.send(good.with_header("Authorization", f"{word} {world.ada.key}")).status == 200


def test_without_a_key_no_body_is_waited_for(world: World, good: Request) -> None:
    request = replace(good.with_header("Authorization").with_header("Content-Length", "1000000000"), framed=True)
    assert sent(world, request).status == 401


# Accept and Content-Type that are fine


@pytest.mark.parametrize(
    "accept",
    [
        "text/event-stream, application/json",
        "text/event-stream,application/json",
        "application/json;q=0.9, text/event-stream;q=0.1, text/zqmark",
        "Application/JSON, Text/Event-Stream",
    ],
)
def test_both_types_in_any_form(world: World, good: Request, accept: str) -> None:
    assert world.ada.endpoint.send(good.with_header("Accept", accept)).status == 200


def test_both_types_in_two_lines(world: World, good: Request) -> None:
    assert world.ada.endpoint.send(good.with_header("Accept", *BOTH_TYPES.split(", "))).status == 200


@pytest.mark.parametrize("value", ["application/json; charset=utf-8", 'application/json;charset="UTF-8"'])
def test_json_that_says_its_charset(world: World, good: Request, value: str) -> None:
    assert world.ada.endpoint.send(good.with_header("Content-Type", value)).status == 200


# Bodies


def padded(request: Request, size: int) -> Request:
    return request.with_body(request.body + b" " * (size - len(request.body)))


def test_a_body_of_just_the_limit(world: World, good: Request) -> None:
    whole = padded(good, BODY_LIMIT)
    assert world.ada.endpoint.send(whole).status == 200
    assert world.ada.endpoint.send(whole.chunked()).status == 200
    assert world.ada.endpoint.send(good.chunked(1)).status == 200


@pytest.mark.parametrize("more", [1, BODY_LIMIT * 8])
def test_a_body_over_the_limit(world: World, good: Request, more: int) -> None:
    request = padded(good, BODY_LIMIT + more)
    for form in (request, request.chunked(), request.chunked(BODY_LIMIT * 16)):
        assert sent(world, form).status == 413


def test_a_body_that_is_said_to_be_too_long_is_not_waited_for(world: World, good: Request) -> None:
    request = replace(good.with_header("Content-Length", "1000000000"), framed=True)
    assert sent(world, request).status == 413


def test_a_chunk_that_is_said_to_be_too_long_and_never_ends(world: World, good: Request) -> None:
    endless = b"40000000\r\n" + b"zqmark" * (BODY_LIMIT // 6 + 1)
    request = replace(good.with_header("Transfer-Encoding", "chunked"), body=endless, framed=True)
    assert sent(world, request).status == 413


@pytest.mark.parametrize("length", ["-1", "zqmark", "1, 2", "0x10", ""])
def test_a_length_that_is_none(world: World, good: Request, length: str) -> None:
    assert sent(world, replace(good.with_header("Content-Length", length), framed=True)).status == 400


def test_two_lengths(world: World, good: Request) -> None:
    request = replace(good.with_header("Content-Length", "10", str(len(good.body))), framed=True)
    assert sent(world, request).status == 400


@pytest.mark.parametrize("keyed", [True, False])
def test_a_refused_body_is_not_taken_for_the_next_request(world: World, good: Request, keyed: bool) -> None:
    hidden = good.encoded()
    outer = good.with_body(hidden).with_header("Connection")
    outer = outer if keyed else outer.with_header("Authorization")
    before = world.requests()
    with connected(world.server.port) as connection:
        connection.sendall(outer.encoded())
        assert read_reply(connection).status == (400 if keyed else 401)
        connection.sendall(good.with_header("Connection").with_method("GET").encoded())
        assert connection.recv(12) in (b"", b"HTTP/1.1 405")
    assert world.requests() == before


@pytest.mark.parametrize("wrong", [*ACCEPT[:1], *CONTENT_TYPE[:1], *JSON[:3], *ENVELOPE[:1]], ids=str)
def test_after_a_refusal_the_connection_goes_on_or_says_that_it_ends(world: World, good: Request, wrong: Wrong) -> None:
    with connected(world.server.port) as connection:
        connection.sendall(wrong.change(good).with_header("Connection").encoded())
        reply = read_reply(connection)
        if str(reply.header("connection")).lower() != "close":
            connection.sendall(good.with_header("Connection").encoded())
            assert read_reply(connection).status == 200


# What is not even close


@pytest.mark.parametrize(
    "target", ["/", "/mcp/", "/MCP", "/zqmark", "/mcp/zqmark", "//mcp", "/mcp%2f", "/openapi.json"]
)
def test_another_path_has_nothing(world: World, good: Request, target: str) -> None:
    assert sent(world, replace(good, target=target)).status in (401, 404)


def test_text_that_is_no_http_is_refused_and_not_repeated(world: World) -> None:
    for line in (
        b"zqmark\r\n\r\n",
        b"POST /mcp HTTP/9.9\r\nzqmark\r\n\r\n",
        b"POST zqmark\r\n\r\n",
        b"\x16\x03\x01zqmark\r\n\r\n",
    ):
        with connected(world.server.port) as connection:
            connection.sendall(line)
            assert b"zqmark" not in connection.recv(65_536)


def test_headers_without_end_are_refused(world: World) -> None:
    with connected(world.server.port) as connection:
        with suppress(ConnectionError):
            connection.sendall(b"POST /mcp HTTP/1.1\r\n" + b"X-Zqmark: zqmark\r\n" * 500_000)
        reply = read_reply(connection)
    assert 400 <= reply.status < 500
    assert not reply.holds(MARK)
