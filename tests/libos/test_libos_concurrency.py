"""Calls side by side: to different upstreams as many as there are, to one up to its limit. Upstreams meet, no clock is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from .http_upstream import ScriptedHttp
from .manifests import http_manifest, manifest
from .places import Place
from .processes import Gateway
from .scripted import Scripted, poll


@pytest.fixture(autouse=True)
def may_read(place: Place) -> None:
    place.grant("read mcp:*", "read mcp_server:*")


def event(number: int) -> dict[str, str]:
    return {"event_id": str(number)}


@pytest.fixture
def meeting(tmp_path: Path) -> Path:
    folder = tmp_path / "meeting"
    folder.mkdir()
    return folder


def test_different_upstreams_work_side_by_side(
    place: Place, gateway: Gateway, remote: ScriptedHttp, tmp_path: Path, meeting: Path
) -> None:
    upstreams = [Scripted(tmp_path / f"side-{number}") for number in range(3)]
    for number, upstream in enumerate(upstreams):
        place.add(manifest(upstream, f"side-{number}", concurrency=1))
    place.add(http_manifest(remote, "side-3", concurrency=1))
    for upstream in (*upstreams, remote):
        upstream.tell(meet=4, meeting=str(meeting))
    sent = [gateway.send_call(f"side-{number}", "event_get", event(number)) for number in range(4)]
    for number, request in enumerate(sent):
        assert gateway.reply(request).result["structured_content"]["arguments"] == event(number)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_one_upstream_works_up_to_its_limit(
    place: Place, gateway: Gateway, own_upstream: Scripted, calendar: Scripted, meeting: Path, limit: int
) -> None:
    name = f"limited-{limit}"
    place.add(manifest(own_upstream, name, concurrency=limit, timeout_s=60))
    own_upstream.tell(hold={"tools/call": "go"})
    sent = [gateway.send_call(name, "event_get", event(number)) for number in range(limit + 3)]
    own_upstream.wait_for("entered", limit)
    assert gateway.call("calendar", "event_get", event(0)).called["ok"]  # others do not wait
    assert own_upstream.count("start") == limit
    own_upstream.release()
    assert all(gateway.reply(request).called["ok"] for request in sent)
    assert own_upstream.most_at_once == limit
    assert own_upstream.count("call") == limit + 3


def test_who_waits_too_long_has_contacted_nothing(place: Place, gateway: Gateway, own_upstream: Scripted) -> None:
    place.add(manifest(own_upstream, "crowded", concurrency=1, timeout_s=2))
    place.grant("read mcp:*", ask=["write mcp:*"])
    approval = gateway.call("crowded", "event_put", event(1)).approval
    place.approve(approval)
    own_upstream.tell(hold={"tools/call": "go"})
    first = gateway.send_call("crowded", "event_get", event(0))
    own_upstream.wait_for("entered")
    waiting = gateway.send_call("crowded", "event_put", event(1))
    gateway.reply(first).ended("transport_error", started=True)
    own_upstream.release()
    reply = gateway.reply(waiting)
    if reply.failed:
        assert reply.kind == "busy"
        assert own_upstream.count("call") == 1
        assert gateway.call("crowded", "event_put", event(1)).called["ok"]  # by the same approval
    else:  # its turn came in time, perhaps not for long
        assert reply.called["status"] in ("ok", "transport_error")
    assert gateway.call("crowded", "event_put", event(1)).kind == "pending"


def test_a_call_that_takes_long_holds_nothing_else_up(place: Place, gateway: Gateway, own_upstream: Scripted) -> None:
    place.add(manifest(own_upstream, "slow", timeout_s=60))
    own_upstream.tell(hold={"tools/call": "go"})
    slow = gateway.send_call("slow", "event_get", event(0))
    own_upstream.wait_for("entered")
    assert gateway.tool("inspect_mcp_server", server_id="slow").done
    assert gateway.tool("list_mcp_servers", text="slow").done["servers"]
    place.replace(manifest(own_upstream, "slow", timeout_s=30))  # nor the operator
    own_upstream.release()
    assert gateway.reply(slow).called["ok"]


def test_replies_are_not_mixed_up(place: Place, gateway: Gateway, calendar: Scripted, remote: ScriptedHttp) -> None:
    place.add(http_manifest(remote, "mixed"))
    sent = [
        (number, gateway.send_call(("calendar", "mixed")[number % 2], "event_get", event(number)))
        for number in range(24)
    ]
    for number, request in reversed(sent):
        assert gateway.reply(request).result["structured_content"]["arguments"] == event(number)


def test_several_servers_share_one_state(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    with place.serving() as second, place.serving() as third:
        servers = (gateway, second, third)
        sent = [
            (server, server.send_call("calendar", "event_get", event(number)))
            for number in range(5)
            for server in servers
        ]
        assert all(server.reply(request).called["ok"] for server, request in sent)
    assert calendar.count("call") == 15
    poll(lambda: calendar.count("end") >= 15, "the end of all of them")
