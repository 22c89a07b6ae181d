"""What a change of a registration does to rights, to approvals, and to calls that are under way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .manifests import GET, PUT, manifest, tool
from .places import Place
from .processes import Gateway
from .scripted import Json, Scripted

ARGUMENTS = {"event_id": "evt_123"}


@dataclass(slots=True)
class Registered:
    """A server of a test's own."""

    place: Place
    gateway: Gateway
    upstream: Scripted
    name: str

    def manifest(self, **more: Any) -> Json:
        return manifest(self.upstream, self.name, **more)

    def call(self, name: str = "event_get") -> Any:
        return self.gateway.call(self.name, name, ARGUMENTS)

    @property
    def view(self) -> Json:
        return dict(self.gateway.tool("inspect_mcp_server", server_id=self.name).done["server"])


@pytest.fixture
def registered(place: Place, gateway: Gateway, own_upstream: Scripted, request: pytest.FixtureRequest) -> Registered:
    name = f"own-{abs(hash(request.node.nodeid))}"
    own = Registered(place, gateway, own_upstream, name)
    place.add(own.manifest())
    return own


def test_a_replacement_suspends_until_it_is_confirmed(registered: Registered) -> None:
    place = registered.place
    place.grant("read mcp:*", f"read mcp:{registered.name}:*", "read mcp_server:*")
    assert registered.call().called["ok"]
    before = registered.view
    place.replace(registered.manifest(timeout_s=20))
    assert registered.call().kind == "denied"
    assert place.audit()[-1]["reason"] == "suspended"
    after = registered.view
    assert after["generation"] == before["generation"] + 1
    assert after["digest"] != before["digest"]
    assert registered.upstream.count("call") == 1
    place.confirm(registered.name)
    assert registered.call().called["ok"]
    assert {**registered.view, "updated_at": None} == {**after, "updated_at": None}


def test_a_replacement_by_the_same_is_a_change_as_well(registered: Registered) -> None:
    place = registered.place
    place.grant(f"read mcp:{registered.name}:event_get", "read mcp_server:*")
    before = registered.view
    place.replace(registered.manifest(timeout_s=10.0))
    after = registered.view
    assert (after["generation"], after["digest"]) == (before["generation"] + 1, before["digest"])
    assert registered.call().kind == "denied"
    place.confirm(registered.name)
    assert registered.call().called["ok"]


def test_a_suspended_server_is_asked_for_by_nobody(registered: Registered) -> None:
    place = registered.place
    place.grant(ask=["write mcp:*", f"write mcp:{registered.name}:*"])
    place.replace(registered.manifest())
    before = place.approvals("--all")
    assert registered.call("event_put").kind == "denied"
    assert place.approvals("--all") == before


def test_a_deny_is_never_suspended(registered: Registered) -> None:
    place = registered.place
    place.grant("read mcp:*", deny=[f"read mcp:{registered.name}:event_get"])
    assert registered.call().kind == "denied"
    place.replace(registered.manifest())
    assert registered.call().kind == "denied"
    place.confirm(registered.name)
    assert registered.call().kind == "denied"
    assert registered.upstream.untouched


def test_other_rights_are_not_suspended(registered: Registered) -> None:
    registered.place.grant(f"read mcp_server:{registered.name}", f"execute mcp_server:{registered.name}")
    registered.place.replace(registered.manifest())
    answer = registered.gateway.tool("list_mcp_tools", server_id=registered.name, refresh=True).done
    assert answer["refreshed"] is True


def test_other_servers_are_not_suspended(registered: Registered, calendar: Scripted) -> None:
    registered.place.grant("read mcp:*")
    registered.place.replace(registered.manifest())
    assert registered.call().kind == "denied"
    assert registered.gateway.call("calendar", "event_get", ARGUMENTS).called["ok"]


@pytest.mark.parametrize("when", ["pending", "approved"])
def test_an_approval_dies_with_its_registration(registered: Registered, when: str) -> None:
    place = registered.place
    place.grant(ask=[f"write mcp:{registered.name}:*"])
    approval = registered.call("event_put").approval
    if when == "approved":
        place.approve(approval)
    place.replace(registered.manifest())
    place.confirm(registered.name)
    later = registered.call("event_put").approval
    assert later["id"] != approval["id"]
    assert later["target"]["registration_generation"] == approval["target"]["registration_generation"] + 1
    assert later["target"]["registration_digest"] == approval["target"]["registration_digest"]
    assert registered.upstream.untouched


def test_going_back_does_not_bring_an_approval_back(registered: Registered) -> None:
    place = registered.place
    place.grant(ask=[f"write mcp:{registered.name}:*"])
    approval = registered.call("event_put").approval
    place.approve(approval)
    place.replace(registered.manifest(timeout_s=20))
    place.replace(registered.manifest())
    place.confirm(registered.name)
    assert registered.call("event_put").approval["id"] != approval["id"]


def test_a_server_that_was_removed_is_gone(registered: Registered) -> None:
    place, gateway = registered.place, registered.gateway
    place.grant("read mcp:*", "read mcp_server:*", "execute mcp_server:*")
    before = registered.view
    place.done("servers", "remove", registered.name)
    assert registered.call().kind in ("denied", "not_found")
    assert gateway.tool("inspect_mcp_server", server_id=registered.name).kind == "not_found"
    assert gateway.tool("list_mcp_tools", server_id=registered.name, refresh=True).kind == "not_found"
    assert registered.name not in str(gateway.tool("list_mcp_servers", text=registered.name).done)
    place.refused("servers", "remove", registered.name)
    place.refused("servers", "replace", str(place.manifest_file(registered.manifest())))
    place.add(registered.manifest())
    assert registered.view["generation"] == before["generation"] + 2
    assert registered.call().kind == "denied"
    place.confirm(registered.name)
    assert registered.call().called["ok"]


def test_what_was_approved_before_it_was_removed_stays_dead(registered: Registered) -> None:
    place = registered.place
    place.grant(ask=[f"write mcp:{registered.name}:*"])
    approval = registered.call("event_put").approval
    place.approve(approval)
    place.done("servers", "remove", registered.name)
    place.add(registered.manifest())
    place.confirm(registered.name)
    assert registered.call("event_put").approval["id"] != approval["id"]


def test_a_first_registration_is_not_suspended(registered: Registered) -> None:
    registered.place.grant("read mcp:*")
    assert registered.call().called["ok"]
    registered.place.refused("servers", "confirm", "ghost")


@pytest.mark.parametrize("moment", ["initialize", "tools/list"])
@pytest.mark.parametrize("change", ["replace", "remove"])
def test_a_change_before_the_call_is_sent_stops_it(registered: Registered, moment: str, change: str) -> None:
    place, upstream = registered.place, registered.upstream
    place.grant("read mcp:*")
    upstream.tell(hold={moment: "go"})
    request = registered.gateway.send_call(registered.name, "event_get", ARGUMENTS)
    upstream.wait_for("list" if moment == "tools/list" else "initialize")
    if change == "replace":
        place.replace(registered.manifest())
        place.confirm(registered.name)
    else:
        place.done("servers", "remove", registered.name)
    upstream.release()
    registered.gateway.reply(request).ended("invalid_response", "RegistrationChanged", started=False)
    assert upstream.count("call") == 0


def test_a_change_after_the_call_was_sent_does_not_undo_it(registered: Registered) -> None:
    place, upstream = registered.place, registered.upstream
    place.grant("read mcp:*")
    upstream.tell(hold={"tools/call": "go"})
    request = registered.gateway.send_call(registered.name, "event_get", ARGUMENTS)
    upstream.wait_for("call")
    place.replace(registered.manifest())
    upstream.release()
    assert registered.gateway.reply(request).called["ok"]


def test_a_change_is_seen_by_every_server_at_once(registered: Registered) -> None:
    place = registered.place
    place.grant("read mcp:*", "read mcp_server:*")
    with place.serving() as second:
        for gateway in (registered.gateway, second):
            assert gateway.call(registered.name, "event_get", ARGUMENTS).called["ok"]
        place.replace(registered.manifest(tools=[tool(GET, tool_id="event_read"), PUT]))
        place.confirm(registered.name)
        for gateway in (registered.gateway, second):
            assert gateway.call(registered.name, "event_get", ARGUMENTS).kind == "not_found"
            assert gateway.call(registered.name, "event_read", ARGUMENTS).called["ok"]


def test_a_kept_session_of_an_older_registration_is_not_used(
    place: Place, gateway: Gateway, own_upstream: Scripted, tmp_path: Path
) -> None:
    name = "kept-session"
    place.add(manifest(own_upstream, name, warm=True))
    place.grant("read mcp:*")
    for _ in range(2):
        assert gateway.call(name, "event_get", ARGUMENTS).called["ok"]
    assert own_upstream.count("start") == 1
    place.replace(manifest(own_upstream, name, warm=True))
    place.confirm(name)
    assert gateway.call(name, "event_get", ARGUMENTS).called["ok"]
    assert own_upstream.count("start") == 2
