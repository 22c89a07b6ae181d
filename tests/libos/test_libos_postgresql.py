"""The most important ways through libos-mcp with PostgreSQL in place of a file: what is kept is kept as well there."""

from __future__ import annotations

import secrets
from contextlib import ExitStack

import pytest

from tests.postgresql import Server

from .conftest import NewPlace
from .manifests import manifest
from .places import SUBJECT, Place, rules
from .processes import Gateway
from .scripted import Scripted, poll
from .test_libos_misbehaviour import gone


@pytest.fixture(scope="module")
def place(new_place: NewPlace, postgresql: Server) -> Place:
    """A place whose state lies in a database of its own."""
    place = new_place()
    place.store = postgresql.url(postgresql.make_database())
    return place


def event(name: str) -> dict[str, str]:
    return {"event_id": name, "title": "x"}


def test_an_approved_call_runs_once(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    place.grant("read mcp:*", ask=["write mcp:*"])
    assert gateway.call("calendar", "event_get", {"event_id": "e"}).called["ok"]
    approval = gateway.call("calendar", "event_put", event("once")).approval
    assert gateway.call("calendar", "event_put", event("once")).approval["id"] == approval["id"]
    assert "once" in place.done("approvals", "show", approval["id"])
    place.approve(approval)
    assert gateway.call("calendar", "event_put", event("other")).kind == "pending"
    assert gateway.call("calendar", "event_put", event("once")).called["ok"]
    assert gateway.call("calendar", "event_put", event("once")).approval["id"] != approval["id"]
    place.reject(gateway.call("calendar", "event_put", event("no")).approval)
    assert gateway.call("calendar", "event_put", event("no")).kind == "denied"
    assert calendar.counts == (2, 2, 2)
    kinds = [row["kind"] for row in place.audit()]
    assert {kind: kinds.count(kind) for kind in ("registry", "approval", "call")} == {
        "registry": 2,
        "approval": 2,
        "call": 2,
    }


def test_of_many_resumes_one_runs(place: Place, calendar: Scripted) -> None:
    place.grant(ask=["write mcp:*"])
    with ExitStack() as stack:
        gateways = [stack.enter_context(place.serving()) for _ in range(3)]
        for number in range(5):
            arguments = event(f"race {number}")
            place.approve(gateways[0].call("calendar", "event_put", arguments).approval)
            sent = [(gateway, gateway.send_call("calendar", "event_put", arguments)) for gateway in gateways * 3]
            replies = [gateway.reply(request) for gateway, request in sent]
            assert sorted(reply.failed for reply in replies) == [False] + [True] * (len(sent) - 1)
            assert {reply.kind for reply in replies if reply.failed} == {"pending"}
            assert calendar.calls.count(("cal.put", arguments)) == 1


@pytest.mark.usefixtures("calendar")
def test_a_replacement_suspends(place: Place, gateway: Gateway, own_upstream: Scripted) -> None:
    place.add(manifest(own_upstream, "own"))
    place.grant("read mcp:*", "read mcp_server:*", ask=["write mcp:*"])
    before = gateway.tool("inspect_mcp_server", server_id="own").done["server"]
    place.approve(gateway.call("own", "event_put", event("x")).approval)
    place.replace(manifest(own_upstream, "own"))
    after = gateway.tool("inspect_mcp_server", server_id="own").done["server"]
    assert (after["generation"], after["digest"]) == (before["generation"] + 1, before["digest"])
    assert gateway.call("own", "event_get", {"event_id": "e"}).kind == "denied"
    place.confirm("own")
    assert gateway.call("own", "event_put", event("x")).kind == "pending"
    assert gateway.call("own", "event_get", {"event_id": "e"}).called["ok"]
    place.done("servers", "remove", "own")
    assert gateway.tool("inspect_mcp_server", server_id="own").kind == "not_found"
    found = gateway.tool("list_mcp_servers", text="CALENDAR").done["servers"]
    assert [server["server_id"] for server in found] == ["calendar"]


def test_a_budget_is_that_of_all_servers(place: Place, calendar: Scripted) -> None:
    place.policy({SUBJECT: rules(["read mcp:*"], budget={"calls": 3, "per": "1d"})})
    with ExitStack() as stack:
        gateways = [stack.enter_context(place.serving()) for _ in range(2)]
        sent = [
            (one, one.send_call("calendar", "event_get", {"event_id": str(n)})) for n in range(4) for one in gateways
        ]
        replies = [one.reply(request) for one, request in sent]
    assert sum(not reply.failed for reply in replies) == 3
    assert {reply.kind for reply in replies if reply.failed} == {"busy"}


def test_a_gateway_that_is_killed_repeats_nothing(place: Place, calendar: Scripted) -> None:
    place.grant(ask=["write mcp:*"])
    calendar.tell(hold={"tools/call": "go"})
    with place.serving() as doomed:
        place.approve(doomed.call("calendar", "event_put", event("killed")).approval)
        doomed.send_call("calendar", "event_put", event("killed"))
        calendar.wait_for("call")
        doomed.kill()
    calendar.release()
    (started,) = calendar.events("start")
    poll(lambda: gone(started["pid"]), "the end of an upstream whose gateway was killed")
    with place.serving() as gateway:
        assert gateway.call("calendar", "event_put", event("killed")).kind == "pending"
    assert calendar.count("call") == 1
    last = [row for row in place.audit() if row["kind"] == "call"][-1]
    assert "unknown" in last.values()


def test_a_store_that_is_not_there_is_told_without_its_password(new_place: NewPlace, own_upstream: Scripted) -> None:
    password = secrets.token_urlsafe(18)
    place = new_place()
    place.store = f"postgresql://someone:{password}@127.0.0.1:1/nothing"
    place.grant("read mcp_server:*")
    said = place.operator("servers", "list")
    assert said.returncode != 0
    assert password not in said.stdout + said.stderr
    with place.serving() as gateway:
        assert gateway.tool("list_mcp_servers").kind == "unavailable"
        assert password not in gateway.log.read_text()
        assert password.encode() not in b"".join(gateway.seen)


def test_nothing_is_kept_in_files(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    assert not [name for name in place.files() if name.endswith(".db")]
