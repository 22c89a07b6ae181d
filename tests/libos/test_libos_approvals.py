"""Calls that are asked for: what an approval is bound to, that it is used once, and when it is not used up."""

from __future__ import annotations

import hashlib
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from .clock import age, rows
from .conftest import NewPlace
from .manifests import GET, PUT, manifest, tool
from .places import LAUNCH, SUBJECT, Place, rules
from .processes import Gateway
from .scripted import LIVE_PUT, PUT_SCHEMA, Scripted

ASK = ["write mcp:calendar:event_put"]


@pytest.fixture(autouse=True)
def asked_for(place: Place) -> None:
    place.grant(ask=ASK)


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def event(name: str, title: str = "x") -> dict[str, str]:
    return {"event_id": name, "title": title}


def test_a_pending_call_tells_what_its_approval_is_bound_to(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    place.grant("read mcp_server:calendar", ask=ASK)
    server = gateway.tool("inspect_mcp_server", server_id="calendar").done["server"]
    approval = gateway.call("calendar", "event_put", event("bound")).approval
    assert approval["subject"] == SUBJECT
    assert approval["rights"] == ASK
    assert approval["verb"] == "call_mcp_tool"
    assert approval["arguments_sha256"] == digest(event("bound"))
    assert approval["target"] == {
        "server_id": "calendar",
        "tool_id": "event_put",
        "registration_digest": server["digest"],
        "registration_generation": server["generation"],
    }
    assert calendar.untouched


def test_asking_again_is_the_same_approval(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    first = gateway.call("calendar", "event_put", event("again")).approval
    assert gateway.call("calendar", "event_put", event("again")).approval["id"] == first["id"]
    assert place.approvals().count(first["id"]) == 1


def test_an_approved_call_runs_once(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    approval = gateway.call("calendar", "event_put", {"event_id": "once", "title": "a"}).approval
    place.approve(approval)
    result = gateway.call("calendar", "event_put", {"title": "a", "event_id": "once"}).result
    assert result["structured_content"]["arguments"] == {"event_id": "once", "title": "a"}
    later = gateway.call("calendar", "event_put", {"event_id": "once", "title": "a"}).approval
    assert later["id"] != approval["id"]
    assert calendar.counts == (1, 1, 1)


def test_an_approval_is_for_its_arguments_alone(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    approved = gateway.call("calendar", "event_put", event("a")).approval
    place.approve(approved)
    for other in (event("b"), event("a", "y"), {"event_id": "a"}, event("A")):
        assert gateway.call("calendar", "event_put", other).approval["id"] != approved["id"]
    assert calendar.untouched
    assert gateway.call("calendar", "event_put", event("a")).called["ok"]


def test_an_approval_is_for_its_subject_alone(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    place.policy({SUBJECT: rules(ask=ASK), "other": rules(ask=ASK)})
    approval = gateway.call("calendar", "event_put", event("subject")).approval
    place.approve(approval)
    with place.serving("other") as other:
        assert other.call("calendar", "event_put", event("subject")).approval["id"] != approval["id"]
    assert calendar.untouched
    assert gateway.call("calendar", "event_put", event("subject")).called["ok"]


def test_an_approval_is_for_its_server_and_tool_alone(place: Place, gateway: Gateway, own_upstream: Scripted) -> None:
    twin = tool(PUT, tool_id="event_twin", mcp_name="cal.twin")
    own_upstream.tell(tools=[LIVE_PUT, {**LIVE_PUT, "name": "cal.twin"}])
    for name in ("twin-a", "twin-b"):
        place.add(manifest(own_upstream, name, [PUT, twin]))
    place.grant(ask=["write mcp:*"])
    place.approve(gateway.call("twin-a", "event_put", event("same")).approval)
    assert gateway.call("twin-a", "event_twin", event("same")).kind == "pending"
    assert gateway.call("twin-b", "event_put", event("same")).kind == "pending"
    assert gateway.call("twin-a", "event_put", event("same")).called["ok"]


def test_a_rejected_call_is_denied(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    approval = gateway.call("calendar", "event_put", event("rejected")).approval
    place.reject(approval)
    for _ in range(2):
        assert gateway.call("calendar", "event_put", event("rejected")).kind == "denied"
    place.refused("approvals", "approve", approval["id"])
    assert gateway.call("calendar", "event_put", event("rejected")).kind == "denied"
    assert gateway.call("calendar", "event_put", event("not rejected")).kind == "pending"
    assert calendar.untouched


def test_a_rejection_holds_for_ten_minutes(own_place: Place, own_upstream: Scripted) -> None:
    own_place.add(manifest(own_upstream))
    own_place.grant(ask=ASK)
    with own_place.serving() as gateway:
        own_place.reject(gateway.call("calendar", "event_put", event("x")).approval)
        age(own_place, "approvals", minutes=9)
        assert gateway.call("calendar", "event_put", event("x")).kind == "denied"
        age(own_place, "approvals", minutes=2)
        assert gateway.call("calendar", "event_put", event("x")).kind == "pending"


def test_a_pending_approval_expires(own_place: Place, own_upstream: Scripted) -> None:
    own_place.add(manifest(own_upstream))
    own_place.grant(ask=ASK)
    with own_place.serving() as gateway:
        first = gateway.call("calendar", "event_put", event("x")).approval
        age(own_place, "approvals", minutes=14)
        assert gateway.call("calendar", "event_put", event("x")).approval["id"] == first["id"]
        age(own_place, "approvals", minutes=2)
        own_place.refused("approvals", "approve", first["id"])
        second = gateway.call("calendar", "event_put", event("x")).approval
        assert second["id"] != first["id"]
        assert own_place.approvals() == [second["id"]]


def test_an_approval_that_was_given_expires(own_place: Place, own_upstream: Scripted) -> None:
    own_place.add(manifest(own_upstream))
    own_place.grant(ask=ASK)
    with own_place.serving() as gateway:
        for minutes, kind in ((9, None), (11, "pending")):
            approval = gateway.call("calendar", "event_put", event(str(minutes))).approval
            own_place.approve(approval)
            age(own_place, "approvals", minutes=minutes)
            reply = gateway.call("calendar", "event_put", event(str(minutes)))
            assert reply.called["ok"] if kind is None else reply.approval["id"] != approval["id"]
    assert own_upstream.count("call") == 1


def test_the_operator_sees_all_of_what_is_asked(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    title = "caf\u00e9 \u202e\u001b[31m \n " + "long " * 400
    approval = gateway.call("calendar", "event_put", event("shown", title)).approval
    shown = place.done("approvals", "show", approval["id"])
    for part in (approval["id"], SUBJECT, *ASK, "call_mcp_tool", "calendar", "event_put", approval["arguments_sha256"]):
        assert part in shown
    assert approval["target"]["registration_digest"] in shown
    assert shown.isascii()
    assert all(character == "\n" or character.isprintable() for character in shown)
    assert json.dumps(title) in shown  # complete, and escaped
    listed = place.done("approvals", "list")
    assert approval["id"] in listed
    assert SUBJECT in listed


@pytest.mark.parametrize("end", ["used", "rejected", "expired"])
def test_arguments_are_kept_until_the_approval_is_settled(
    new_place: NewPlace, own_upstream: Scripted, end: str
) -> None:
    own_place = new_place()
    own_place.add(manifest(own_upstream))
    own_place.grant(ask=ASK)
    with own_place.serving() as gateway:
        approval = gateway.call("calendar", "event_put", event("kept", "marked-title")).approval
        assert "marked-title" in own_place.done("approvals", "show", approval["id"])
        if end == "used":
            own_place.approve(approval)
            assert "marked-title" in own_place.done("approvals", "show", approval["id"])
            assert gateway.call("calendar", "event_put", event("kept", "marked-title")).called["ok"]
        elif end == "rejected":
            own_place.reject(approval)
        else:
            age(own_place, "approvals", minutes=16)
            assert gateway.call("calendar", "event_put", event("another")).kind == "pending"
        kept = f"select arguments from approvals where id = '{approval['id']}'"  # noqa: S608 - an id of ours
        assert rows(own_place, kept) == [(None,)]
        shown = own_place.operator("approvals", "show", approval["id"])
        assert "marked-title" not in shown.stdout + shown.stderr
        assert "marked-title" not in own_place.done("approvals", "list", "--all")


def test_an_id_can_be_shortened(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    approval = gateway.call("calendar", "event_put", event("short")).approval
    place.done("approvals", "show", approval["id"][:14])
    place.refused("approvals", "show", approval["id"][:5])
    place.done("approvals", "approve", approval["id"][:14])
    assert gateway.call("calendar", "event_put", event("short")).called["ok"]


def test_what_is_no_open_approval_cannot_be_decided(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    place.refused("approvals", "approve", "appr_0000000000000000")
    place.refused("approvals", "reject", "appr_")
    approval = gateway.call("calendar", "event_put", event("twice")).approval
    place.approve(approval)
    place.refused("approvals", "approve", approval["id"])
    assert gateway.call("calendar", "event_put", event("twice")).called["ok"]
    place.refused("approvals", "approve", approval["id"])
    place.refused("approvals", "reject", approval["id"])
    assert gateway.call("calendar", "event_put", event("twice")).kind == "pending"


@pytest.mark.parametrize("key", [None, "wrong", "0" * 64])
def test_only_the_operator_decides(
    place: Place, gateway: Gateway, calendar: Scripted, key: str | None, operator_key: tuple[str, str]
) -> None:
    approval = gateway.call("calendar", "event_put", event(f"operator {key}")).approval
    for word in ("approve", "reject", "show"):
        said = place.operator("approvals", word, approval["id"], key=key)
        assert said.returncode != 0
        assert approval["arguments_sha256"] not in said.stdout
    for given in (key, operator_key[1]):  # the digest that stands in the policy file is no key
        listed = place.operator("approvals", "list", key=given)
        assert listed.returncode != 0
        assert approval["id"] not in listed.stdout
    assert gateway.call("calendar", "event_put", event(f"operator {key}")).approval["id"] == approval["id"]


def test_the_declared_right_is_asked_for(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    place.grant(ask=[f"{right} mcp:calendar:*" for right in ("read", "write", "execute")])
    assert gateway.call("calendar", "event_put", event("right")).approval["rights"] == ASK
    assert gateway.call("calendar", "event_get", {"event_id": "r"}).approval["rights"] == [
        "read mcp:calendar:event_get"
    ]


def test_an_ask_wins_over_an_allow(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    place.grant("write mcp:*", *ASK, ask=["write mcp:calendar:*"])
    assert gateway.call("calendar", "event_put", event("both")).kind == "pending"


def test_what_is_wrong_anyway_is_never_asked_for(place: Place, gateway: Gateway, own_upstream: Scripted) -> None:
    place.add(manifest(own_upstream, "wrong", [PUT, tool(GET, right="write", input_schema={})], max_request_bytes=200))
    place.grant(ask=["write mcp:wrong:*"])
    before = place.approvals("--all")
    assert gateway.call("wrong", "event_put", {"event_id": 7}).kind == "invalid_input"
    assert gateway.call("wrong", "event_put", event("x", "long " * 50)).kind == "invalid_input"
    assert gateway.call("wrong", "event_get", {}).kind == "conflict"
    place.policy({SUBJECT: {"allow": [], "ask": ["write mcp:wrong:*"], "deny": []}})
    assert gateway.call("wrong", "event_put", event("x")).kind == "denied"
    assert place.approvals("--all") == before
    assert own_upstream.untouched


def test_wrong_arguments_leave_an_approval_unspent(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    place.approve(gateway.call("calendar", "event_put", event("unspent")).approval)
    for wrong in ({}, {"event_id": 1}, {**event("unspent"), "extra": 1}):
        assert gateway.call("calendar", "event_put", wrong).kind == "invalid_input"
    assert gateway.call("calendar", "event_put", event("unspent")).called["ok"]


def test_an_approval_that_nothing_came_of_can_be_used_again(
    place: Place, gateway: Gateway, own_upstream: Scripted, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    whole = manifest(own_upstream, "starting")
    stdio = whole["stdio"]
    whole["stdio"] = {"command": str(program), "args": stdio["args"]}
    place.add(whole)
    place.grant(ask=["write mcp:starting:*"])
    place.approve(gateway.call("starting", "event_put", event("x")).approval)
    for _ in range(2):
        assert gateway.call("starting", "event_put", event("x")).kind == "unavailable"
    program.symlink_to(stdio["command"])
    assert gateway.call("starting", "event_put", event("x")).called["ok"]
    assert gateway.call("starting", "event_put", event("x")).kind == "pending"
    assert own_upstream.count("call") == 1


def test_an_approval_outlives_the_server_and_a_missing_secret(
    place: Place, own_upstream: Scripted, tmp_path: Path
) -> None:
    place.add(manifest(own_upstream, "secretive", env={"TOKEN": "LIBOS_MCP_LATER"}))
    place.grant(ask=["write mcp:secretive:*"])
    with place.serving() as gateway:
        place.approve(gateway.call("secretive", "event_put", event("x")).approval)
        refusal = gateway.call("secretive", "event_put", event("x")).refusal
        assert refusal["kind"] == "unavailable"
        assert "LIBOS_MCP_LATER" in refusal["message"]
        assert "TOKEN" in refusal["message"]
    assert own_upstream.untouched
    with place.serving(env={"LIBOS_MCP_LATER": "there"}) as gateway:
        assert gateway.call("secretive", "event_put", event("x")).called["ok"]
        assert gateway.call("secretive", "event_put", event("x")).kind == "pending"


@pytest.mark.parametrize("what", ["die", "drift", "error", "start"])
def test_an_approval_is_used_up_once_the_upstream_was_contacted(
    place: Place, gateway: Gateway, calendar: Scripted, what: str
) -> None:
    approval = gateway.call("calendar", "event_put", event(what)).approval
    place.approve(approval)
    if what == "die":
        calendar.tell(deeds={"tools/call": "die"})
    if what == "start":
        calendar.tell(deeds={"start": "die"})
    if what == "drift":
        calendar.tell(tools=[{**LIVE_PUT, "inputSchema": {**PUT_SCHEMA, "title": "Put"}}])
    if what == "error":
        calendar.tell(results={"cal.put": {"content": [], "isError": True}})
    status = {"drift": "invalid_response", "error": "mcp_error"}.get(what, "transport_error")
    assert gateway.call("calendar", "event_put", event(what)).called["status"] == status
    assert gateway.call("calendar", "event_put", event(what)).approval["id"] != approval["id"]


@pytest.mark.parametrize("servers", [1, 2])
def test_of_many_resumes_one_runs(place: Place, calendar: Scripted, servers: int) -> None:
    with ExitStack() as stack:
        gateways = [stack.enter_context(place.serving()) for _ in range(servers)]
        for number in range(3):
            arguments = event(f"race {servers} {number}")
            place.approve(gateways[0].call("calendar", "event_put", arguments).approval)
            sent = [(gateway, gateway.send_call("calendar", "event_put", arguments)) for gateway in gateways * 4]
            replies = [gateway.reply(request) for gateway, request in sent]
            assert sorted(reply.failed for reply in replies) == [False] + [True] * (len(sent) - 1)
            assert {reply.kind for reply in replies if reply.failed} <= {"pending"}
            assert calendar.calls.count(("cal.put", arguments)) == 1


def test_there_is_a_bound_to_what_waits(own_place: Place, own_upstream: Scripted) -> None:
    own_place.add(manifest(own_upstream))
    own_place.grant(ask=ASK)
    with own_place.serving() as gateway:
        sent = [gateway.send_call("calendar", "event_put", event(str(number))) for number in range(103)]
        kinds = [gateway.reply(request).kind for request in sent]
    assert (kinds.count("pending"), kinds.count("busy")) == (100, 3)


def test_reading_can_be_asked_for_too(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    place.policy({SUBJECT: {"allow": [*LAUNCH], "ask": ["read mcp_server:*", "read mcp:calendar:*"], "deny": []}})
    approval = gateway.tool("list_mcp_servers", text="calendar").approval
    assert approval["rights"] == ["read mcp_server:*"]
    place.approve(approval)
    assert gateway.tool("list_mcp_servers", text="calendar").done["servers"]
    assert gateway.tool("list_mcp_servers", text="calendar").kind == "pending"
    place.approve(gateway.call("calendar", "event_get", {"event_id": "e"}).approval)
    assert gateway.call("calendar", "event_get", {"event_id": "e"}).called["ok"]
