"""Budgets: reserved before anything is contacted, settled at what it came to, given back when nothing was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .manifests import manifest
from .places import SUBJECT, Place, rules
from .processes import Gateway
from .scripted import Json, Scripted, poll

CAP = 4096  # bytes of a response


@pytest.fixture
def upstream(own_place: Place, own_upstream: Scripted) -> Scripted:
    own_place.add(manifest(own_upstream, max_response_bytes=CAP))
    return own_upstream


@pytest.fixture
def server(own_place: Place, upstream: Scripted) -> Iterator[Gateway]:
    with own_place.serving() as serving:
        yield serving


def give(place: Place, **budget: object) -> None:
    place.policy({SUBJECT: rules(["read mcp:*", "write mcp:*"], budget={"per": "1d", **budget})})


def event(number: int) -> Json:
    return {"event_id": f"{number}"}


def test_so_many_calls_and_no_more(own_place: Place, server: Gateway, upstream: Scripted) -> None:
    give(own_place, calls=2)
    for number in range(2):
        assert server.call("calendar", "event_get", event(number)).called["ok"]
    refusal = server.call("calendar", "event_get", event(2)).refusal
    assert refusal["kind"] == "busy"
    assert SUBJECT in refusal["message"]
    assert upstream.counts == (2, 2, 2)
    give(own_place, calls=3)
    assert server.call("calendar", "event_get", event(3)).called["ok"]
    assert server.call("calendar", "event_get", event(4)).kind == "busy"


def test_the_most_a_call_could_cost_has_to_be_there(own_place: Place, server: Gateway, upstream: Scripted) -> None:
    give(own_place, bytes="12KiB")  # all that may come, but not the requests
    for number in range(2):
        assert server.call("calendar", "event_get", event(number)).kind == "busy"
    assert upstream.untouched
    give(own_place, bytes="13KiB")
    assert server.call("calendar", "event_get", event(2)).called["ok"]


def test_a_call_costs_what_it_came_to(own_place: Place, server: Gateway, upstream: Scripted) -> None:
    give(own_place, bytes="20KiB")
    ended = [server.call("calendar", "event_get", event(number)) for number in range(5)]
    assert all(reply.called["ok"] for reply in ended)  # at the most they could cost there was one
    give(own_place, bytes=sum(reply.called["response_bytes"] for reply in ended))
    assert server.call("calendar", "event_get", event(5)).kind == "busy"


def test_a_response_nobody_knows_costs_the_most(own_place: Place, server: Gateway, upstream: Scripted) -> None:
    give(own_place, bytes="20KiB")
    upstream.tell(deeds={"tools/call": "die"})
    server.call("calendar", "event_get", event(0)).ended("transport_error", started=True)
    upstream.tell()
    assert server.call("calendar", "event_get", event(1)).kind == "busy"
    give(own_place, bytes="25KiB")
    assert server.call("calendar", "event_get", event(1)).called["ok"]


def test_what_was_refused_or_never_started_costs_nothing(
    own_place: Place, server: Gateway, upstream: Scripted, tmp_path: Path
) -> None:
    whole = manifest(upstream, "unstartable")
    whole["stdio"] = {"command": str(tmp_path / "nothing")}
    own_place.add(whole)
    give(own_place, calls=1)
    for _ in range(2):
        assert server.call("unstartable", "event_get", event(0)).kind == "unavailable"
        assert server.call("calendar", "event_get", {}).kind == "invalid_input"
        assert server.call("calendar", "nope", {}).kind == "not_found"
    assert server.call("calendar", "event_get", event(1)).called["ok"]
    assert server.call("calendar", "event_get", event(2)).kind == "busy"


def test_budgets_are_of_one_subject(own_place: Place, server: Gateway, upstream: Scripted) -> None:
    own = rules(["read mcp:*"], budget={"calls": 1, "per": "1d"})
    own_place.policy({SUBJECT: own, "other": own})
    assert server.call("calendar", "event_get", event(0)).called["ok"]
    assert server.call("calendar", "event_get", event(1)).kind == "busy"
    with own_place.serving("other") as other:
        assert other.call("calendar", "event_get", event(2)).called["ok"]
        assert other.call("calendar", "event_get", event(3)).kind == "busy"


def test_a_budget_is_that_of_all_servers_and_outlives_them(own_place: Place, upstream: Scripted) -> None:
    give(own_place, calls=3)
    for number in range(3):
        with own_place.serving() as server:
            assert server.call("calendar", "event_get", event(number)).called["ok"]
    with own_place.serving() as server:
        assert server.call("calendar", "event_get", event(3)).kind == "busy"


def test_of_calls_side_by_side_only_so_many_run(own_place: Place, server: Gateway, upstream: Scripted) -> None:
    give(own_place, calls=3)
    sent = [server.send_call("calendar", "event_get", event(number)) for number in range(8)]
    replies = [server.reply(request) for request in sent]
    assert sum(not reply.failed for reply in replies) == 3
    assert {reply.kind for reply in replies if reply.failed} == {"busy"}
    assert upstream.count("call") == 3


def test_a_new_window_begins_with_a_new_budget(own_place: Place, server: Gateway, upstream: Scripted) -> None:
    give(own_place, calls=1, per="1s")
    number = iter(range(10_000))

    def called_again() -> bool:
        reply = server.call("calendar", "event_get", event(next(number)))
        assert not reply.failed or reply.kind == "busy"
        return upstream.count("call") == 3

    poll(called_again, "a third window")


def test_an_approval_survives_a_budget_that_is_used_up(own_place: Place, server: Gateway, upstream: Scripted) -> None:
    ask = ["write mcp:*"]
    own_place.policy({SUBJECT: rules(["read mcp:*"], ask=ask, budget={"calls": 1, "per": "1d"})})
    own_place.approve(server.call("calendar", "event_put", event(0)).approval)
    assert server.call("calendar", "event_get", event(1)).called["ok"]
    assert server.call("calendar", "event_put", event(0)).kind == "busy"
    own_place.policy({SUBJECT: rules(["read mcp:*"], ask=ask, budget={"calls": 5, "per": "1d"})})
    assert server.call("calendar", "event_put", event(0)).called["ok"]
    assert server.call("calendar", "event_put", event(0)).kind == "pending"
