"""Every rule of the envelope, byte by byte, in both revisions: what is refused, with what, and that nothing is echoed.

The request that is put out of order asks for a quote, so whatever gets through by mistake is seen at the service.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest

from .wire import (
    BOTH_TYPES,
    LEGACY,
    MODERN,
    REVISIONS,
    Change,
    Client,
    Reply,
    Request,
    connected,
    initialize_of,
    message_of,
    meta_of,
    read_reply,
)
from .world import World, job_of

MARK = "zqmark"
BODY_LIMIT = 256 * 1024
NOT_OFFERED = ("2025-11-25", "2025-03-26", "2024-11-05", "2024-10-07", "2026-07-29", MARK, "", f"{LEGACY}, {LEGACY}")

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
HEADER_MISMATCH, UNSUPPORTED = -32020, -32022

pytestmark = pytest.mark.usefixtures("nothing_logged")


@dataclass(frozen=True, slots=True)
class Wrong:
    """One thing that is wrong with a request, and how it may be answered; no codes: with any, or with none."""

    name: str
    change: Change
    statuses: tuple[int, ...]
    codes: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.name


def header(name: str, *values: str) -> Change:
    return lambda request: request.with_header(name, *values)


def body(content: bytes | str) -> Change:
    return lambda request: request.with_body(content)


def edited(edit: Callable[[dict[str, Any]], Any]) -> Change:
    """The message in the body, changed by `edit`, in place or into what it returns."""

    def change(request: Request) -> Request:
        message = json.loads(request.body)
        return request.with_json(edit(message) or message)

    return change


def member(name: str, value: Any) -> Change:
    return edited(lambda message: message.update({name: value}))


def replaced(old: str, new: str) -> Change:
    """The text of the body with one part of it written in another way."""

    def change(request: Request) -> Request:
        text = request.body.decode()
        assert old in text
        return request.with_body(text.replace(old, new))

    return change


def nested(depth: int) -> Change:
    return replaced('"triage@3"', f'{"[" * depth}"zqmark"{"]" * depth}')


ACCEPT = [
    Wrong(f"accepts only {value!r}", header("Accept", value), (406,))
    for value in (
        "application/json",
        "text/event-stream",
        f"text/{MARK}",
        "",
        f"application/json, text/{MARK}",
        "application/jsonx, text/event-stream",
    )
] + [Wrong("no Accept", header("Accept"), (406,))]

CONTENT_TYPE = [
    Wrong("Content-Type text/plain", header("Content-Type", "text/plain"), (400,)),
    Wrong("no Content-Type", header("Content-Type"), (400,)),
    Wrong("Content-Type with the marker", header("Content-Type", MARK), (400,)),
    Wrong("a longer Content-Type", header("Content-Type", "application/jsonx"), (400, 415)),
    Wrong("a form", header("Content-Type", "application/x-www-form-urlencoded"), (400,)),
    Wrong("two types", header("Content-Type", "application/json", "text/plain"), (400, 415)),
    Wrong("another charset", header("Content-Type", f"application/json; charset={MARK}"), (400, 415)),
    Wrong("a compressed body", header("Content-Encoding", "gzip"), (400, 415)),
]

VERSION_TWICE = [
    Wrong(
        f"the version as {' and '.join(values)}",
        header("MCP-Protocol-Version", *values),
        (400,),
        (INVALID_REQUEST,),
    )
    for values in (
        ("2025-11-25", LEGACY),
        (LEGACY, "2025-11-25"),
        (LEGACY, LEGACY),
        (MODERN, MODERN),
        (LEGACY, MODERN),
        (MODERN, LEGACY),
        (MARK, LEGACY),
        ("", MODERN),
    )
] + [
    Wrong(
        "the version twice, once in small letters",
        lambda request: replace(request, headers=(*request.headers, ("mcp-protocol-version", "2025-11-25"))),
        (400,),
        (INVALID_REQUEST,),
    )
]

JSON = [
    Wrong(f"the body {content[:30]!r}", body(content), (400,), (PARSE_ERROR,))
    for content in (
        b"",
        b" ",
        f"{{{MARK}".encode(),
        MARK.encode(),
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"} zqmark',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/\xff"}',
        b"\xff\xfe{\x00}\x00",
        b"\x00",
    )
] + [
    Wrong("no finite number", replaced('"triage@3"', "NaN"), (400,), (PARSE_ERROR, INVALID_REQUEST)),
    Wrong("an infinite number", replaced('"triage@3"', "-Infinity"), (400,), (PARSE_ERROR, INVALID_REQUEST)),
    Wrong("a number too large for any", replaced('"triage@3"', "1e999"), (400,), (PARSE_ERROR, INVALID_REQUEST)),
    Wrong("half of a character", replaced('"triage@3"', '"zqmark\\ud800"'), (400,), (PARSE_ERROR, INVALID_REQUEST)),
    Wrong("half of a character as a key", replaced('"workflow"', '"\\udc00"'), (400,), (PARSE_ERROR, INVALID_REQUEST)),
    Wrong("an id twice", replaced('"id": 1', '"id": 1, "id": "zqmark"'), (400,), (PARSE_ERROR, INVALID_REQUEST)),
    Wrong(
        "an argument twice",
        replaced('"workflow":', '"workflow": "zqmark@1", "workflow":'),
        (400,),
        (PARSE_ERROR, INVALID_REQUEST),
    ),
    Wrong("deep nesting", nested(100_000), (400,), (PARSE_ERROR, INVALID_REQUEST)),
]

ENVELOPE = [
    Wrong(f"{name}", change, (400,), (INVALID_REQUEST,))
    for name, change in {
        "a batch": edited(lambda message: [message]),
        "a batch of two": edited(lambda message: [message, message]),
        "an empty batch": body("[]"),
        "text": body(f'"{MARK}"'),
        "a number": body("1"),
        "true": body("true"),
        "null": body("null"),
        "no member but one of its own": body(f'{{"{MARK}": 1}}'),
        "nothing in an object": body("{}"),
        "no jsonrpc": edited(lambda message: {name: message[name] for name in ("id", "method", "params")}),
        "another jsonrpc": member("jsonrpc", MARK),
        "jsonrpc as a number": member("jsonrpc", 2.0),
        "no method": edited(lambda message: {name: message[name] for name in ("jsonrpc", "id", "params")}),
        "a method that is no text": member("method", {MARK: 1}),
        "the id null": member("id", None),
        "the id a fraction": member("id", 1.5),
        "the id true": member("id", True),
        "the id an object": member("id", {MARK: MARK}),
        "the id a list": member("id", [MARK]),
        "params as a list": member("params", [MARK]),
        "params as text": member("params", MARK),
    }.items()
]

PARTS = [*ACCEPT, *CONTENT_TYPE, *VERSION_TWICE, *JSON, *ENVELOPE]


@pytest.fixture(params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def good(world: World, revision: str) -> Request:
    """A request for a quote, with nothing wrong."""
    return world.ada.endpoint.call_request(revision, "lithi.quote", {"job": job_of()})


@pytest.fixture
def nothing_logged(world: World) -> Iterator[None]:
    """Sees to it that no test leaves its marker in the log of the server; replies are looked at where they come in."""
    yield
    assert MARK not in world.server.output.text.lower()


def sent(world: World, request: Request) -> Reply:
    """The reply to a request that is to be refused: without what was sent, and without a word to the service."""
    before = world.requests()
    reply = world.ada.endpoint.send(request)
    assert not reply.holds(MARK), reply
    assert world.requests() == before
    return reply


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


# Ids


@pytest.mark.parametrize("id_", [0, 1, -7, 2**53, "", "a", "1", 10**30, "\u00e9\U0001f600"])
def test_an_answer_has_the_id_of_its_request(world: World, revision: str, id_: Any) -> None:
    reply = world.ada.endpoint.ask(revision, "tools/list", id_=id_)
    assert reply.result["tools"]
    assert reply.json["id"] == id_
    assert type(reply.json["id"]) is type(id_)


def test_a_whole_number_written_with_a_point_is_an_id_or_none_but_never_silence(world: World, revision: str) -> None:
    request = world.ada.endpoint.request(revision, message_of(revision, "tools/list", id_=1.0))
    reply = sent(world, request)
    assert reply.status in (200, 400), reply
    if reply.status == 200:
        assert reply.json["id"] == 1
    else:
        assert reply.error["code"] == INVALID_REQUEST


@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/cancelled", "notifications/zqmark"])
def test_a_notification_is_taken_in_silence(world: World, revision: str, method: str) -> None:
    message = message_of(revision, method, {"requestId": MARK} if method.endswith("cancelled") else None)
    del message["id"]
    reply = sent(world, world.ada.endpoint.request(revision, message))
    assert (reply.status, reply.body) == (202, b"")


def test_a_call_without_an_id_does_nothing(world: World, good: Request) -> None:
    silent = edited(lambda message: {name: part for name, part in message.items() if name != "id"})
    assert sent(world, silent(good)).status in (202, 400)


# Versions


@pytest.mark.parametrize("version", [*NOT_OFFERED, None])
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "ping", "zqmark"])
def test_a_version_that_is_not_offered(world: World, version: str | None, method: str) -> None:
    message = message_of(LEGACY, method, {"name": "lithi.quote", "arguments": {"job": job_of()}})
    request = world.ada.endpoint.request(LEGACY, message)
    reply = sent(world, request.with_header("MCP-Protocol-Version", *([] if version is None else [version])))
    assert reply.status == 400
    assert reply.error["code"] == UNSUPPORTED
    assert reply.error["data"]["supported"] == [MODERN, LEGACY]


@pytest.mark.parametrize("version", ["2025-11-25", "2024-11-05", "2026-07-29", "2027-01-01", MARK])
def test_a_version_that_is_not_offered_in_header_and_body(world: World, version: str) -> None:
    message = message_of(MODERN, "tools/list", {"_meta": meta_of(version)})
    request = world.ada.endpoint.request(MODERN, message).with_header("MCP-Protocol-Version", version)
    reply = sent(world, request)
    assert reply.status == 400
    assert reply.error["code"] in (UNSUPPORTED, INVALID_REQUEST)
    if reply.error["code"] == UNSUPPORTED:
        assert reply.error["data"]["supported"] == [MODERN, LEGACY]


@pytest.mark.parametrize("version", [*NOT_OFFERED, LEGACY, None])
def test_a_header_that_does_not_say_what_the_body_says(world: World, version: str | None) -> None:
    request = world.ada.endpoint.call_request(MODERN, "lithi.quote", {"job": job_of()})
    reply = sent(world, request.with_header("MCP-Protocol-Version", *([] if version is None else [version])))
    assert reply.status == 400
    assert reply.error["code"] in (HEADER_MISMATCH, UNSUPPORTED, INVALID_REQUEST)


def test_a_body_of_the_older_revision_under_the_header_of_the_newer(world: World) -> None:
    request = world.ada.endpoint.call_request(LEGACY, "lithi.quote", {"job": job_of()})
    for form in (
        request.with_header("MCP-Protocol-Version", MODERN),
        world.ada.endpoint.call_request(MODERN, "lithi.quote", {"job": job_of()}).with_body(request.body),
    ):
        assert sent(world, form).status == 400


@pytest.mark.parametrize("meta", [LEGACY, "2025-11-25", MARK, 5, None])
def test_a_meta_of_another_version_than_the_header(world: World, meta: Any) -> None:
    message = message_of(MODERN, "tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": meta}})
    assert sent(world, world.ada.endpoint.request(MODERN, message)).status == 400


def test_a_meta_of_the_newer_revision_under_the_header_of_the_older(world: World) -> None:
    for version in (MODERN, LEGACY, MARK):
        message = message_of(LEGACY, "tools/list", {"_meta": meta_of(version)})
        assert sent(world, world.ada.endpoint.request(LEGACY, message)).status == 400


@pytest.mark.parametrize("meta", [None, [], MARK, {}, {MARK: MARK}])
def test_a_meta_without_what_the_newer_revision_wants(world: World, meta: Any) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    assert sent(world, world.ada.endpoint.request(MODERN, message)).status == 400


def test_other_members_of_meta_are_of_no_consequence(world: World, revision: str) -> None:
    message = message_of(revision, "tools/list", {"_meta": {"example.com/zqmark": MARK, "progressToken": MARK}})
    reply = world.ada.endpoint.send(world.ada.endpoint.request(revision, message))
    assert len(reply.result["tools"]) == 5
    assert not reply.holds(MARK)


@pytest.mark.parametrize("version", [*REVISIONS, *NOT_OFFERED])
def test_initialize_is_answered_with_the_one_revision_that_has_it(world: World, version: str) -> None:
    request = world.ada.endpoint.request(LEGACY, initialize_of(version))
    for form in (request, request.with_header("MCP-Protocol-Version")):
        reply = world.ada.endpoint.send(form)
        assert reply.result["protocolVersion"] == LEGACY
        assert reply.header("mcp-session-id") is None
        assert not reply.holds(MARK)


@pytest.mark.parametrize("version", NOT_OFFERED)
def test_initialize_under_a_header_that_is_not_offered(world: World, version: str) -> None:
    request = world.ada.endpoint.request(LEGACY, initialize_of())
    reply = sent(world, request.with_header("MCP-Protocol-Version", version))
    assert (reply.status, reply.error["code"]) == (400, UNSUPPORTED)
    assert reply.error["data"]["supported"] == [MODERN, LEGACY]


def test_initialize_is_none_of_the_newer_revision(world: World) -> None:
    under_header = world.ada.endpoint.request(LEGACY, initialize_of()).with_header("MCP-Protocol-Version", MODERN)
    whole = world.ada.endpoint.request(MODERN, message_of(MODERN, "initialize", initialize_of(MODERN)["params"]))
    with_meta = world.ada.endpoint.request(LEGACY, initialize_of(LEGACY, _meta=meta_of(MODERN)))
    for request in (under_header, whole, with_meta):
        assert sent(world, request).status in (400, 404)


def test_initialize_without_what_belongs_to_it(world: World) -> None:
    for params in (
        {},
        {"protocolVersion": 5},
        {"protocolVersion": MARK},
        {"protocolVersion": {MARK: 1}, "capabilities": MARK},
    ):
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        reply = sent(world, world.ada.endpoint.request(LEGACY, message))
        assert reply.error["code"] in (INVALID_PARAMS, INVALID_REQUEST)


@pytest.mark.parametrize("name", ["Mcp-Method", "Mcp-Name"])
@pytest.mark.parametrize(
    "values", [[], [MARK], [""], ["lithi.run"], ["tools/list"], ["{own}", "{own}"], ["{own}", MARK], ["zqmark\xe9"]]
)
def test_headers_of_the_newer_revision_that_do_not_say_what_the_body_says(
    world: World, name: str, values: list[str]
) -> None:
    own = {"Mcp-Method": "tools/call", "Mcp-Name": "lithi.quote"}[name]
    request = world.ada.endpoint.call_request(MODERN, "lithi.quote", {"job": job_of()})
    reply = sent(world, request.with_header(name, *(value.replace("{own}", own) for value in values)))
    assert (reply.status, reply.error["code"]) == (400, HEADER_MISMATCH)


# Methods of JSON-RPC, tools and their arguments


@pytest.mark.parametrize(
    "method", ["zqmark", "tools/zqmark", "", "resources/list", "prompts/list", "tasks/list", "logging/setLevel"]
)
def test_a_method_that_is_not_served(world: World, revision: str, method: str) -> None:
    message = message_of(revision, method, {MARK: MARK, "level": "debug"})
    reply = sent(world, world.ada.endpoint.request(revision, message))
    assert reply.error["code"] == UNKNOWN_METHOD
    assert reply.status == (200 if revision == LEGACY else 404)


@pytest.mark.parametrize("name", ["lithi.sixth", "zqmark", "lithi.Quote", "lithi", "lithi.quote.", "request"])
def test_a_tool_that_there_is_not(world: World, revision: str, name: str) -> None:
    request = world.ada.endpoint.call_request(revision, name, {"job": job_of(), MARK: MARK})
    reply = sent(world, request)
    assert reply.error["code"] == INVALID_PARAMS
    assert reply.status == (200 if revision == LEGACY else 400)


@pytest.mark.parametrize("name", [None, 5, ["lithi.quote"], {MARK: MARK}, True])
def test_a_name_that_is_no_text(world: World, revision: str, name: Any) -> None:
    reply = sent(world, world.ada.endpoint.call_request(revision, name, {"job": job_of()}))
    assert reply.error["code"] in (INVALID_PARAMS, HEADER_MISMATCH)
    assert reply.status == (200 if revision == LEGACY else 400)


@pytest.mark.parametrize("arguments", [MARK, 5, [MARK], [{"job": job_of()}], True, ""])
def test_arguments_that_are_no_object(world: World, revision: str, arguments: Any) -> None:
    reply = sent(world, world.ada.endpoint.call_request(revision, "lithi.quote", arguments))
    assert reply.error["code"] == INVALID_PARAMS
    assert reply.status == (200 if revision == LEGACY else 400)


def test_one_connection_carries_requests_of_both_revisions(world: World) -> None:
    client = Client(world.ada.endpoint)
    try:
        for number in range(6):
            asked = REVISIONS[number % 2]
            assert client.call("lithi.quote", {"job": job_of()}, asked).work["state"] == "quoted"
    finally:
        client.close()


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
