"""Messages and the revision that they are of: ids, versions, eras that do not agree, methods, tools and arguments."""

from __future__ import annotations

from typing import Any

import pytest

from .wire import LEGACY, MODERN, REVISIONS, Client, Request, initialize_of, message_of, meta_of
from .world import World, job_of
from .wrong import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MARK,
    UNKNOWN_METHOD,
    UNSUPPORTED,
    edited,
    sent,
)

NOT_OFFERED = ("2025-11-25", "2025-03-26", "2024-11-05", "2024-10-07", "2026-07-29", MARK, "", f"{LEGACY}, {LEGACY}")

pytestmark = pytest.mark.usefixtures("nothing_logged")


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
