"""The audit: one row for each decision and each call, with hashes in place of arguments."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from .manifests import manifest
from .places import SUBJECT, Place, rules
from .processes import Gateway
from .scripted import Json, Scripted

MARK = "marked-value"


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class Audit:
    """What was added to the audit of a place since this was made, or since it was last asked."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._last = max((row["id"] for row in place.audit()), default=0)

    def new(self) -> list[Json]:
        rows = self._place.audit("--after", str(self._last))
        self._last = max((row["id"] for row in rows), default=self._last)
        return rows


@pytest.fixture
def audit(place: Place, calendar: Scripted) -> Iterator[Audit]:
    place.grant("read mcp:*", ask=["write mcp:*"])
    yield Audit(place)
    place.grant()


def kinds(rows: list[Json]) -> list[str]:
    return [row["kind"] for row in rows]


def test_a_call_leaves_a_decision_and_a_call(gateway: Gateway, calendar: Scripted, audit: Audit) -> None:
    arguments = {"event_id": MARK}
    assert gateway.call("calendar", "event_get", arguments).called["ok"]
    decision, call = rows = audit.new()
    assert kinds(rows) == ["decision", "call"]
    for row in rows:
        assert (row["subject"], row["verb"]) == (SUBJECT, "call_mcp_tool")
        assert row["target"]["server_id"] == "calendar"
        assert row["target"]["tool_id"] == "event_get"
        assert row["arguments_sha256"] == digest(arguments)
        assert row["correlation_id"] == decision["correlation_id"]
    assert "read mcp:calendar:event_get" in decision["rights"]
    assert "allow" in decision.values()
    assert call["status"] == "ok"
    assert call["sent"] in (True, 1)
    assert call["response_bytes"] > 0
    assert call["duration_ms"] >= 0
    assert MARK not in json.dumps(rows)


@pytest.mark.parametrize(
    ("name", "arguments", "refusal"),
    [("event_get", {}, "invalid_input"), ("nope", {}, "not_found"), ("event_put", {"event_id": MARK}, "pending")],
)
def test_what_is_refused_leaves_one_decision(
    gateway: Gateway, calendar: Scripted, audit: Audit, name: str, arguments: Json, refusal: str
) -> None:
    assert gateway.call("calendar", name, arguments).kind == refusal
    (row,) = audit.new()
    assert (row["kind"], row["subject"]) == ("decision", SUBJECT)
    assert refusal in row.values()
    assert MARK not in json.dumps(row)
    assert calendar.untouched


def test_what_is_denied_leaves_one_decision(place: Place, gateway: Gateway, calendar: Scripted, audit: Audit) -> None:
    place.grant()
    for name in ("event_get", "nope"):
        assert gateway.call("calendar", name, {"event_id": MARK}).kind == "denied"
    assert gateway.tool("list_mcp_servers", text=MARK).kind == "denied"
    rows = audit.new()
    assert kinds(rows) == ["decision"] * 3
    assert all("deny" in row.values() or "denied" in row.values() for row in rows)
    assert [row["reason"] for row in rows] == [
        "not granted: read mcp:calendar:event_get",
        "not granted: read mcp:calendar:nope",
        "not granted: read mcp_server:*",
    ]
    assert MARK not in json.dumps(rows)


def test_an_approval_is_followed_from_the_question_to_the_call(
    place: Place, gateway: Gateway, calendar: Scripted, audit: Audit
) -> None:
    arguments = {"event_id": "audited", "title": MARK}
    approval = gateway.call("calendar", "event_put", arguments).approval
    place.approve(approval)
    assert gateway.call("calendar", "event_put", arguments).called["ok"]
    asked, approved, decision, call = rows = audit.new()
    assert kinds(rows) == ["decision", "approval", "decision", "call"]
    assert asked["approval_id"] == approved["approval_id"] == approval["id"]
    assert approval["id"] in (decision["approval_id"], call["approval_id"])
    assert "operator" in json.dumps(approved)
    assert MARK not in json.dumps(rows)


@pytest.mark.parametrize(
    ("told", "status", "sent"),
    [
        ({"deeds": {"tools/call": "die"}}, "transport_error", True),
        ({"deeds": {"tools/list": "die"}}, "transport_error", False),
        ({"tools": []}, "invalid_response", False),
        ({"results": {"cal.get": {"content": [], "isError": True}}}, "mcp_error", True),
    ],
)
def test_how_a_call_has_ended_is_on_record(
    gateway: Gateway, calendar: Scripted, audit: Audit, told: Json, status: str, sent: bool
) -> None:
    calendar.tell(**told)
    error = gateway.call("calendar", "event_get", {"event_id": "e"}).ended(status, started=sent)["error"]
    _, call = audit.new()
    assert (call["status"], bool(call["sent"])) == (status, sent)
    assert call["error_type"] == error["error_type"]


def test_the_correlation_id_of_an_error_is_in_the_log(gateway: Gateway, calendar: Scripted, audit: Audit) -> None:
    calendar.tell(deeds={"tools/call": "die"})
    error = gateway.call("calendar", "event_get", {"event_id": MARK}).called["error"]
    assert error["correlation_id"] in gateway.log.read_text()
    assert [row["correlation_id"] for row in audit.new()] == [error["correlation_id"]] * 2
    assert MARK not in gateway.log.read_text()


def test_changes_of_the_registry_are_on_record(place: Place, own_upstream: Scripted, audit: Audit) -> None:
    place.add(manifest(own_upstream, "audited"))
    place.replace(manifest(own_upstream, "audited"))
    place.confirm("audited")
    place.done("servers", "remove", "audited")
    rows = audit.new()
    assert kinds(rows) == ["registry"] * 4
    assert all("audited" in json.dumps(row) for row in rows)
    for word, row in zip(("add", "replace", "confirm", "remove"), rows, strict=True):
        assert word in json.dumps(row)


def test_rows_can_be_chosen(place: Place, gateway: Gateway, calendar: Scripted, audit: Audit) -> None:
    place.policy({SUBJECT: rules(["read mcp:*"]), "second": rules(["read mcp:*"])})
    assert gateway.call("calendar", "event_get", {"event_id": "1"}).called["ok"]
    with place.serving("second") as second:
        assert second.call("calendar", "event_get", {"event_id": "2"}).called["ok"]
    whole = place.audit()
    assert [row["id"] for row in whole] == sorted(row["id"] for row in whole)
    second_rows = place.audit("--subject", "second")
    assert kinds(second_rows) == ["decision", "call"]
    assert place.done("audit", "--limit", "1").count("\n") == 1
    assert place.audit("--subject", "nobody") == []


def test_arguments_are_shown_only_when_the_operator_says_so(
    place: Place, gateway: Gateway, calendar: Scripted, audit: Audit
) -> None:
    place.policy({SUBJECT: rules(["read mcp:*"])}, audit={"previews": True})
    arguments = {"event_id": f"{MARK} \u202e" + "long" * 1000}
    assert gateway.call("calendar", "event_get", arguments).called["ok"]
    previews = [row["preview"] for row in audit.new() if row.get("preview")]
    assert previews
    assert all(MARK in preview and len(preview) <= 512 and preview.isascii() for preview in previews)
    place.policy({SUBJECT: rules(["read mcp:*"])}, audit={"previews": False})
    assert gateway.call("calendar", "event_get", arguments).called["ok"]
    assert MARK not in json.dumps(audit.new())


def test_the_audit_is_the_operators(place: Place, audit: Audit) -> None:
    for key in (None, "wrong"):
        said = place.operator("audit", key=key)
        assert said.returncode != 0
        assert said.stdout == ""


def test_a_search_and_a_look_are_on_record_too(
    place: Place, gateway: Gateway, calendar: Scripted, audit: Audit
) -> None:
    place.grant("read mcp_server:*", "execute mcp_server:*")
    gateway.tool("list_mcp_servers", text=MARK).done  # noqa: B018 - looked at there
    gateway.tool("list_mcp_tools", server_id="calendar", refresh=True).done  # noqa: B018
    rows = audit.new()
    assert {row["verb"] for row in rows} == {"list_mcp_servers", "list_mcp_tools"}
    assert kinds(rows).count("decision") == 2
    assert MARK not in json.dumps(rows)
