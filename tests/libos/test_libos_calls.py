"""Calls of registered tools: what stops them before, what of the live server stops them, and what they come to."""

from __future__ import annotations

from typing import Any

import pytest

from .manifests import GET, PUT, manifest, tool
from .places import Place
from .processes import Gateway
from .scripted import GET_SCHEMA, LIVE_GET, LIVE_PUT, PUT_SCHEMA, Json, Scripted

ARGUMENTS = {"event_id": "evt_123"}
ALL = ("read mcp:*", "write mcp:*", "execute mcp:*")


@pytest.fixture(autouse=True)
def all_rights(place: Place) -> None:
    place.grant(*ALL)


@pytest.fixture(scope="module")
def shared_loose(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Scripted:
    upstream = Scripted(tmp_path_factory.mktemp("loose"))
    unpinned = [tool(GET, input_schema={}), tool(PUT, input_schema={})]
    place.add(manifest(upstream, "loose", unpinned))
    return upstream


@pytest.fixture
def loose(shared_loose: Scripted) -> Scripted:
    """A server whose tools are registered without schemas."""
    shared_loose.forget()
    return shared_loose


@pytest.mark.parametrize(
    "arguments", [{}, {"event_id": 1}, {"event_id": None}, {"event_id": "a", "extra": 1}, {"event_id": ["a"]}]
)
def test_arguments_that_do_not_fit_the_registered_schema_go_nowhere(
    gateway: Gateway, calendar: Scripted, arguments: Json
) -> None:
    refusal = gateway.call("calendar", "event_get", arguments).refusal
    assert refusal["kind"] == "invalid_input"
    assert calendar.untouched


def test_feedback_about_arguments_holds_none_of_their_values(gateway: Gateway, calendar: Scripted) -> None:
    refusal = gateway.call("calendar", "event_get", {"event_id": {"s3cret-value": "s3cret-too"}}).refusal
    assert "event_id" in str(refusal)
    assert "s3cret" not in str(refusal)


@pytest.mark.parametrize("arguments", [[], "text", 1, None, True])
def test_arguments_are_an_object(gateway: Gateway, calendar: Scripted, arguments: Any) -> None:
    reply = gateway.tool("call_mcp_tool", server_id="calendar", tool_id="event_get", arguments=arguments)
    assert reply.kind == "invalid_input"
    assert calendar.untouched


def test_arguments_can_be_left_out(gateway: Gateway, loose: Scripted) -> None:
    assert gateway.tool("call_mcp_tool", server_id="loose", tool_id="event_get").called["ok"]
    assert loose.calls == [("cal.get", {})]


def test_a_request_that_is_too_large_goes_nowhere(place: Place, gateway: Gateway, own_upstream: Scripted) -> None:
    place.add(manifest(own_upstream, "narrow", max_request_bytes=100))
    assert gateway.call("narrow", "event_get", {"event_id": "x" * 100}).kind == "invalid_input"
    assert own_upstream.untouched
    assert gateway.call("narrow", "event_get", {"event_id": "x"}).called["ok"]


def test_a_tool_is_called_by_its_id_only(gateway: Gateway, calendar: Scripted) -> None:
    assert gateway.call("calendar", "cal.get", ARGUMENTS).kind == "not_found"
    assert calendar.untouched


@pytest.mark.parametrize(
    "tools", [[LIVE_PUT], [], [{**LIVE_GET, "name": "cal.got"}], [{**LIVE_GET, "name": "CAL.GET"}]]
)
@pytest.mark.parametrize("server", ["calendar", "loose"])
def test_a_tool_that_is_gone_is_not_called(
    gateway: Gateway, calendar: Scripted, loose: Scripted, server: str, tools: list[Json]
) -> None:
    upstream = calendar if server == "calendar" else loose
    upstream.tell(tools=tools)
    called = gateway.call(server, "event_get", ARGUMENTS).ended(
        "invalid_response", "LiveToolValidationError", started=False
    )
    assert set(called["error"]) <= {"code", "error_type", "correlation_id", "message"}
    assert upstream.counts == (1, 1, 0)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {**GET_SCHEMA, "title": "Get"},
        {**GET_SCHEMA, "required": []},
        {**GET_SCHEMA, "additionalProperties": 0},
        {**GET_SCHEMA, "properties": {"event_id": {"type": ["string"]}}},
    ],
)
def test_a_tool_whose_schema_has_changed_is_not_called(gateway: Gateway, calendar: Scripted, schema: Json) -> None:
    calendar.tell(tools=[{**LIVE_GET, "inputSchema": schema}])
    gateway.call("calendar", "event_get", ARGUMENTS).ended("invalid_response", "LiveToolValidationError", started=False)
    assert calendar.counts == (1, 1, 0)


def test_the_order_of_keys_is_no_change(gateway: Gateway, calendar: Scripted) -> None:
    turned = dict(reversed(list(GET_SCHEMA.items())))
    calendar.tell(tools=[{"inputSchema": turned, "name": "cal.get", "annotations": {"title": "New"}, "title": "Newer"}])
    assert gateway.call("calendar", "event_get", ARGUMENTS).called["ok"]


def test_numbers_are_compared_by_their_value(place: Place, gateway: Gateway, own_upstream: Scripted) -> None:
    def schema(least: Any, most: Any) -> Json:
        return {"type": "object", "properties": {"n": {"type": "integer", "minimum": least, "enum": [most]}}}

    place.add(manifest(own_upstream, "numbers", [tool(GET, input_schema=schema(1, 7))]))
    own_upstream.tell(tools=[{**LIVE_GET, "inputSchema": schema(1.0, 7.0)}])
    assert gateway.call("numbers", "event_get", {"n": 7}).called["ok"]
    own_upstream.tell(tools=[{**LIVE_GET, "inputSchema": schema(1, True)}])
    gateway.call("numbers", "event_get", {"n": 7}).ended("invalid_response", started=False)


@pytest.mark.parametrize(
    "tools",
    [
        [LIVE_GET, LIVE_GET],
        [LIVE_GET, {"inputSchema": GET_SCHEMA}],
        [LIVE_GET, {**LIVE_PUT, "name": ""}],
        [LIVE_GET, {**LIVE_PUT, "name": 7}],
        [LIVE_GET, "cal.put"],
        {"cal.get": LIVE_GET},
        None,
    ],
)
def test_a_list_of_tools_that_is_none_stops_the_call(gateway: Gateway, calendar: Scripted, tools: Any) -> None:
    calendar.tell(tools=[], reply={"tools/list": {"jsonrpc": "2.0", "id": "$id", "result": {"tools": tools}}})
    gateway.call("calendar", "event_get", ARGUMENTS).ended("invalid_response", "LiveToolValidationError", started=False)
    assert calendar.counts == (1, 1, 0)


def test_a_long_catalogue_is_read_page_by_page(gateway: Gateway, calendar: Scripted) -> None:
    others = [{"name": f"other-{number}", "inputSchema": {"type": "object"}} for number in range(150)]
    calendar.tell(tools=[*others, LIVE_GET], page=10)
    assert gateway.call("calendar", "event_get", ARGUMENTS).called["ok"]
    assert calendar.count("list") + calendar.count("page") == 16


def test_a_catalogue_with_more_pages_than_are_read_stops_the_call(
    place: Place, gateway: Gateway, own_upstream: Scripted
) -> None:
    place.add(manifest(own_upstream, "paged", page_limit=2))
    own_upstream.tell(page=1)
    assert gateway.call("paged", "event_get", ARGUMENTS).called["ok"]
    own_upstream.tell(page=1, endless=True)
    gateway.call("paged", "event_get", ARGUMENTS).ended("invalid_response", "LiveToolValidationError", started=False)
    assert own_upstream.count("call") == 1


def test_without_a_registered_schema_everything_is_passed_on(gateway: Gateway, loose: Scripted) -> None:
    loose.tell(tools=[{**LIVE_GET, "inputSchema": {"type": "object", "properties": {"other": {"type": "null"}}}}])
    arguments = {"any": [1, 2.5, None, {"deep": True}], "event_id": "ü\u2028"}
    called = gateway.call("loose", "event_get", arguments).called
    assert called["ok"]
    assert called["schema_protection"] == "absent"
    assert loose.calls == [("cal.get", arguments)]


def test_a_change_without_a_registered_schema_is_refused(gateway: Gateway, loose: Scripted) -> None:
    assert gateway.call("loose", "event_put", ARGUMENTS).kind == "conflict"
    assert loose.untouched


@pytest.mark.parametrize(
    ("right", "mutation", "refused"), [("read", True, True), ("execute", False, True), ("read", False, False)]
)
def test_a_change_is_what_mutates_or_needs_more_than_reading(
    place: Place, gateway: Gateway, own_upstream: Scripted, right: str, mutation: bool, refused: bool
) -> None:
    server = f"kind-{right}-{mutation}"
    own = tool(PUT, right=right, state_mutation=mutation, input_schema={})
    place.add(manifest(own_upstream, server, [own]))
    reply = gateway.call(server, "event_put", ARGUMENTS)
    assert (reply.kind == "conflict") if refused else reply.called["ok"]


def test_a_manifest_can_allow_changes_without_a_schema(place: Place, gateway: Gateway, own_upstream: Scripted) -> None:
    place.add(manifest(own_upstream, "trusting", [tool(PUT, input_schema={}, unpinned_mutation="allow")]))
    called = gateway.call("trusting", "event_put", {"whatever": 1}).called
    assert called["ok"]
    assert called["schema_protection"] == "absent"


def test_an_error_of_a_tool_is_told_with_what_it_returned(gateway: Gateway, calendar: Scripted) -> None:
    returned = {
        "content": [{"type": "text", "text": "no such event\u202e\u0000"}],
        "structuredContent": {"reason": 7},
        "isError": True,
    }
    calendar.tell(results={"cal.get": returned})
    error = gateway.call("calendar", "event_get", ARGUMENTS).ended("mcp_error", "mcp_error", started=True)["error"]
    assert error["code"] == "mcp_tool_error"
    assert error["structured_content"] == {"reason": 7}
    (block,) = error["content"]
    assert block["text"].startswith("no such event")
    assert "\u202e" not in block["text"]
    assert calendar.count("call") == 1


def test_an_answer_that_is_a_protocol_error_is_no_result(gateway: Gateway, calendar: Scripted) -> None:
    told = {"code": -32000, "message": "s3cret-text of the upstream", "data": "s3cret-data"}
    calendar.tell(reply={"tools/call": {"jsonrpc": "2.0", "id": "$id", "error": told}})
    called = gateway.call("calendar", "event_put", ARGUMENTS).ended("transport_error", started=True)
    assert set(called["error"]) == {"code", "error_type", "correlation_id"}
    assert "s3cret" not in str(called)
    assert "s3cret" not in gateway.log.read_text()


def test_each_call_has_a_session_of_its_own(gateway: Gateway, calendar: Scripted) -> None:
    for number in range(3):
        assert gateway.call("calendar", "event_get", {"event_id": str(number)}).called["ok"]
    assert calendar.counts == (3, 3, 3)
    (first, *_) = calendar.events("initialize")
    assert first["params"]["protocolVersion"] == "2025-11-25"
    assert first["params"]["capabilities"] == {}


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
def test_upstreams_of_older_revisions_are_spoken_to(gateway: Gateway, calendar: Scripted, version: str) -> None:
    calendar.tell(version=version)
    assert gateway.call("calendar", "event_get", ARGUMENTS).called["ok"]


@pytest.mark.parametrize("version", ["2023-01-01", "2099-01-01", "", 7])
def test_upstreams_of_unknown_revisions_are_not(gateway: Gateway, calendar: Scripted, version: Any) -> None:
    calendar.tell(version=version or "none")
    gateway.call("calendar", "event_get", ARGUMENTS).ended("transport_error", started=False)
    assert calendar.counts[1:] == (0, 0)


def test_a_warm_session_is_kept_for_reading_only(place: Place, gateway: Gateway, own_upstream: Scripted) -> None:
    place.add(manifest(own_upstream, "warm", warm=True))
    for number in range(3):
        assert gateway.call("warm", "event_get", {"event_id": str(number)}).called["ok"]
    assert own_upstream.counts == (1, 3, 3)
    for number in range(2):
        assert gateway.call("warm", "event_put", {"event_id": str(number)}).called["ok"]
    assert own_upstream.counts == (3, 5, 5)


def test_a_manifest_can_allow_changes_over_a_warm_session(
    place: Place, gateway: Gateway, own_upstream: Scripted
) -> None:
    place.add(manifest(own_upstream, "warmer", [tool(PUT, warm_mutation="allow")], warm=True))
    for number in range(3):
        assert gateway.call("warmer", "event_put", {"event_id": str(number)}).called["ok"]
    assert own_upstream.counts == (1, 3, 3)


def test_a_warm_session_that_drifts_is_found_out(place: Place, gateway: Gateway, own_upstream: Scripted) -> None:
    place.add(manifest(own_upstream, "drifting", warm=True))
    assert gateway.call("drifting", "event_get", ARGUMENTS).called["ok"]
    own_upstream.tell(tools=[{**LIVE_GET, "inputSchema": PUT_SCHEMA}])
    gateway.call("drifting", "event_get", ARGUMENTS).ended("invalid_response", "LiveToolValidationError", started=False)
    own_upstream.tell()
    assert gateway.call("drifting", "event_get", ARGUMENTS).called["ok"]
    assert own_upstream.count("call") == 2


def test_a_warm_session_that_has_died_is_replaced(place: Place, gateway: Gateway, own_upstream: Scripted) -> None:
    place.add(manifest(own_upstream, "dying", warm=True))
    assert gateway.call("dying", "event_get", ARGUMENTS).called["ok"]
    own_upstream.tell(deeds={"tools/call": "die now"})
    gateway.call("dying", "event_get", ARGUMENTS).ended("transport_error", started=True)
    own_upstream.tell()
    assert gateway.call("dying", "event_get", ARGUMENTS).called["ok"]
    assert own_upstream.count("start") == 2
    assert own_upstream.count("call") == 3


def test_requests_of_an_upstream_are_answered_plainly(gateway: Gateway, calendar: Scripted) -> None:
    asked = ["ping", "sampling/createMessage", "roots/list", "elicitation/create"]
    calendar.tell(asks=[{"id": f"own-{name}", "method": name, "params": {}} for name in asked])
    assert gateway.call("calendar", "event_get", ARGUMENTS).called["ok"]
    calendar.wait_for("answered", len(asked))
    answers = {event["message"]["id"]: event["message"] for event in calendar.events("answered")}
    assert answers["own-ping"]["result"] == {}
    assert {answers[f"own-{name}"]["error"]["code"] for name in asked[1:]} == {-32601}
