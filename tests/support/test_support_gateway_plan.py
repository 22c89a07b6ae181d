"""What calls of the gateway need, and what speaks against them, before anything is contacted."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import create_engine

from verbc.support import registrations
from verbc.support.backend import Plan
from verbc.support.call import Call
from verbc.support.fingerprint import canonical_json
from verbc.support.gateway_plan import launch_rights, plan_call, plan_list, plan_read, plan_refresh
from verbc.support.manifest import Manifest, Stdio
from verbc.support.refusal import Refusal
from verbc.support.registration_record import Registration
from verbc.support.registration_tables import COMPONENT
from verbc.support.registry import from_data
from verbc.support.rights import Right
from verbc.support.upstream_call import UpstreamCalls
from verbc.support.upstream_request import ToolRequests, call_cost, list_cost, request_bytes

from .gateways import GET, HTTP, NOW, PUT, a_call, manifest, registration, tool
from .programs import finish
from .samples import DATA

FITTING = {"event_id": "e1"}


def planned(make: Callable[[Call], Plan]) -> Plan:
    async def inner() -> Plan:
        registry = from_data(copy.deepcopy(DATA))
        return make(a_call(registry.verbs[0], {}, registry))

    return finish(inner())


def call_of(
    found: Registration | None,
    tool_id: str = "event_get",
    arguments: dict[str, Any] | None = None,
    *,
    names: bool = True,
) -> Plan:
    given = FITTING if arguments is None else arguments
    return planned(
        lambda call: plan_call(
            call, None, "calendar", tool_id, given, found, ToolRequests(names=names), UpstreamCalls()
        )
    )


def refresh_of(found: Registration | None) -> Plan:
    return planned(lambda call: plan_refresh(call, None, "calendar", found, UpstreamCalls()))


def told(plan: Plan) -> tuple[str, str] | None:
    found = plan.obstacle()
    return None if found is None else (found.kind, found.message)


def authority(of: Manifest) -> tuple[str, str]:
    assert isinstance(of.transport, Stdio)
    kind, digest = of.transport.authority.split(":")
    return f"execute {kind}", digest


@pytest.mark.parametrize(("limit", "fits"), [(None, True), (1, True), (100, True), (101, False)])
def test_a_search_for_more_servers_than_there_may_be_is_refused(limit: int | None, fits: bool) -> None:
    plan = planned(lambda call: plan_list(call, None, limit, 100))
    assert told(plan) == (None if fits else ("invalid_input", "`limit` must be at most 100"))


def test_a_look_at_the_registry_needs_only_what_the_verb_says() -> None:
    plan = planned(lambda call: plan_read(call, None))
    assert (plan.rights, plan.outright, plan.any_of, plan.refusal, plan.guard) == ((), (), (), None, None)


def test_a_refresh_of_a_program_needs_the_rights_to_start_it() -> None:
    of = manifest()
    plan = refresh_of(registration(of))
    assert plan.rights == (Right(("execute mcp_server", "calendar")),)
    assert plan.outright == (Right(("write process", "spawn")), Right(authority(of)))
    assert plan.refusal is None
    assert plan.target == {
        "server_id": "calendar",
        "registration_digest": of.digest,
        "registration_generation": 3,
    }
    assert not plan.evidence.contacted
    assert plan.cost is not None
    assert plan.cost() == list_cost(of) > of.max_response_bytes


def test_over_http_nothing_is_started() -> None:
    assert launch_rights(manifest(**HTTP)) == ()
    assert refresh_of(registration(manifest(**HTTP))).outright == ()


@pytest.mark.parametrize("found", [None, registration(None)])
def test_a_refresh_of_what_is_not_there_needs_the_same_right(found: Registration | None) -> None:
    plan = refresh_of(found)
    assert plan.rights == (Right(("execute mcp_server", "calendar")),)
    assert told(plan) == ("not_found", "There is no server `calendar`.")


@pytest.mark.parametrize("transport", [{}, HTTP])
@pytest.mark.parametrize(("tool_id", "right"), [("event_get", "read"), ("event_put", "write")])
def test_a_call_needs_the_right_that_its_tool_declares(transport: dict[str, Any], tool_id: str, right: str) -> None:
    of = manifest(**transport)
    plan = call_of(registration(of, suspended=True), tool_id)
    assert plan.rights == (Right((f"{right} mcp", "calendar", tool_id)),)
    assert plan.outright == launch_rights(of)
    assert (plan.any_of, plan.refusal, plan.suspended) == ((), None, True)
    assert plan.arguments == FITTING
    assert not plan.evidence.contacted
    assert plan.target == {
        "server_id": "calendar",
        "tool_id": tool_id,
        "registration_digest": of.digest,
        "registration_generation": 3,
    }


@pytest.mark.parametrize(
    ("found", "tool_id"),
    [
        (None, "event_get"),
        (registration(None, suspended=True), "event_get"),
        (registration(manifest()), "nope"),
        (registration(manifest()), "cal.get"),
    ],
)
def test_a_tool_that_is_not_there_needs_any_right_on_it(found: Registration | None, tool_id: str) -> None:
    plan = call_of(found, tool_id, {"whatever": 1})
    assert plan.any_of == tuple(Right((f"{right} mcp", "calendar", tool_id)) for right in ("read", "write", "execute"))
    assert (plan.rights, plan.outright, plan.guard) == ((), (), None)
    assert plan.suspended is False
    assert told(plan) == ("not_found", f"There is no tool `{tool_id}` of a server `calendar`.")


def test_a_suspension_counts_for_tools_that_a_registered_server_does_not_have() -> None:
    assert call_of(registration(manifest(), suspended=True), "nope").suspended is True


def test_a_registration_that_cannot_be_used_says_so_to_whoever_has_a_right() -> None:
    broken = registration(None, problem="is damaged")
    expected = ("unavailable", "The registration of `calendar` cannot be used; an operator has to replace it.")
    assert told(call_of(broken)) == told(refresh_of(broken)) == expected
    assert len(call_of(broken).any_of) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "`event_id` is missing"),
        ({"event_id": 1}, "`event_id` must be a string"),
        ({"event_id": "e", "nope": "secret"}, "`nope` is not a known member"),
        ({"event_id": "e", "at": True}, "`at` must be a number"),
        ({"event_id": "e", "at": 0}, "`at` must be at least 1"),
    ],
)
def test_arguments_have_to_fit_the_registered_schema(arguments: dict[str, Any], message: str) -> None:
    plan = call_of(registration(manifest()), arguments=arguments)
    assert told(plan) == ("invalid_input", message)
    assert plan.rights  # which are asked for before this is told


def test_names_of_the_callers_own_are_told_only_where_they_may_be() -> None:
    plan = call_of(registration(manifest()), arguments={**FITTING, "nope": 1}, names=False)
    assert told(plan) == ("invalid_input", "`*` is not a known member")


def test_a_schema_is_read_as_its_draft_says() -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    pinned = {"$schema": draft, "properties": {"pair": {"items": [{"type": "string"}, {"type": "integer"}]}}}
    found = registration(manifest(tools=[{**GET, "input_schema": pinned}]))
    assert call_of(found, arguments={"pair": ["a", 1]}).obstacle() is None
    assert told(call_of(found, arguments={"pair": ["a", "b"]})) == ("invalid_input", "`pair[1]` must be an integer")


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"state_mutation": True, "rollback_class": "irreversible"}, True),
        ({"right": "write"}, True),
        ({"right": "execute"}, True),
        ({"right": "write", "unpinned_mutation": "allow"}, False),
        ({}, False),
    ],
)
def test_what_may_change_something_needs_a_schema_or_leave(changes: dict[str, Any], refused: bool) -> None:
    found = registration(manifest(tools=[{**GET, "input_schema": {}, **changes}]))
    message = (
        "`event_get` of `calendar` may change something and has no registered schema for its arguments; "
        "an operator can register one, or allow calls without it."
    )
    assert told(call_of(found, arguments={"any": ["thing"]})) == (("conflict", message) if refused else None)


def test_a_request_has_no_more_bytes_than_it_may_have() -> None:
    arguments = {"event_id": "ä" * 20}
    size = len(canonical_json({"name": "cal.get", "arguments": arguments}))
    assert request_bytes(tool(), arguments) == size
    assert call_of(registration(manifest(max_request_bytes=size)), arguments=arguments).obstacle() is None
    plan = call_of(registration(manifest(max_request_bytes=size - 1)), arguments=arguments)
    assert told(plan) == (
        "invalid_input",
        f"the tool's arguments are too large; a request may have {size - 1} bytes",
    )


def test_a_call_costs_its_requests_and_all_that_may_come() -> None:
    of = manifest(max_response_bytes=1000)
    plan = call_of(registration(of))
    look = len('{"method":"tools/list","params":{}}') + 2 * 1000 + 4096
    assert list_cost(of) == look
    cost = look + request_bytes(of.tools[0], FITTING)
    assert plan.cost is not None
    assert plan.cost() == call_cost(of, of.tools[0], FITTING) == cost


def test_a_plan_stands_as_long_as_its_registration() -> None:
    engine = create_engine("sqlite://")
    of = manifest()
    with engine.begin() as connection:
        for step in COMPONENT.steps:
            step(connection)
        found = registrations.add(connection, of, "operator", NOW)
        plan = call_of(found)
        assert plan.guard is not None
        assert plan.guard(connection)
        suspended = call_of(replace(found, suspended=True))
        assert suspended.guard is not None
        assert not suspended.guard(connection)
        registrations.replace(connection, of, "operator", NOW)
        assert not plan.guard(connection)
    engine.dispose()


def test_validators_are_kept_for_each_registration() -> None:
    requests = ToolRequests(names=True)
    loose = manifest(tools=[{**GET, "input_schema": {"type": "object"}}, PUT])
    for _ in range(2):
        assert requests.refusal(loose, loose.tools[0], {"any": 1}) is None
        assert isinstance(requests.refusal(manifest(), manifest().tools[0], {"any": 1}), Refusal)
    for number in range(300):
        of = manifest(metadata={"number": number})
        assert requests.refusal(of, of.tools[0], FITTING) is None
