"""What tools return: binary content as receipts, nothing twice, nothing cut, and nothing that acts on a terminal."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from typing import Any

import pytest

from .manifests import GET, manifest, tool
from .places import Place
from .processes import Gateway
from .scripted import Json, Scripted

EVENT = {"event_id": "evt_123"}
BYTES = random.Random(7).randbytes(3000)  # noqa: S311 - any will do
DATA = base64.b64encode(BYTES).decode()
RECEIPT: Json = {
    "content_omitted": True,
    "raw_content_retained": False,
    "content_encoding": "base64",
    "base64_valid": True,
    "bytes": len(BYTES),
    "sha256": hashlib.sha256(BYTES).hexdigest(),
    "sha256_basis": "decoded_bytes",
}


@pytest.fixture(autouse=True)
def may_read(place: Place) -> None:
    place.grant("read mcp:*")


def returned(gateway: Gateway, calendar: Scripted, content: list[Any], structured: Any = ...) -> Json:
    """What a caller gets of a result."""
    told = {"content": content, "isError": False, **({} if structured is ... else {"structuredContent": structured})}
    calendar.tell(results={"cal.get": told})
    return gateway.call("calendar", "event_get", EVENT).result


def text(value: str, **more: Any) -> Json:
    return {"type": "text", "text": value, **more}


def test_a_result_without_structure_has_none(gateway: Gateway, calendar: Scripted) -> None:
    assert returned(gateway, calendar, [text("a"), text("b")]) == {
        "content": [text("a"), text("b")],
        "structured_content": None,
    }
    assert returned(gateway, calendar, []) == {"content": [], "structured_content": None}


@pytest.mark.parametrize(
    ("kept", "blocks"),
    [
        (0, [text('{"a": [1, 2]}')]),
        (0, [text(' {"a":[1,2]}\n')]),
        (1, [text('{"a": [2, 1]}')]),
        (1, [text('{"a": [1, 2], "b": 3}')]),
        (1, [text("not json")]),
        (1, [text('{"a": [1, 2]}', annotations={"audience": ["user"]})]),
        (1, [text('{"a": [true, 2]}')]),
        (1, [text('{"a": [1, 2]}'), text("more")]),
    ],
)
def test_a_text_that_repeats_the_structure_is_dropped(
    gateway: Gateway, calendar: Scripted, kept: int, blocks: list[Json]
) -> None:
    result = returned(gateway, calendar, blocks, {"a": [1, 2]})
    assert result["structured_content"] == {"a": [1, 2]}
    assert result["content"] == (blocks[-kept:] if kept else [])


@pytest.mark.parametrize("kind", ["image", "audio"])
def test_media_become_receipts(gateway: Gateway, calendar: Scripted, kind: str) -> None:
    block = {"type": kind, "data": DATA, "mimeType": f"{kind}/x", "name": "n"}
    (receipt,) = returned(gateway, calendar, [block])["content"]
    assert receipt.items() >= {**RECEIPT, "type": kind, "name": "n"}.items()
    assert f"{kind}/x" in (receipt.get("mimeType"), receipt.get("mime_type"))
    assert "data" not in receipt


def test_an_embedded_resource_becomes_a_receipt(gateway: Gateway, calendar: Scripted) -> None:
    resource = {"uri": "file:///a", "mimeType": "application/x", "blob": DATA}
    (block,) = returned(gateway, calendar, [{"type": "resource", "resource": resource}])["content"]
    assert block["resource"].items() >= {**RECEIPT, "uri": "file:///a"}.items()
    assert "blob" not in block["resource"]


def test_an_embedded_text_stays(gateway: Gateway, calendar: Scripted) -> None:
    block = {"type": "resource", "resource": {"uri": "file:///a", "text": "plain"}}
    assert returned(gateway, calendar, [block])["content"] == [block]


def test_binary_content_is_found_at_any_depth(gateway: Gateway, calendar: Scripted) -> None:
    image = {"type": "image", "data": DATA, "mimeType": "image/png"}
    deep: Any = {"list": [{"in": [image]}]}
    result = returned(gateway, calendar, [text(json.dumps(deep)), text(f"as text {DATA}")], deep)
    assert DATA not in json.dumps({**result, "content": result["content"][:-1]})
    assert result["structured_content"]["list"][0]["in"][0].items() >= RECEIPT.items()


def test_binary_content_inside_of_text_is_found(gateway: Gateway, calendar: Scripted) -> None:
    image = {"type": "image", "data": DATA, "mimeType": "image/png"}
    (block,) = returned(gateway, calendar, [text(json.dumps({"shot": image}))])["content"]
    assert DATA not in json.dumps(block)
    assert RECEIPT["sha256"] in json.dumps(block)


def test_what_a_server_says_of_its_content_is_set_apart(gateway: Gateway, calendar: Scripted) -> None:
    block = {"type": "image", "data": DATA, "mimeType": "image/png", "bytes": 1, "sha256": "0" * 64}
    (receipt,) = returned(gateway, calendar, [block])["content"]
    assert receipt.items() >= RECEIPT.items()
    assert receipt["provider_reported_content_metadata"] == {"bytes": 1, "sha256": "0" * 64}


def test_content_that_is_no_base64_is_told_as_such(gateway: Gateway, calendar: Scripted) -> None:
    broken = "this is not base64 !!!"
    (receipt,) = returned(gateway, calendar, [{"type": "image", "data": broken, "mimeType": "image/png"}])["content"]
    assert receipt["base64_valid"] is False
    assert receipt["encoded_bytes"] == len(broken)
    assert receipt["encoded_sha256"] == hashlib.sha256(broken.encode()).hexdigest()
    assert "bytes" not in receipt
    assert broken not in json.dumps(receipt)


def test_data_that_is_no_medium_stays(gateway: Gateway, calendar: Scripted) -> None:
    plain = {"data": "a value", "type": "row"}
    assert returned(gateway, calendar, [], plain)["structured_content"] == plain


def test_characters_that_act_on_terminals_are_escaped(gateway: Gateway, calendar: Scripted) -> None:
    hostile = "a\u001b[31m\u202e\u2066\u0007\u0085b\nc\td"
    result = returned(gateway, calendar, [text(hostile)], {hostile: [hostile]})
    for value in (result["content"][0]["text"], *result["structured_content"]):
        assert not set(value) & set("\u001b\u202e\u2066\u0007\u0085")
        assert value.startswith("a")
        assert "b\nc\td" in value or "b\\" in value


def test_a_result_is_whole_or_not_at_all(place: Place, gateway: Gateway, own_upstream: Scripted) -> None:
    place.add(manifest(own_upstream, "capped", [GET], max_response_bytes=4000))
    for size, status in ((3000, "ok"), (3500, "ok"), (3999, "response_too_large")):
        own_upstream.tell(results={"cal.get": {"content": [text("x" * size)], "isError": False}})
        called = gateway.call("capped", "event_get", EVENT).called
        assert called["status"] == status, size
        if status == "ok":
            assert called["result"]["content"] == [text("x" * size)]
        else:
            assert called["call_started"] is True
            assert called["error"]["code"] == "mcp_response_too_large"
            assert "xxx" not in json.dumps(called)
    assert own_upstream.count("call") == 3


def test_an_error_that_is_too_large_is_not_told_either(place: Place, gateway: Gateway, own_upstream: Scripted) -> None:
    place.add(manifest(own_upstream, "loud", [GET], max_response_bytes=4000))
    own_upstream.tell(results={"cal.get": {"content": [text("x" * 3999)], "isError": True}})
    called = gateway.call("loud", "event_get", EVENT).called
    assert called["status"] in ("mcp_error", "response_too_large")
    assert "xxx" not in json.dumps(called)


@pytest.mark.parametrize("depth", [60, 400])
def test_a_result_that_is_too_deep_is_none(gateway: Gateway, calendar: Scripted, depth: int) -> None:
    deep: Any = 1
    for _ in range(depth):
        deep = [deep]
    calendar.tell(results={"cal.get": {"content": [], "structuredContent": {"deep": deep}, "isError": False}})
    called = gateway.call("calendar", "event_get", EVENT).called
    if depth < 100:
        assert called["result"]["structured_content"] == {"deep": deep}
    else:
        assert called["status"] == "transport_error"
        assert called["call_started"] is True


@pytest.mark.parametrize(
    "result", [{}, {"content": "text"}, {"content": [7]}, {"content": [], "isError": "no"}, [], "text", None, 7]
)
def test_a_result_that_is_none_is_a_fault_of_the_transport(gateway: Gateway, calendar: Scripted, result: Any) -> None:
    calendar.tell(reply={"tools/call": {"jsonrpc": "2.0", "id": "$id", "result": result}})
    called = gateway.call("calendar", "event_get", EVENT).called
    assert called["status"] == "transport_error", called
    assert called["call_started"] is True


@pytest.mark.parametrize("structured", [[1, 2], "text", 7, True])
def test_a_structure_is_an_object(gateway: Gateway, calendar: Scripted, structured: Any) -> None:
    told = {"content": [text("x")], "structuredContent": structured, "isError": False}
    calendar.tell(results={"cal.get": told})
    gateway.call("calendar", "event_get", EVENT).ended("transport_error", started=True)


def test_numbers_are_as_they_were_sent(gateway: Gateway, calendar: Scripted) -> None:
    structured = {"large": 10**30, "small": 1.5, "whole": 1.0, "negative": -0.0}
    assert returned(gateway, calendar, [], structured)["structured_content"] == structured


def test_unknown_blocks_and_fields_are_passed_on(gateway: Gateway, calendar: Scripted) -> None:
    blocks: list[Json] = [{"type": "new", "of": {"later": 1}}, text("a", _meta={"x/y": 1})]
    assert returned(gateway, calendar, blocks)["content"] == blocks


def test_large_results_come_whole(place: Place, gateway: Gateway, own_upstream: Scripted) -> None:
    place.add(manifest(own_upstream, "large", [tool(GET)], max_response_bytes=900_000))
    own_upstream.tell(results={"cal.get": {"content": [text("y" * 700_000)], "isError": False}})
    called = gateway.call("large", "event_get", EVENT).called
    assert called["status"] == "ok", called["error"]
    assert called["result"]["content"] == [text("y" * 700_000)]
    assert called["response_bytes"] > 700_000
