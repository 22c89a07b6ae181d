"""Sessions: lists with all their pages, lists that did not change, and the messages that they are made of."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbc.support.upstream_errors import InvalidListError, UpstreamError
from verbc.support.upstream_messages import message, without_id

from .programs import finish
from .upstream_programs import ECHO
from .upstream_samples import Visits, program

LIST = "tools/list"


def listed(script: Mapping[str, Any], **fields: Any) -> list[str]:
    """The names of the tools of a stub."""

    async def work() -> list[str]:
        manifest = program(script, **fields)
        async with Visits() as visits, visits.session(manifest) as session:
            return [tool["name"] for tool in (await visits.listed(session, manifest)).tools]

    return finish(work())


@pytest.mark.parametrize("pages", [1, 2, 5])
def test_all_pages_are_read(pages: int) -> None:
    assert listed({LIST: [{"page": {"of": pages}}]}, page_limit=5) == [f"echo{number}" for number in range(pages)]


def test_more_pages_than_the_limit_are_no_list() -> None:
    with pytest.raises(InvalidListError):
        listed({LIST: [{"page": {"of": 6}}]}, page_limit=5)


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"tools": None},
        {"tools": {"echo": ECHO}},
        {"tools": ["echo"]},
        {"tools": [ECHO, None]},
        {"tools": [], "nextCursor": 1},
        {"tools": [], "nextCursor": {}},
        {"tools": [], "nextCursor": "the same again"},
    ],
)
def test_what_is_no_list_of_tools_is_told(result: Any) -> None:
    with pytest.raises(InvalidListError) as error:
        listed({LIST: [{"reply": result}]})
    assert error.value.error_type == "McpInvalidList"


def test_a_list_that_ends_with_null_has_ended() -> None:
    assert listed({LIST: [{"reply": {"tools": [ECHO], "nextCursor": None}}]}) == ["echo"]


@pytest.mark.parametrize("pages", [1, 3])
def test_an_unchanged_list_is_told_as_such(pages: int) -> None:
    async def work() -> None:
        manifest = program({LIST: [{"page": {"of": pages}}]})
        async with Visits() as visits:
            async with visits.session(manifest) as session:
                first, second = [await visits.listed(session, manifest) for _ in range(2)]
                assert first == second
                assert first.response_bytes > 40 * pages
                assert all(one is other for one, other in zip(first.tools, second.tools, strict=True))
            async with visits.session(manifest) as session:
                assert (await visits.listed(session, manifest)).raw == first.raw

    finish(work())


def test_a_list_that_changed_is_another_one() -> None:
    changed = [[{"reply": {"tools": [{**ECHO, "title": title}]}}] for title in ("a", "b", "a")]

    async def work() -> None:
        manifest = program({LIST: changed})
        async with Visits() as visits, visits.session(manifest) as session:
            lists = [await visits.listed(session, manifest) for _ in range(3)]
            assert [found.tools[0]["title"] for found in lists] == ["a", "b", "a"]
            assert lists[0].raw == lists[2].raw != lists[1].raw

    finish(work())


def test_what_came_before_a_list_counts_with_it() -> None:
    said = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"x": "y" * 500}}

    async def work() -> None:
        manifest = program({LIST: [[{"usual": True}], [{"say": said}, {"usual": True}]]})
        async with Visits() as visits, visits.session(manifest) as session:
            first, second = [await visits.listed(session, manifest) for _ in range(2)]
            assert second.response_bytes - first.response_bytes == len(json.dumps(said, separators=(",", ":")))

    finish(work())


FORMS = [
    '{{"jsonrpc":"2.0","id":{},"result":{}}}',
    '{{"jsonrpc": "2.0", "id": {}, "result": {}}}',
    '{{"result":{1},"jsonrpc":"2.0","id":{0}}}',
    '{{"result": {1}, "jsonrpc": "2.0", "id": {0}}}',
]


@pytest.mark.parametrize("form", FORMS)
def test_a_reply_without_its_id_does_not_depend_on_it(form: str) -> None:
    frames = [form.format(number, '{"tools":[]}').encode() for number in (7, 8, 123)]
    bare = {without_id(frame, number) for frame, number in zip(frames, (7, 8, 123), strict=True)}
    assert len(bare) == 1
    assert None not in bare
    assert without_id(frames[0], 8) is None
    assert without_id(form.format(70, "{}").encode(), 7) is None


@pytest.mark.parametrize(
    "frame", [b"", b"{}", b'{"id":7,"jsonrpc":"2.0","result":{}}', b'{"jsonrpc":"2.0","id":"7","result":{}}']
)
def test_other_forms_have_their_id_somewhere(frame: bytes) -> None:
    assert without_id(frame, 7) is None


JSON = st.recursive(
    st.none()
    | st.integers(0, 9)
    | st.sampled_from(["", "2.0", ',"jsonrpc":"2.0","id":7}', '{"jsonrpc":"2.0","id":7,"result":']),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "jsonrpc", "result", "x"]), inner)
    ),
    max_leaves=6,
)


@given(st.permutations(["jsonrpc", "id", "result", "x"]), JSON, JSON, st.booleans())
def test_replies_that_are_equal_without_their_ids_have_equal_results(
    order: list[str], result: Any, other: Any, spaced: bool
) -> None:
    """Put another id to where it was cut out: what was a reply to its request is one again, and says the same."""
    members = {"jsonrpc": "2.0", "id": 7, "result": {"x": result}, "x": other}
    text = json.dumps({name: members[name] for name in order}, separators=None if spaced else (",", ":"))
    frame = text.encode()
    bare = without_id(frame, 7)
    read = asyncio.run(message(frame))
    for place in range(len(frame)):
        if frame[place : place + 1] == b"7":
            changed = frame[:place] + b"8" + frame[place + 1 :]
            if bare is not None and without_id(changed, 8) == bare:
                found = asyncio.run(message(changed))
                assert (found.id, found.result) == (8, read.result)


@pytest.mark.parametrize(
    "text", ["x", "1", "[]", '{"jsonrpc":"2.0","method":"x","id":null}', '{"jsonrpc":"2.0","id":1.5,"result":{}}']
)
def test_what_is_no_message_is_refused(text: str) -> None:
    with pytest.raises(UpstreamError) as error:
        asyncio.run(message(text.encode()))
    assert error.value.error_type == "McpProtocolError"


def test_a_long_message_is_read_as_well() -> None:
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"text": "x" * 100_000}})
    assert asyncio.run(message(text.encode())).result == {"text": "x" * 100_000}
