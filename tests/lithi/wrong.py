"""Requests that are wrong in one way each: how they come about, and how they may be answered."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .servers import GENERATED
from .wire import LEGACY, MODERN, Change, Reply, Request
from .world import World

MARK = "zqmark"

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
HEADER_MISMATCH, UNSUPPORTED = -32020, -32022


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
    Wrong("a longer Content-Type", header("Content-Type", "application/jsonx"), (400,)),
    Wrong("a form", header("Content-Type", "application/x-www-form-urlencoded"), (400,)),
    Wrong("two types", header("Content-Type", "application/json", "text/plain"), (400,)),
    Wrong("another charset", header("Content-Type", f"application/json; charset={MARK}"), (415,)),
    Wrong("a compressed body", header("Content-Encoding", "gzip"), (415,)),
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

(OPERATION,) = json.loads((GENERATED / "lithi_mcp" / "openapi.json").read_text())["paths"]["/mcp"].values()


def sent(world: World, request: Request) -> Reply:
    """The reply to a request that is to be refused: without what was sent, and without a word to the service.

    Its status is one of those that the description of the endpoint has.
    """
    before = world.requests()
    reply = world.ada.endpoint.send(request)
    assert str(reply.status) in OPERATION["responses"], reply
    assert not reply.holds(MARK), reply
    assert world.requests() == before
    return reply
