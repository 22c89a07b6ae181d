"""Who may call what: by the right that a tool declares, and without telling anybody else what exists."""

from __future__ import annotations

import os
from typing import Any

import pytest

from .manifests import GET, PUT, manifest, tool
from .places import LAUNCH, SUBJECT, Place, rules
from .processes import Gateway
from .scripted import Scripted

ARGUMENTS = {"event_id": "evt_123"}
EVERYTHING = ["mcp:calendar:*", "mcp:ghost:*"]


def test_who_holds_the_right_of_a_tool_calls_it(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    place.policy({SUBJECT: {"allow": ["read mcp_server:calendar"], "ask": [], "deny": []}})
    server = gateway.tool("inspect_mcp_server", server_id="calendar").done["server"]
    exact = ["read mcp:calendar:event_get", "write process:spawn", f"execute {server['stdio_authority_resource']}"]
    place.policy({SUBJECT: {"allow": exact, "ask": [], "deny": []}})
    reply = gateway.call("calendar", "event_get", ARGUMENTS)
    called = reply.called
    assert (called["server_id"], called["tool_id"], called["mcp_name"]) == ("calendar", "event_get", "cal.get")
    assert reply.result["structured_content"] == {"tool": "cal.get", "arguments": ARGUMENTS}
    assert called["schema_protection"] == "pinned"
    assert called["response_bytes"] > 0
    assert calendar.counts == (1, 1, 1)


def test_without_any_right_all_calls_are_denied_alike(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    place.policy({SUBJECT: rules(["read mcp_server:*", "execute mcp_server:*"])})
    targets = [("calendar", "event_get"), ("calendar", "nope"), ("ghost", "x"), ("calendar", "cal.get")]
    refusals = [gateway.call(*target, ARGUMENTS).refusal for target in targets]
    assert {refusal["kind"] for refusal in refusals} == {"denied"}
    told = {
        str(refusal).replace(server, "SERVER").replace(name, "TOOL")
        for (server, name), refusal in zip(targets, refusals, strict=True)
    }
    assert len(told) == 1
    assert calendar.untouched


@pytest.mark.parametrize("right", ["read", "write", "execute"])
@pytest.mark.parametrize("effect", ["allow", "ask"])
def test_with_any_right_what_does_not_exist_is_not_found(
    place: Place, gateway: Gateway, calendar: Scripted, right: str, effect: str
) -> None:
    granted = [f"{right} {resource}" for resource in EVERYTHING]
    place.policy({SUBJECT: rules(granted) if effect == "allow" else rules(ask=granted)})
    before = place.approvals("--all")
    targets = [("calendar", "nope"), ("ghost", "x"), ("calendar", "cal.get")]
    refusals = [gateway.call(*target, ARGUMENTS).refusal for target in targets]
    assert {refusal["kind"] for refusal in refusals} == {"not_found"}
    told = {
        str(refusal).replace(server, "SERVER").replace(name, "TOOL")
        for (server, name), refusal in zip(targets, refusals, strict=True)
    }
    assert len(told) == 1
    assert place.approvals("--all") == before
    assert calendar.untouched


@pytest.mark.parametrize("grant", ["read mcp:*", "read mcp:gone:*"])
def test_what_is_removed_is_like_what_never_was(
    place: Place, gateway: Gateway, own_upstream: Scripted, grant: str
) -> None:
    if "gone" not in place.done("servers", "list"):
        place.add(manifest(own_upstream, "gone"))
        place.done("servers", "remove", "gone")
    place.grant(grant, grant.replace("gone", "ghost"))
    removed, never = gateway.call("gone", "event_get").refusal, gateway.call("ghost", "event_get").refusal
    assert removed["kind"] == "not_found"
    assert str(removed).replace("gone", "ghost") == str(never)


@pytest.mark.parametrize("denied", ["read", "write", "execute"])
def test_a_deny_of_one_right_leaves_the_others_for_what_does_not_exist(
    place: Place, gateway: Gateway, calendar: Scripted, denied: str
) -> None:
    place.policy({SUBJECT: rules(["read mcp:ghost:x"], deny=[f"{denied} mcp:ghost:x"])})
    assert gateway.call("ghost", "x").kind == ("denied" if denied == "read" else "not_found")


@pytest.mark.parametrize(
    ("name", "granted", "kind"),
    [
        ("event_get", ["write", "execute", "admin"], "denied"),
        ("event_put", ["read", "execute", "admin"], "denied"),
        ("event_get", ["read"], None),
        ("event_put", ["write"], None),
    ],
)
def test_no_right_stands_for_another(
    place: Place, gateway: Gateway, calendar: Scripted, name: str, granted: list[str], kind: str | None
) -> None:
    place.grant(*(f"{right} mcp:calendar:{name}" for right in granted))
    reply = gateway.call("calendar", name, ARGUMENTS)
    if kind is None:
        assert reply.called["ok"]
    else:
        assert reply.kind == kind
        assert calendar.untouched


@pytest.mark.parametrize("missing", LAUNCH)
@pytest.mark.parametrize("instead", ["nothing", "ask", "deny"])
def test_what_starts_a_server_is_allowed_outright_or_not_at_all(
    place: Place, gateway: Gateway, calendar: Scripted, missing: str, instead: str
) -> None:
    (kept,) = set(LAUNCH) - {missing}
    own: dict[str, Any] = {"allow": [kept, "read mcp:calendar:*"], "ask": [], "deny": []}
    if instead == "ask":
        own["ask"].append(missing)
    if instead == "deny":
        own["allow"].append(missing)
        own["deny"].append(missing)
    place.policy({SUBJECT: own})
    before = place.approvals("--all")
    assert gateway.call("calendar", "event_get", ARGUMENTS).kind == "denied"
    assert gateway.call("calendar", "event_get", {"event_id": 1}).kind == "denied"  # rights come before arguments
    assert place.approvals("--all") == before
    assert calendar.untouched


@pytest.mark.parametrize("deny", ["read mcp:calendar:event_get", "read mcp:calendar:*", "read mcp:*"])
def test_a_deny_wins_over_allow_and_ask(place: Place, gateway: Gateway, calendar: Scripted, deny: str) -> None:
    allow = ["read mcp:*", "read mcp:calendar:*", "read mcp:calendar:event_get"]
    place.grant(*allow, ask=allow, deny=[deny])
    assert gateway.call("calendar", "event_get", ARGUMENTS).kind == "denied"
    place.grant(*allow)
    assert gateway.call("calendar", "event_get", ARGUMENTS).called["ok"]


@pytest.mark.parametrize(
    "near", ["read mcp_server:calendar", "read mcp:calendar:event", "read mcp:calendar:event_gett", "read mcp:cal:*"]
)
def test_what_only_looks_like_a_grant_is_none(place: Place, gateway: Gateway, calendar: Scripted, near: str) -> None:
    place.grant(near)
    assert gateway.call("calendar", "event_get", ARGUMENTS).kind == "denied"
    assert calendar.untouched


def test_values_of_a_call_never_act_as_patterns(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    place.grant("read mcp:calendar:event_get", "read mcp_server:calendar")
    for hostile in ("*", "cal*", "calendar:event_get", "", "x" * 97, "a b", "\uff43alendar"):
        assert gateway.call(hostile, "event_get", ARGUMENTS).kind == "invalid_input"
        assert gateway.call("calendar", hostile, ARGUMENTS).kind == "invalid_input"
        assert gateway.tool("inspect_mcp_server", server_id=hostile).kind == "invalid_input"
    assert calendar.untouched


def test_a_subject_that_is_not_in_the_policy_may_nothing(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    place.policy({"another": rules(["read mcp:*", "read mcp_server:*"])})
    assert gateway.call("calendar", "event_get", ARGUMENTS).kind == "denied"
    assert gateway.tool("list_mcp_servers").kind == "denied"


def test_a_policy_that_cannot_be_used_allows_nothing(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    place.grant("read mcp:calendar:*")
    assert gateway.call("calendar", "event_get", ARGUMENTS).called["ok"]
    calendar.forget()
    for text in ("subjects: [", '{"subjects": {}, "unknown": 1}', '{"subjects": {"agent": {"allow": ["read *"]}}}'):
        new = place.policy_file.with_suffix(".new")
        new.write_text(text)
        os.replace(new, place.policy_file)
        assert gateway.call("calendar", "event_get", ARGUMENTS).failed
    place.grant("read mcp:calendar:*")
    os.chmod(place.policy_file, 0o666)  # noqa: S103 - that is what is wrong with it
    assert gateway.call("calendar", "event_get", ARGUMENTS).failed
    place.policy_file.unlink()
    assert gateway.call("calendar", "event_get", ARGUMENTS).failed
    assert calendar.untouched
    place.grant("read mcp:calendar:*")
    assert gateway.call("calendar", "event_get", ARGUMENTS).called["ok"]


def test_the_starter_policy_allows_nobody_to_call(own_place: Place) -> None:
    with own_place.serving() as gateway:
        own_place.policy_file.unlink()
        assert gateway.tool("list_mcp_servers").failed


def test_the_right_is_that_of_the_registration_not_of_the_upstream(
    place: Place, gateway: Gateway, own_upstream: Scripted
) -> None:
    hinted = {
        "name": "cal.get",
        "inputSchema": GET["input_schema"],
        "annotations": {"readOnlyHint": True, "destructiveHint": False},
    }
    own_upstream.tell(tools=[hinted])
    place.add(manifest(own_upstream, "hinting", [tool(GET, right="execute"), tool(PUT, mcp_name="cal.other")]))
    place.grant("read mcp:hinting:*", "write mcp:hinting:*")
    assert gateway.call("hinting", "event_get", ARGUMENTS).kind == "denied"
    place.grant("execute mcp:hinting:event_get")
    assert gateway.call("hinting", "event_get", ARGUMENTS).called["ok"]
