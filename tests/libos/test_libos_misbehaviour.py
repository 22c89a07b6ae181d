"""Upstreams over stdio that hang, die, flood, or talk nonsense: one status, one deadline, one try, and no rest of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .manifests import manifest
from .places import Place
from .processes import Gateway
from .scripted import Scripted, poll

EVENT = {"event_id": "evt_123"}
SHORT = 0.5  # seconds that a server has which will not answer
CAP = 20_000  # bytes of a response
SAFE = {"code", "error_type", "correlation_id", "message"}


@pytest.fixture(scope="module")
def shared_short(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Scripted:
    upstream = Scripted(tmp_path_factory.mktemp("short"))
    place.add(manifest(upstream, "short", timeout_s=SHORT))
    return upstream


@pytest.fixture
def short(shared_short: Scripted) -> Scripted:
    """A server that has little time."""
    shared_short.forget()
    return shared_short


@pytest.fixture(scope="module")
def shared_capped(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Scripted:
    upstream = Scripted(tmp_path_factory.mktemp("capped"))
    place.add(manifest(upstream, "capped", max_response_bytes=CAP))
    return upstream


@pytest.fixture
def capped(shared_capped: Scripted) -> Scripted:
    """A server of which little is read."""
    shared_capped.forget()
    return shared_capped


@pytest.fixture(autouse=True)
def all_rights(place: Place) -> None:
    place.grant("read mcp:*", "write mcp:*", "execute mcp:*")


def gone(pid: int) -> bool:
    """Whether no such process runs any more."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


@pytest.mark.parametrize("moment", ["start", "initialize", "tools/list", "tools/call"])
def test_an_upstream_that_dies_is_told_plainly(gateway: Gateway, calendar: Scripted, moment: str) -> None:
    calendar.tell(deeds={moment: "die of s3cret-cause"})
    started = moment == "tools/call"
    called = gateway.call("calendar", "event_put", EVENT).ended("transport_error", started=started)
    assert set(called["error"]) == {"code", "error_type", "correlation_id"}
    assert called["error"]["error_type"] == "McpConnectionLost"
    assert calendar.count("start") == 1
    assert calendar.count("call") == int(started)
    assert "s3cret" not in gateway.log.read_text()


@pytest.mark.parametrize("moment", ["start", "initialize", "tools/list", "tools/call"])
def test_an_upstream_that_hangs_has_its_time_and_no_more(gateway: Gateway, short: Scripted, moment: str) -> None:
    short.tell(deeds={moment: "hang"})
    started = moment == "tools/call"
    called = gateway.call("short", "event_put", EVENT).ended("transport_error", started=started)
    assert set(called["error"]) == {"code", "error_type", "correlation_id"}
    assert called["error"]["error_type"] in ("McpTimeout", "McpDeadlineExceeded")
    assert called["duration_s"] >= SHORT
    assert short.count("call") == int(started)
    (event,) = short.events("start")
    poll(lambda: gone(event["pid"]), "the end of a server that hangs")


def test_a_list_that_takes_all_the_time_leaves_none_for_the_call(gateway: Gateway, short: Scripted) -> None:
    short.tell(hold={"tools/list": "go"})
    gateway.call("short", "event_put", EVENT).ended("transport_error", started=False)
    short.release()
    (event,) = short.events("start")
    poll(lambda: gone(event["pid"]), "the end of a server that is late")
    assert short.count("call") == 0


@pytest.mark.parametrize("moment", ["initialize", "tools/list", "tools/call"])
@pytest.mark.parametrize(
    "deed", ["garbage", "binary", "array", "say {}", 'say {"jsonrpc": "1.0", "id": 1, "result": {}}', "say 7"]
)
def test_nonsense_is_no_answer(gateway: Gateway, short: Scripted, moment: str, deed: str) -> None:
    short.tell(deeds={moment: deed})
    called = gateway.call("short", "event_put", EVENT).called
    assert called["status"] == "transport_error", called
    assert called["call_started"] is (moment == "tools/call")
    assert set(called["error"]) == {"code", "error_type", "correlation_id"}
    assert short.count("call") == int(moment == "tools/call")


@pytest.mark.parametrize("answer_id", ["other", 99, None, "1"])
def test_an_answer_to_somebody_else_is_none(gateway: Gateway, short: Scripted, answer_id: object) -> None:
    result = {"content": [{"type": "text", "text": "not for you"}], "isError": False}
    short.tell(reply={"tools/call": {"jsonrpc": "2.0", "id": answer_id, "result": result}})
    called = gateway.call("short", "event_put", EVENT).ended("transport_error", started=True)
    assert "not for you" not in str(called)


@pytest.mark.parametrize(
    ("deed", "error_type"),
    [
        ("frame", "McpStdioFrameTooLarge"),
        ("stdout", "McpStdioStdoutTooLarge"),
        ("stderr", "McpStdioStderrTooLarge"),
    ],
)
def test_a_flood_is_stopped(gateway: Gateway, capped: Scripted, deed: str, error_type: str) -> None:
    capped.tell(deeds={"tools/call": deed})
    called = gateway.call("capped", "event_put", EVENT).ended("transport_error", error_type, started=True)
    assert set(called["error"]) <= SAFE
    assert "xxx" not in str(called)
    assert "xxx" not in gateway.log.read_text()
    (event,) = capped.events("start")
    poll(lambda: gone(event["pid"]), "the end of a flood")


def test_a_little_noise_on_stderr_does_no_harm(gateway: Gateway, calendar: Scripted) -> None:
    calendar.tell(asks=[{"method": "notifications/message", "params": {"level": "info", "data": "s3cret-note"}}] * 3)
    assert gateway.call("calendar", "event_get", EVENT).called["ok"]
    assert "s3cret" not in gateway.log.read_text()


def test_a_server_that_cannot_be_started_was_not_contacted(
    place: Place, gateway: Gateway, own_upstream: Scripted, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    for number, command in enumerate(("no-such-command-anywhere", str(tmp_path / "nothing"), str(plain))):
        name = f"missing-{number}"
        place.add({**manifest(own_upstream, name), "stdio": {"command": command}})
        refusal = gateway.call(name, "event_get", EVENT).refusal
        assert refusal["kind"] == "unavailable"
        assert str(tmp_path) not in str(refusal)


def test_a_command_is_no_shell(place: Place, gateway: Gateway, own_upstream: Scripted, tmp_path: Path) -> None:
    arguments = [*own_upstream.stdio()["args"], f"$(touch {tmp_path}/evil)", f"; touch {tmp_path}/evil", "`id`", "*"]
    whole = manifest(own_upstream, "shell")
    whole["stdio"]["args"] = arguments
    place.add(whole)
    assert gateway.call("shell", "event_get", EVENT).called["ok"]
    (start,) = own_upstream.events("start")
    assert start["arguments"][1:] == arguments[len(own_upstream.stdio()["args"]) :]
    assert not (tmp_path / "evil").exists()


def test_a_server_works_in_its_own_folder(place: Place, gateway: Gateway, own_upstream: Scripted) -> None:
    whole = manifest(own_upstream, "foldered")
    whole["stdio"]["cwd"] = "./below/../inner"
    place.add(whole)
    (place.folder / "inner").mkdir()
    assert gateway.call("foldered", "event_get", EVENT).called["ok"]
    (start,) = own_upstream.events("start")
    assert os.path.samefile(start["cwd"], place.folder / "inner")


def test_no_server_outlives_its_call(gateway: Gateway, calendar: Scripted) -> None:
    assert gateway.call("calendar", "event_get", EVENT).called["ok"]
    (event,) = calendar.events("start")
    poll(lambda: gone(event["pid"]), "the end of a server that was called")


def test_a_server_that_does_not_leave_is_made_to(gateway: Gateway, calendar: Scripted) -> None:
    calendar.tell(stays=True)
    assert gateway.call("calendar", "event_get", EVENT).called["ok"]
    (event,) = calendar.events("start")
    poll(lambda: gone(event["pid"]), "the end of a server that stays")


def test_a_cancelled_call_is_stopped_and_settled(place: Place, gateway: Gateway, calendar: Scripted) -> None:
    calendar.tell(hold={"tools/call": "go"})
    last = max((row["id"] for row in place.audit()), default=0)
    request = gateway.send_call("calendar", "event_put", EVENT)
    calendar.wait_for("call")
    gateway.notify("notifications/cancelled", {"requestId": request})
    (event,) = calendar.events("start")
    poll(lambda: gone(event["pid"]), "the end of a server whose caller has gone")
    rows = place.audit("--after", str(last))
    assert [row["kind"] for row in rows] == ["decision", "call"]
    poll(lambda: "pending" not in place.audit("--after", str(last))[1].values(), "a call that is settled")
    assert bool(place.audit("--after", str(last))[1]["sent"]) is True
