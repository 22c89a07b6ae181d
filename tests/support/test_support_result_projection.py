"""Results of upstreams, on their way to a caller."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbc.support.fingerprint import canonical_json
from verbc.support.result_projection import Projected, ResultError, ResultTooLargeError, check_bounds, projected

ROOM = 100_000
PICTURE = bytes(range(256))
ENCODED = b64encode(PICTURE).decode()
RECEIPT = {
    "content_omitted": True,
    "raw_content_retained": False,
    "content_encoding": "base64",
    "base64_valid": True,
    "bytes": 256,
    "sha256": sha256(PICTURE).hexdigest(),
    "sha256_basis": "decoded_bytes",
}
IMAGE = {"type": "image", "data": ENCODED, "mimeType": "image/png"}
SHOWN = {"type": "image", "mimeType": "image/png", **RECEIPT}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab\u202e\n\\", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "text", "n"]), inner, max_size=3),
    max_leaves=12,
)


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **more}


def content(*blocks: Any, room: int = ROOM, **more: Any) -> list[dict[str, Any]]:
    return projected({"content": list(blocks), **more}, room).content


def nested(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def test_a_plain_result_stays_as_it_is() -> None:
    block = text("Hello, wörld\n\tand 👩‍💻", annotations={"priority": 1}, _meta={"a": [None, True, 1.5]})
    assert projected({"content": [block], "_meta": {"of": "the result"}}, ROOM) == Projected(False, [block], None)
    assert projected({"content": [], "structuredContent": {"a": 1}}, ROOM) == Projected(False, [], {"a": 1})
    assert projected({"content": [], "isError": True}, ROOM) == Projected(True, [], None)


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"content": None},
        {"content": "text"},
        {"content": ["text"]},
        {"content": [None]},
        {"content": [], "isError": "false"},
        {"content": [], "isError": None},
        {"content": [], "isError": 1},
        {"content": [], "structuredContent": {"a": float("nan")}},
        {"content": [], "structuredContent": {"a\u202e": 1, "a\\u202e": 2}},
    ],
)
def test_what_is_no_result_or_could_not_be_passed_on_whole_is_an_error(result: dict[str, Any]) -> None:
    with pytest.raises(ResultError) as raised:
        projected(result, ROOM)
    assert raised.value.error_type == "McpProtocolError"


def test_texts_are_escaped_wherever_they_stand() -> None:
    hostile = "a\u202eb\u0007c\r\n"
    escaped = "a\\u202eb\\u0007c\\u000d\n"
    result = {"content": [text(hostile, **{hostile: [hostile]})], "structuredContent": [{hostile: hostile}]}
    assert projected(result, ROOM) == Projected(False, [text(escaped, **{escaped: [escaped]})], [{escaped: escaped}])


def test_a_result_of_just_the_bytes_that_there_may_be_is_passed_on() -> None:
    block = text("ä" * 20)
    size = len(canonical_json({"content": [block], "structured_content": None}))
    assert content(block, room=size) == [block]
    with pytest.raises(ResultTooLargeError):
        content(block, room=size - 1)


def test_what_is_left_out_of_a_reply_counts_for_its_size_all_the_same() -> None:
    with pytest.raises(ResultTooLargeError):
        content({**IMAGE, "data": "A" * 1000}, room=900)
    with pytest.raises(ResultTooLargeError):
        content(text(json.dumps({"a": "x" * 400})), structuredContent={"a": "x" * 400}, room=600)


def test_a_result_is_as_deep_as_a_reply_can_carry_it() -> None:
    assert content(nested(60)) == [nested(60)]
    with pytest.raises(ResultError) as raised:
        content(nested(61))
    assert raised.value.error_type == "McpResultTooDeep"
    with pytest.raises(ResultError):
        projected({"content": [], "structuredContent": nested(5000)}, ROOM)


def test_a_result_has_no_more_values_than_there_may_be() -> None:
    wide = {"content": [], "structuredContent": [0] * 100_000}
    with pytest.raises(ResultError) as raised:
        projected(wide, 1 << 23)
    assert raised.value.error_type == "McpResultTooManyValues"
    with pytest.raises(ResultError):
        check_bounds({"a": [0] * 50}, 50)
    check_bounds({"a": [0] * 48}, 200)


@pytest.mark.parametrize(
    ("block", "shown"),
    [
        (IMAGE, SHOWN),
        ({**IMAGE, "type": "audio"}, {**SHOWN, "type": "audio"}),
        ({"type": "image", "data": ENCODED}, {"type": "image", **RECEIPT}),
        ({"type": "image", "data": ENCODED, "mime_type": "image/png"}, SHOWN),
        ({"data": ENCODED, "mimeType": "video/mp4"}, {"mimeType": "video/mp4", **RECEIPT}),
        (
            {"type": "resource", "resource": {"uri": "file:///a", "blob": ENCODED, "name": "a"}},
            {"type": "resource", "resource": {"uri": "file:///a", "name": "a", **RECEIPT}},
        ),
        ({"a": [{"b": IMAGE}]}, {"a": [{"b": SHOWN}]}),
        ({**IMAGE, "annotations": {"icon": IMAGE}}, {**SHOWN, "annotations": {"icon": SHOWN}}),
    ],
)
def test_binary_content_becomes_a_receipt(block: dict[str, Any], shown: dict[str, Any]) -> None:
    assert content(block) == [shown]
    assert projected({"content": [], "structuredContent": {"a": block}}, ROOM).structured == {"a": shown}


@pytest.mark.parametrize(
    "block",
    [
        {"type": "point", "data": ENCODED},
        {"data": ENCODED},
        {"data": "text", "mimeType": "text/plain"},
        {"type": "image", "data": [1, 2]},
        {"type": "image", "uri": "https://example.org/a.png"},
        {"blob": "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"},
        {"type": ["image"], "data": ENCODED},
    ],
)
def test_what_has_no_form_of_binary_content_is_kept(block: dict[str, Any]) -> None:
    assert content(block) == [block]


@pytest.mark.parametrize("encoded", ["no base64!", "AAA", "AA-_", "AAAA\n", "=", "äöü"])
def test_broken_base64_is_measured_as_it_stands(encoded: str) -> None:
    raw = encoded.encode()
    assert content({**IMAGE, "data": encoded}) == [
        {
            "type": "image",
            "mimeType": "image/png",
            "content_omitted": True,
            "raw_content_retained": False,
            "content_encoding": "base64",
            "base64_valid": False,
            "encoded_bytes": len(raw),
            "encoded_sha256": sha256(raw).hexdigest(),
        }
    ]


def test_what_the_upstream_says_of_its_content_stands_apart() -> None:
    claims = {"bytes": 1, "sha256": "00", "base64_valid": False, "provider_reported_content_metadata": {"a": 1}}
    assert content({**IMAGE, **claims}) == [{**SHOWN, "provider_reported_content_metadata": claims}]


@pytest.mark.parametrize(
    "wrap", [lambda inner: inner, lambda inner: [inner, {"n": 1}], lambda inner: {"a": {"b": inner}}]
)
def test_binary_content_within_json_in_a_text_becomes_a_receipt(wrap: Any) -> None:
    (block,) = content(text(" " + json.dumps(wrap(IMAGE))))
    assert json.loads(block["text"]) == wrap(SHOWN)
    twice = json.dumps({"inner": json.dumps(wrap(IMAGE))})
    (block,) = content(text(twice))
    assert json.loads(json.loads(block["text"])["inner"]) == wrap(SHOWN)
    hidden = json.dumps(wrap(IMAGE)).replace('"data"', '"d\\u0061ta"')
    (block,) = content(text(hidden))
    assert ENCODED not in block["text"]


def test_a_text_without_binary_content_is_kept_to_the_letter() -> None:
    for kept in ('{ "data": 1.0 }', '{"data": "x", "data": "y"}', "[data", '{"data": ' + "[" * 5000, '"data"'):
        assert content(text(kept)) == [text(kept)]


@pytest.mark.parametrize(
    ("block", "structured", "repeated"),
    [
        (text('{"b": 2, "a": [1.0, null]}'), {"a": [1, None], "b": 2}, True),
        (text('{"a": true}'), {"a": 1}, False),
        (text('{"a": 1}', annotations={}), {"a": 1}, False),
        ({"type": "note", "text": '{"a": 1}'}, {"a": 1}, False),
        ({"type": "text", "text": 1}, {"a": 1}, False),
        (text("x"), {"result": "x"}, False),
        (text('{"a": 1} {}'), {"a": 1}, False),
        (text("null"), None, False),
        (text("7"), 7, True),
    ],
)
def test_a_text_that_is_the_structured_content_once_more_is_dropped(
    block: dict[str, Any], structured: Any, repeated: bool
) -> None:
    assert content(block, text("more"), structuredContent=structured) == [*([] if repeated else [block]), text("more")]


@given(st.lists(st.dictionaries(st.sampled_from(["a", "text", "n"]), VALUES, max_size=3), max_size=4), VALUES)
def test_what_is_passed_on_has_the_same_shape_and_nothing_that_steers(blocks: list[Any], structured: Any) -> None:
    result = projected({"content": blocks, "structuredContent": structured}, ROOM)
    assert len(result.content) == len(blocks)
    assert canonical_json([*result.content, result.structured]) == canonical_json([*blocks, structured]).replace(
        "\\u202e", "\\\\u202e"
    )
