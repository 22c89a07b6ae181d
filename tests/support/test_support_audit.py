"""The record: a row for each decision and each call, without what was sent, and what of it can be read."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from verbc.support import audit
from verbc.support.backend import Evidence
from verbc.support.call_owner import has_ended, own_name
from verbc.support.fingerprint import digest
from verbc.support.governance_tables import AUDIT
from verbc.support.permits import refuse
from verbc.support.process_identity import identity_of, own_identity
from verbc.support.refusal import Refusal

from .governance import CONTENT, DATABASES, NOW, Kept, a_plan, keeping, policy_of, ruling_of

TARGET = {"server_id": "calendar"}
NAMES = {
    "id", "at", "kind", "correlation_id", "subject", "verb", "outcome", "reason", "actor", "rights", "target",
    "arguments_sha256", "approval_id", "status", "sent", "response_bytes", "duration_ms", "refusal", "error_type",
    "preview",
}  # fmt: skip


@pytest.fixture(params=DATABASES)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    with keeping(tmp_path, request) as kept:
        yield kept


def lines(kept: Kept, **chosen: Any) -> list[dict[str, Any]]:
    return kept.read(lambda connection: audit.lines(connection, kept.now, **{"limit": 1000, **chosen}))


def about(line: Mapping[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(line[name] for name in names)


def test_a_call_is_a_decision_and_a_call(kept: Kept) -> None:
    permit = kept.begun(ruling_of(a_plan(target=TARGET, correlation="c1")))
    kept.end(permit, Evidence(sent=True, response_bytes=12, status="ok"))
    decision, call = lines(kept)
    for line in (decision, call):
        assert set(line) == NAMES
        assert about(line, "correlation_id", "subject", "verb", "rights", "target") == (
            "c1", "ann", "item.read", ["read item:1"], TARGET,
        )  # fmt: skip
        assert line["arguments_sha256"] == digest({"content": CONTENT, "id": "1"})
        assert line["at"] == "2026-03-04T05:06:07.089Z"
        assert line["preview"] is None
    assert about(decision, "kind", "outcome", "status", "sent") == ("decision", "allow", None, None)
    assert about(call, "kind", "status", "sent", "response_bytes", "refusal") == ("call", "ok", True, 12, None)
    assert call["duration_ms"] >= 0
    assert decision["id"] < call["id"]
    assert CONTENT not in json.dumps(kept.all(AUDIT), default=str)


@pytest.mark.parametrize(
    ("evidence", "outcome", "error", "status"),
    [
        (Evidence(status="mcp_error", error_type="mcp_error"), "mcp_error", None, "mcp_error"),
        (Evidence(), "refused", Refusal("not_found", CONTENT, {"x": CONTENT, "error_type": CONTENT}), "refused"),
        (Evidence(), "internal", None, "internal"),
        (Evidence(), "cancelled", None, "cancelled"),
        (Evidence(contacted=False), "refused", Refusal("unavailable", CONTENT), "not_started"),
    ],
)
def test_how_a_call_has_ended(kept: Kept, evidence: Evidence, outcome: str, error: Refusal | None, status: str) -> None:
    kept.end(kept.begun(ruling_of(a_plan())), evidence, outcome=outcome, error=error)
    _, call = lines(kept)
    assert about(call, "status", "sent", "refusal") == (status, False, error and error.kind)
    assert call["error_type"] == evidence.error_type
    assert CONTENT not in json.dumps(kept.all(AUDIT), default=str)


def test_the_first_end_stays(kept: Kept) -> None:
    permit = kept.begun(ruling_of(a_plan()))
    kept.end(permit, Evidence(status="transport_error"), outcome="transport_error")
    kept.end(permit)
    assert lines(kept)[1]["status"] == "transport_error"


def test_an_end_is_that_of_its_own_call(kept: Kept) -> None:
    permits = [kept.begun(ruling_of(a_plan(correlation=name))) for name in ("c1", "c2")]
    kept.end(permits[1])
    assert [line["status"] for line in lines(kept) if line["kind"] == "call"] == ["pending", "ok"]


@pytest.mark.parametrize(
    ("kind", "outcome"), [("denied", "deny"), ("pending", "pending"), ("not_found", "refused"), ("busy", "refused")]
)
def test_a_refusal_is_one_decision(kept: Kept, kind: str, outcome: str) -> None:
    refusal = Refusal(kind, CONTENT, {"x": CONTENT})
    given = kept.write(lambda connection: refuse(connection, ruling_of(a_plan()), refusal, kept.now))
    assert given is refusal
    (line,) = lines(kept)
    assert about(line, "kind", "outcome", "refusal") == ("decision", outcome, kind)
    assert CONTENT not in json.dumps(kept.all(AUDIT), default=str)


def test_an_approval_can_be_followed(kept: Kept) -> None:
    ruling = ruling_of(a_plan("item.write", target=TARGET))
    approval = kept.pending(ruling)
    kept.decide(approval, by="operator:ab")
    kept.end(kept.begun(ruling))
    found = lines(kept)
    assert [about(line, "kind", "outcome", "actor") for line in found] == [
        ("decision", "pending", None),
        ("approval", "approved", "operator:ab"),
        ("decision", "allow", None),
        ("call", None, None),
    ]
    assert {line["approval_id"] for line in found} == {approval["id"]}
    assert {line["arguments_sha256"] for line in found} == {approval["arguments_sha256"]}


def test_a_rejection_is_on_record_with_what_it_denies(kept: Kept) -> None:
    ruling = ruling_of(a_plan("item.write"))
    approval = kept.pending(ruling)
    kept.decide(approval, approved=False)
    kept.refused(ruling)
    assert [about(line, "kind", "outcome", "approval_id") for line in lines(kept)] == [
        ("decision", "pending", approval["id"]),
        ("approval", "rejected", approval["id"]),
        ("decision", "deny", approval["id"]),
    ]
    assert [line["reason"] for line in lines(kept)] == [None, None, "rejected"]


def test_a_change_of_the_registry(kept: Kept) -> None:
    row = audit.registry_row("replace", {**TARGET, "registration_generation": 4}, "operator:ab", NOW)
    kept.write(lambda connection: audit.add(connection, row))
    (line,) = lines(kept)
    assert about(line, "kind", "outcome", "actor", "subject") == ("registry", "replace", "operator:ab", None)
    assert line["target"] == {"server_id": "calendar", "registration_generation": 4}


def test_previews_are_escaped_and_cut(kept: Kept) -> None:
    arguments = {"a": "\u202e\x1b é" + "long" * 1000}
    kept.begun(ruling_of(a_plan(arguments=arguments), policy_of(previews=True)))
    previews = [line["preview"] for line in lines(kept)]
    assert [len(preview) for preview in previews] == [512, 512]
    assert all(preview.startswith('{"a":"\\u202e\\u001b \\u00e9long') for preview in previews)


def test_long_rights_are_cut(kept: Kept) -> None:
    kept.begun(ruling_of(a_plan(identifier="x" * 10_000)))
    assert {len(line["rights"][0]) for line in lines(kept)} == {512}


def test_what_a_database_does_not_take_as_text(kept: Kept) -> None:
    kept.begun(ruling_of(a_plan(identifier="a\x00b\U0001f600", target={"a\x00": "\x00"})))
    assert lines(kept)[0]["target"] == {"a\x00": "\x00"}


# Choosing rows


def test_rows_can_be_chosen(kept: Kept) -> None:
    for number in range(6):
        row = audit.row("decision", kept.now, subject="ann" if number % 2 else "bob", verb=str(number))
        kept.write(lambda connection, row=row: audit.add(connection, row))  # type: ignore[misc]
    ids = [line["id"] for line in lines(kept)]
    assert ids == sorted(ids)
    assert [line["verb"] for line in lines(kept, limit=2)] == ["4", "5"]
    assert [line["verb"] for line in lines(kept, after=ids[1], limit=2)] == ["2", "3"]
    assert [line["verb"] for line in lines(kept, after=0, limit=2)] == ["0", "1"]
    assert [line["verb"] for line in lines(kept, subject="ann")] == ["1", "3", "5"]
    assert [line["verb"] for line in lines(kept, subject="ann", after=ids[1])] == ["3", "5"]
    assert lines(kept, after=ids[-1]) == lines(kept, subject="nobody") == []


@pytest.mark.parametrize(
    ("column", "value"), [("rights", "{"), ("target", "["), ("at", 2**62), ("at", -(2**62)), ("rights", "[" * 100_000)]
)
def test_a_row_that_is_damaged_is_the_only_one_that_cannot_be_read(kept: Kept, column: str, value: Any) -> None:
    for number in range(3):
        kept.begun(ruling_of(a_plan(correlation=f"c{number}")))
    ids = [line["id"] for line in lines(kept)]
    kept.write(lambda connection: connection.execute(update(AUDIT).where(AUDIT.c.id == ids[2]).values({column: value})))
    found = lines(kept)
    assert [line["id"] for line in found] == ids
    assert [line["kind"] for line in found] == ["decision", "call", "unreadable", "call", "decision", "call"]
    assert {name: held for name, held in found[2].items() if held is not None} == {"id": ids[2], "kind": "unreadable"}
    assert set(found[2]) == NAMES
    kept.write(lambda connection: audit.sweep(connection, kept.now))
    assert [line["id"] for line in lines(kept)] == ids


def test_old_rows_are_forgotten_but_no_id_comes_twice(kept: Kept) -> None:
    for _ in range(3):
        kept.write(lambda connection: audit.add(connection, audit.row("decision", kept.now)))
        kept.later(days=60)
    ids = [line["id"] for line in lines(kept)]
    kept.write(lambda connection: audit.sweep(connection, kept.now))
    assert [line["id"] for line in lines(kept)] == ids[2:]
    kept.later(days=1000)
    kept.write(lambda connection: audit.sweep(connection, kept.now))
    assert [line["id"] for line in lines(kept)] == ids[2:]
    kept.write(lambda connection: audit.add(connection, audit.row("decision", kept.now)))
    assert lines(kept)[-1]["id"] > ids[2]


def test_a_sweep_of_very_many_rows_takes_turns(kept: Kept) -> None:
    row = audit.row("decision", kept.now)
    kept.write(lambda connection: audit.add(connection, *[row] * 1500))
    kept.later(days=91)
    kept.write(lambda connection: audit.add(connection, audit.row("decision", kept.now)))
    kept.write(lambda connection: audit.sweep(connection, kept.now))
    assert len(kept.all(AUDIT)) == 501
    kept.write(lambda connection: audit.sweep(connection, kept.now))
    assert len(kept.all(AUDIT)) == 1


# Calls without an end


def ended_process() -> str:
    """The name of a process that has been, and is no more."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:  # until its input ends
        identity = identity_of(process.pid)
        assert identity is not None
        name = f"{identity.pid} {identity.start}"
        assert has_ended(name) is False
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert has_ended(name) is True  # though nobody has taken note of it yet
    return name


def open_call(kept: Kept, owner: str | None) -> str:
    kept.begun(ruling_of(a_plan()))
    kept.write(lambda connection: connection.execute(update(AUDIT).values(owner=owner)))
    return str(lines(kept)[1]["status"])


def test_a_call_that_runs_is_pending(kept: Kept) -> None:
    kept.begun(ruling_of(a_plan()))
    kept.later(days=1)
    assert lines(kept)[1]["status"] == "pending"


def test_a_call_whose_process_has_ended_is_unknown(kept: Kept) -> None:
    assert open_call(kept, ended_process()) == "unknown"


def test_a_process_that_has_the_id_of_another_one_is_not_that(kept: Kept) -> None:
    identity = own_identity()
    boot = identity.start.rpartition(":")[0]
    assert open_call(kept, f"{os.getpid()} {boot}:1") == "unknown"
    assert open_call(kept, f"{os.getppid()} {boot}:1") == "unknown"


@pytest.mark.parametrize("owner", ["1 another-boot:1", "", "nonsense", "x y", "4 ", None])
def test_a_call_of_a_process_that_cannot_be_looked_at_is_unknown_once_its_time_is_over(
    kept: Kept, owner: str | None
) -> None:
    assert open_call(kept, owner) == "pending"
    kept.later(seconds=60)
    assert lines(kept)[1]["status"] == "pending"
    kept.later(seconds=1)
    assert lines(kept)[1]["status"] == "unknown"


def test_an_end_that_comes_late_counts(kept: Kept) -> None:
    permit = kept.begun(ruling_of(a_plan()))
    kept.now = NOW + timedelta(days=1)
    kept.end(permit)
    assert lines(kept)[1]["status"] == "ok"


def test_this_process_has_not_ended() -> None:
    assert has_ended(own_name()) is False
