"""Approvals by the person at the client: only where the policy says so, over both eras, and bound to what was asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from mcp import Client, MCPError, types

from .consenting import Person, over_http, over_stdio, reply
from .places import SUBJECT, Place, rules
from .processes import HttpGateway
from .replies import Reply
from .scripted import Scripted

ERAS = ("legacy", "2026-07-28")
RIGHT = "write mcp:calendar:event_put"
KEYS = "ab" * 32
OTHER_KEYS = "cd" * 32


def event(name: str) -> dict[str, str]:
    return {"event_id": name, "title": "a title"}


def call_of(name: str) -> dict[str, Any]:
    return {"server_id": "calendar", "tool_id": "event_put", "arguments": event(name)}


@pytest.fixture(autouse=True)
def by_the_client(place: Place, calendar: Scripted) -> None:
    place.policy({SUBJECT: rules(ask=[{"right": RIGHT, "approver": "client"}])})


@pytest.fixture(scope="module")
def http_gateways(place: Place, shared_calendar: Scripted) -> Iterator[list[HttpGateway]]:
    """Two servers that share their keys, and a third that has others."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(place.serving_http(env={"LIBOS_MCP_STATE_KEYS": keys}))
            for keys in (KEYS, f"{OTHER_KEYS},{KEYS}", OTHER_KEYS)
        ]


@pytest.mark.parametrize("era", ERAS)
def test_a_person_at_the_client_decides(place: Place, calendar: Scripted, era: str) -> None:
    person = Person()
    last = max((row["id"] for row in place.audit()), default=0)

    async def use(client: Client) -> None:
        name = f"accepted {era}"
        first = reply(await client.call_tool("call_mcp_tool", call_of(name)))
        assert first.result["structured_content"]["arguments"] == event(name)
        (heard,) = person.heard
        for part in ("call_mcp_tool", "calendar", "event_put", RIGHT, name, "a title"):
            assert part in heard.message
        assert reply(await client.call_tool("call_mcp_tool", call_of(name))).called["ok"]
        assert len(person.heard) == 2  # one use each
        person.action = "decline"
        assert reply(await client.call_tool("call_mcp_tool", call_of(f"declined {era}"))).kind == "denied"
        assert reply(await client.call_tool("call_mcp_tool", call_of(f"declined {era}"))).kind == "denied"
        assert len(person.heard) == 3  # a rejection stands
        person.action = "cancel"
        assert reply(await client.call_tool("call_mcp_tool", call_of(f"cancelled {era}"))).failed

    over_stdio(place, era, person, use)
    assert calendar.count("call") == 2
    rows = place.audit("--after", str(last))
    decided = [row for row in rows if row["kind"] == "approval"]
    assert len(decided) >= 3
    assert all("client" in str(row) for row in decided[:3])
    assert [row["reason"] for row in rows if row["outcome"] == "deny"] == ["rejected"] * 2
    assert not any("operator" in str(row) for row in decided)


@pytest.mark.parametrize("era", ERAS)
def test_who_cannot_be_asked_has_to_wait(place: Place, calendar: Scripted, era: str) -> None:
    async def use(client: Client) -> None:
        waiting = reply(await client.call_tool("call_mcp_tool", call_of(f"mute {era}")))
        place.approve(waiting.approval)  # an operator may always
        assert reply(await client.call_tool("call_mcp_tool", call_of(f"mute {era}"))).called["ok"]

    over_stdio(place, era, None, use)


@pytest.mark.parametrize("era", ERAS)
def test_what_is_the_operators_is_asked_of_nobody_else(
    place: Place, calendar: Scripted, http_gateways: list[HttpGateway], era: str
) -> None:
    person = Person()

    async def use(client: Client) -> None:
        for ask in ([RIGHT], [RIGHT, {"right": "write mcp:*", "approver": "client"}]):
            place.policy({SUBJECT: rules(ask=ask)})
            assert reply(await client.call_tool("call_mcp_tool", call_of(f"operator {era}"))).kind == "pending"
        assert person.heard == []

    over_stdio(place, era, person, use)
    over_http(http_gateways[0].url, era, person, use)
    assert calendar.untouched


def test_what_is_wrong_anyway_is_never_asked(
    place: Place, calendar: Scripted, http_gateways: list[HttpGateway]
) -> None:
    person = Person()

    async def use(client: Client) -> None:
        wrong = {**call_of("x"), "arguments": {"event_id": 1}}
        assert reply(await client.call_tool("call_mcp_tool", wrong)).kind == "invalid_input"
        missing = {**call_of("x"), "tool_id": "nope"}
        assert reply(await client.call_tool("call_mcp_tool", missing)).kind == "denied"

    over_http(http_gateways[0].url, ERAS[1], person, use)
    assert person.heard == []


def test_over_http_only_the_newer_era_asks(place: Place, calendar: Scripted, http_gateways: list[HttpGateway]) -> None:
    person = Person()

    async def older(client: Client) -> None:
        assert reply(await client.call_tool("call_mcp_tool", call_of("older"))).kind == "pending"

    async def newer(client: Client) -> None:
        assert reply(await client.call_tool("call_mcp_tool", call_of("newer"))).called["ok"]
        person.action = "decline"
        assert reply(await client.call_tool("call_mcp_tool", call_of("newer too"))).kind == "denied"

    over_http(http_gateways[0].url, ERAS[0], person, older)
    assert person.heard == []
    over_http(http_gateways[0].url, ERAS[1], person, newer)
    assert len(person.heard) == 2
    assert calendar.count("call") == 1


def asked(url: str, name: str) -> types.InputRequiredResult:
    """What a call comes to when the client does not ask anybody yet."""
    found: list[types.InputRequiredResult] = []

    async def use(client: Client) -> None:
        result = await client.session.call_tool("call_mcp_tool", call_of(name), allow_input_required=True)
        assert isinstance(result, types.InputRequiredResult)
        found.append(result)

    over_http(url, ERAS[1], Person(), use)
    return found[0]


def answered(url: str, call: dict[str, Any], state: str | None, names: list[str], action: str = "accept") -> Any:
    """What the second try comes to, with this state and these answers: a reply, or the error that it got."""
    found: list[Any] = []

    async def use(client: Client) -> None:
        result = types.ElicitResult.model_validate(
            {"action": action, **({"content": {"approve": True, "approved": True}} if action == "accept" else {})}
        )
        try:
            ended = await client.session.call_tool(
                "call_mcp_tool",
                call,
                input_responses=dict.fromkeys(names, result),
                request_state=state,
                allow_input_required=True,
            )
        except MCPError as error:
            found.append(error)
        else:
            found.append(reply(ended) if isinstance(ended, types.CallToolResult) else ended)

    over_http(url, ERAS[1], Person(), use)
    return found[0]


def refused(outcome: Any) -> bool:
    """Whether an answer was not taken for one."""
    return isinstance(outcome, MCPError) or (isinstance(outcome, Reply) and outcome.kind == "invalid_input")


def test_an_answer_may_come_to_another_server(
    place: Place, calendar: Scripted, http_gateways: list[HttpGateway]
) -> None:
    first, second, _ = http_gateways
    question = asked(first.url, "replica")
    assert calendar.untouched
    names = list(question.input_requests or {})
    outcome = answered(second.url, call_of("replica"), question.request_state, names)
    assert outcome.called["ok"]
    again = answered(second.url, call_of("replica"), question.request_state, names)
    assert not isinstance(again, Reply) or again.failed  # one use
    assert calendar.count("call") == 1


def test_an_answer_counts_for_what_was_asked_only(
    place: Place, calendar: Scripted, http_gateways: list[HttpGateway]
) -> None:
    first, _, stranger = http_gateways
    question = asked(first.url, "bound")
    names, state = list(question.input_requests or {}), question.request_state
    assert state
    middle = len(state) // 2
    changed = state[:middle] + ("A" if state[middle] != "A" else "B") + state[middle + 1 :]
    assert refused(answered(first.url, call_of("another"), state, names))
    assert refused(answered(first.url, call_of("bound"), changed, names))
    assert refused(answered(first.url, call_of("bound"), "", names))
    assert refused(answered(stranger.url, call_of("bound"), state, names))
    unsealed = answered(first.url, call_of("bound"), None, names)
    assert not isinstance(unsealed, Reply) or unsealed.failed
    assert calendar.untouched
    assert answered(first.url, call_of("bound"), state, names).called["ok"]


def test_long_arguments_are_not_shown_whole(place: Place, calendar: Scripted, http_gateways: list[HttpGateway]) -> None:
    person = Person()
    arguments = {"event_id": "long", "title": "\u202e\u001b[31m" + "long " * 2000}

    async def use(client: Client) -> None:
        call = {"server_id": "calendar", "tool_id": "event_put", "arguments": arguments}
        assert reply(await client.call_tool("call_mcp_tool", call)).called["ok"]

    over_http(http_gateways[0].url, ERAS[1], person, use)
    (heard,) = person.heard
    assert len(heard.message) < 6000
    assert "approvals show" in heard.message
    assert heard.message.isascii() or "\u202e" not in heard.message
    assert "\u001b" not in heard.message
