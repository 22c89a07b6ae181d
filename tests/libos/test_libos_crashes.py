"""Gateways and commands that are killed: what is kept opens again, an approval is used or it isn't, and no call comes twice."""

from __future__ import annotations

import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from .manifests import manifest
from .places import SUBJECT, Place, rules
from .scripted import Json, Scripted, poll
from .test_libos_misbehaviour import gone

LAUNCHER = str(Path(__file__).with_name("crashing_gateway.py"))
ARGUMENTS = {"event_id": "evt_123", "title": "once"}
NOWHERE = "nowhere"


@dataclass(slots=True)
class Scene:
    """A state with an approved call that has not been made, and copies of it."""

    whole: Place
    upstream: Scripted
    folder: Path
    copies: int = 0

    def copy(self) -> Place:
        """The same state, for one crash."""
        self.copies += 1
        place = Place(self.folder / f"copy-{self.copies}", self.whole.key, self.whole.digest)
        shutil.copytree(self.whole.state, place.state)
        place.policy({SUBJECT: rules(["read mcp_server:*", "read mcp:*"], ask=["write mcp:*"])})
        self.upstream.forget()
        return place

    def program(self, place: Place, point: str) -> tuple[str, ...]:
        """What is killed at this point."""
        return LAUNCHER, point, str(place.folder / "noted")

    def reached(self, place: Place) -> list[str]:
        """The points that a program came by, each once."""
        return list(dict.fromkeys((place.folder / "noted").read_text().splitlines()))


@pytest.fixture
def scene(own_place: Place, own_upstream: Scripted, tmp_path: Path) -> Scene:
    own_place.add(manifest(own_upstream))
    own_place.grant(ask=["write mcp:*"])
    with own_place.serving() as gateway:
        own_place.approve(gateway.call("calendar", "event_put", ARGUMENTS).approval)
    return Scene(own_place, own_upstream, tmp_path)


def settled(place: Place) -> list[Json]:
    """The rows of calls, none of which is still to end."""
    rows = [row for row in place.audit() if row["kind"] == "call"]
    assert not any("pending" in row.values() for row in rows), rows
    return rows


def test_a_gateway_that_is_killed_at_a_write(scene: Scene) -> None:
    place = scene.copy()
    with place.serving(program=scene.program(place, NOWHERE)) as gateway:
        assert gateway.call("calendar", "event_put", ARGUMENTS).called["ok"]
    points = scene.reached(place)
    assert len(points) >= 4
    outcomes = set()
    for point in points:
        place = scene.copy()
        with place.serving(program=scene.program(place, point)) as doomed:
            doomed.send_call("calendar", "event_put", ARGUMENTS)
            assert doomed.wait() == -signal.SIGKILL, point
        sent = scene.upstream.count("call")
        with place.serving() as gateway:
            reply = gateway.call("calendar", "event_put", ARGUMENTS)
            again = gateway.call("calendar", "event_put", ARGUMENTS)
        assert again.kind == "pending", point
        if reply.failed:
            assert reply.kind == "pending", point  # the approval was used
            assert scene.upstream.count("call") == sent, point
        else:
            assert reply.called["ok"], point
            assert sent == 0, point
        assert scene.upstream.count("call") <= 1, point
        rows = settled(place)
        assert len(rows) == 1, point
        outcomes.add((reply.failed, sent, "unknown" in rows[0].values()))
    assert (False, 0, False) in outcomes  # killed before it was used
    assert (True, 1, True) in outcomes  # killed after the call, before its end was noted


@pytest.mark.parametrize("moment", ["tools/list", "tools/call"])
def test_a_gateway_that_is_killed_while_its_upstream_works(scene: Scene, moment: str) -> None:
    place = scene.copy()
    scene.upstream.tell(hold={moment: "go"})
    with place.serving() as doomed:
        doomed.send_call("calendar", "event_put", ARGUMENTS)
        scene.upstream.wait_for("call" if moment == "tools/call" else "list")
        doomed.kill()
    scene.upstream.release()
    (event,) = scene.upstream.events("start")
    poll(lambda: gone(event["pid"]), "the end of an upstream whose gateway was killed")
    sent = scene.upstream.count("call")
    assert sent == int(moment == "tools/call")
    with place.serving() as gateway:
        assert gateway.call("calendar", "event_put", ARGUMENTS).kind == "pending"
    assert scene.upstream.count("call") == sent
    (row,) = settled(place)
    assert "unknown" in row.values()


def test_a_command_that_is_killed_at_a_write(scene: Scene) -> None:
    file = str(scene.whole.manifest_file(manifest(scene.upstream, timeout_s=20)))
    new = str(scene.whole.manifest_file(manifest(scene.upstream, "new")))
    commands = {"replace": [file], "remove": ["calendar"], "add": [new]}
    for word, rest in commands.items():
        place = scene.copy()
        assert place.operator("servers", word, *rest, program=scene.program(place, NOWHERE)).returncode == 0
        shown = place.done("servers", "list")
        changes = [row for row in place.audit() if row["kind"] == "registry"]
        points = scene.reached(place)
        assert len(points) >= 2
        place = scene.copy()
        before = place.done("servers", "list")
        earlier = [row for row in place.audit() if row["kind"] == "registry"]
        for point in points:
            place = scene.copy()
            ended = place.operator("servers", word, *rest, program=scene.program(place, point))
            assert ended.returncode == -signal.SIGKILL, point
            after = place.done("servers", "list")
            rows = [row for row in place.audit() if row["kind"] == "registry"]
            if len(rows) == len(earlier):
                assert after == before, (word, point)
                place.done("servers", word, *rest)
            assert len([row for row in place.audit() if row["kind"] == "registry"]) == len(changes), (word, point)
            assert _plain(place.done("servers", "list")) == _plain(shown), (word, point)


def _plain(listed: str) -> list[str]:
    """A list of servers without what depends on when it was made."""
    return [" ".join(part for part in line.split() if ":" not in part) for line in listed.splitlines()]


def test_an_approval_that_is_killed_at_a_write(scene: Scene) -> None:
    other = {"event_id": "another"}
    place = scene.copy()
    with place.serving() as gateway:
        approval = gateway.call("calendar", "event_put", other).approval
    base = scene.whole
    shutil.rmtree(base.state)
    shutil.copytree(place.state, base.state)
    place = scene.copy()
    assert place.operator("approvals", "approve", approval["id"], program=scene.program(place, NOWHERE)).returncode == 0
    points = scene.reached(place)
    assert len(points) >= 2
    for point in points:
        place = scene.copy()
        ended = place.operator("approvals", "approve", approval["id"], program=scene.program(place, point))
        assert ended.returncode == -signal.SIGKILL, point
        rows = [row for row in place.audit() if row["kind"] == "approval" and row["approval_id"] == approval["id"]]
        with place.serving() as gateway:
            reply = gateway.call("calendar", "event_put", other)
            assert reply.failed is (rows == []), point
            if reply.failed:
                assert reply.approval["id"] == approval["id"], point
                place.approve(approval)
                assert gateway.call("calendar", "event_put", other).called["ok"], point
        assert scene.upstream.count("call") == 1, point


def test_a_budget_survives_a_kill(scene: Scene) -> None:
    place = scene.copy()
    place.policy({SUBJECT: rules(["read mcp:*"], budget={"calls": 2, "per": "1d"})})
    scene.upstream.tell(hold={"tools/call": "go"})
    with place.serving() as doomed:
        doomed.send_call("calendar", "event_get", {"event_id": "e"})
        scene.upstream.wait_for("call")
        doomed.kill()
    scene.upstream.release()
    with place.serving() as gateway:
        assert gateway.call("calendar", "event_get", {"event_id": "e"}).called["ok"]
        assert gateway.call("calendar", "event_get", {"event_id": "e"}).kind == "busy"
