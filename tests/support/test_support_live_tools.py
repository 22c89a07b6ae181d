"""Lists of tools, as upstreams give them, beside what is registered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from verbc.support.live_tools import CheckedLists, LiveToolsError, by_name, check_offered, live_view
from verbc.support.result_projection import ResultError, ResultTooLargeError

from .gateways import EVENT, GET, manifest, offered, tool, tool_data

REORDERED = {name: EVENT[name] for name in reversed(EVENT)}


@pytest.mark.parametrize(
    "tools",
    [
        ["cal.get"],
        [None],
        [{}],
        [offered("")],
        [offered(7)],  # type: ignore[arg-type]
        [offered(), offered()],
        [offered(), offered("other", inputSchema="any")],
        [offered(inputSchema=[])],
        [offered(description=1)],
    ],
)
def test_a_list_with_one_malformed_or_double_entry_is_no_list(tools: list[Any]) -> None:
    with pytest.raises(LiveToolsError):
        by_name(tools)


def test_a_long_list_is_known_by_its_names() -> None:
    found = by_name(offered(f"t{number}") for number in range(500))
    assert len(found) == 500
    assert found["t7"]["name"] == "t7"


@pytest.mark.parametrize(
    "live",
    [
        offered(),
        offered(inputSchema=REORDERED),
        offered(
            inputSchema={
                **EVENT,
                "properties": {"event_id": {"type": "string"}, "at": {"type": "number", "minimum": 1.0}},
            }
        ),
        offered(description=None, title="Other", annotations={"readOnlyHint": False}, outputSchema={}),
    ],
)
def test_a_pinned_tool_is_there_when_its_schema_is_the_same(live: dict[str, Any]) -> None:
    check_offered(by_name([offered("cal.put"), live]), tool())


@pytest.mark.parametrize(
    "live",
    [
        offered("cal.got"),
        offered("event_get"),
        offered("Cal.get"),
        offered(inputSchema={}),
        offered(inputSchema=None),
        offered(inputSchema={**EVENT, "title": "Event"}),
        offered(inputSchema={**EVENT, "additionalProperties": 0}),
        offered(inputSchema={**EVENT, "required": []}),
        {"name": "cal.get"},
    ],
)
def test_a_pinned_tool_is_not_there_under_another_name_or_with_another_schema(live: dict[str, Any]) -> None:
    with pytest.raises(LiveToolsError):
        check_offered(by_name([live]), tool())


def test_a_tool_without_a_schema_takes_any_live_one_and_has_to_be_there_all_the_same() -> None:
    unpinned = tool(input_schema={})
    for live in (offered(), offered(inputSchema={"anything": 1}), {"name": "cal.get"}):
        check_offered(by_name([live]), unpinned)
    with pytest.raises(LiveToolsError):
        check_offered(by_name([offered("other")]), unpinned)


def test_true_is_not_one_in_a_schema() -> None:
    pinned = tool(input_schema={"type": "object", "properties": {"a": {"const": 1}}})
    check_offered(by_name([offered(inputSchema={"type": "object", "properties": {"a": {"const": 1.0}}})]), pinned)
    with pytest.raises(LiveToolsError):
        check_offered(by_name([offered(inputSchema={"type": "object", "properties": {"a": {"const": True}}})]), pinned)


def test_a_view_shows_the_live_tool_escaped() -> None:
    hostile = {"type": "object", "properties": {"a\u202eb": {"description": "bell \u0007"}}}
    assert live_view(offered(description="x\u0000y", inputSchema=hostile), tool(), 5000) == {
        "name": "cal.get",
        "description": "x\\u0000y",
        "input_schema": {"type": "object", "properties": {"a\\u202eb": {"description": "bell \\u0007"}}},
        "schema_matches_manifest": False,
    }


def test_a_view_of_an_unpinned_tool_always_matches() -> None:
    assert live_view({"name": "cal.get"}, tool(input_schema={}), 5000) == {
        "name": "cal.get",
        "description": None,
        "input_schema": {},
        "schema_matches_manifest": True,
    }
    assert live_view(offered(), tool(), 5000)["schema_matches_manifest"] is True


def test_a_schema_beyond_the_bounds_is_not_shown() -> None:
    deep: dict[str, Any] = {}
    for _ in range(70):
        deep = {"not": deep}
    with pytest.raises(ResultError):
        live_view(offered(inputSchema=deep), tool(), 5000)
    with pytest.raises(ResultTooLargeError):
        live_view(offered(inputSchema={"title": "x" * 5000}), tool(), 5000)


class Counted:
    """A list that counts how often it is gone through."""

    def __init__(self, *tools: Any) -> None:
        self.tools = tools
        self.looks = 0

    def __iter__(self) -> Iterator[Any]:
        self.looks += 1
        return iter(self.tools)


def test_a_list_that_is_known_is_checked_once_for_each_tool() -> None:
    registered = manifest(tools=[GET, tool_data("other", "cal.other")])
    get, other = registered.tools
    live, lists = Counted(offered(), offered("cal.other")), CheckedLists()
    for checked in (get, get, other, other, get):
        lists.check(registered, checked, live, b"one")
    assert live.looks == 2


def test_another_list_or_another_registration_is_checked_anew() -> None:
    registered, lists = manifest(), CheckedLists()
    get = registered.tools[0]
    lists.check(registered, get, [offered()], b"one")
    with pytest.raises(LiveToolsError):
        lists.check(registered, get, [], b"two")
    again = Counted(offered())
    lists.check(registered, get, again, b"one")
    assert again.looks == 0
    changed = manifest(timeout_s=3)
    with pytest.raises(LiveToolsError):
        lists.check(changed, changed.tools[0], [], b"one")


def test_a_list_that_failed_is_not_taken_for_checked() -> None:
    registered, lists = manifest(), CheckedLists()
    for _ in range(2):
        with pytest.raises(LiveToolsError):
            lists.check(registered, registered.tools[0], [offered("other")], b"one")


def test_of_many_registrations_the_oldest_is_forgotten() -> None:
    lists, first = CheckedLists(), manifest()
    lists.check(first, first.tools[0], [offered()], b"one")
    for number in range(64):
        registered = manifest(server_id=f"s{number}")
        lists.check(registered, registered.tools[0], [offered()], b"one")
    again = Counted(offered())
    lists.check(first, first.tools[0], again, b"one")
    assert again.looks == 1
