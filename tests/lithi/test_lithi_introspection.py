"""Keys that somebody else is asked about: what an answer says holds, what is no answer lets nobody in."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qs

import pytest

from .servers import Server, serving
from .stub import Answer, Heard, Service, always, reply, service
from .tokens import ACCOUNT
from .verifying import ACTIVE, FAILURES, QUOTE, fresh_key, quoted, turned_away
from .wire import PATIENCE, REVISIONS, Endpoint
from .world import job_of


@pytest.fixture(scope="module")
def introspection() -> Iterator[Service]:
    """Somebody who tells what keys are good for, in whatever way a test wants."""
    with service(always(None)) as running:
        yield running


@pytest.fixture(scope="module")
def introspecting(introspection: Service, backend: Service) -> Iterator[Server]:
    way = json.dumps({"introspect": f"{introspection.url}/introspect", "account": "account"})
    with serving(None, backend.url, "--verify", way) as server:
        yield server


@pytest.fixture
def told(introspection: Service, introspecting: Server, backend: Service) -> Callable[[Answer], Endpoint]:
    """Where to ask with a new key, about which the service says this."""

    def ask(answer: Answer) -> Endpoint:
        introspection.answer = answer
        introspection.heard.clear()
        backend.heard.clear()
        return introspecting.endpoint(fresh_key())

    return ask


Told = Callable[[Answer], Endpoint]


@pytest.mark.parametrize("revision", REVISIONS)
def test_introspection_tells_who_it_is(told: Told, introspection: Service, backend: Service, revision: str) -> None:
    endpoint = told(always(reply(200, {**ACTIVE, "exp": int(time.time()) + 600})))
    assert quoted(endpoint, revision).work == QUOTE
    (heard,) = introspection.heard
    assert (heard.method, heard.target) == ("POST", "/introspect")
    assert heard.headers["content-type"] == "application/x-www-form-urlencoded"
    assert parse_qs(heard.body.decode())["token"] == [endpoint.key]
    assert str(endpoint.key) not in json.dumps([heard.target, dict(heard.headers)])
    assert backend.heard[0].headers["authorization"] == f"Bearer {endpoint.key}"


def test_scopes_and_account_of_introspection_hold(told: Told, backend: Service) -> None:
    endpoint = told(always(reply(200, {**ACTIVE, "scope": "compute:read"})))
    assert quoted(endpoint).refusal["kind"] == "insufficient_scope"
    endpoint = told(always(reply(200, {name: ACTIVE[name] for name in ("active", "sub", "account")})))
    assert quoted(endpoint).refusal["kind"] == "insufficient_scope"
    endpoint = told(always(reply(200, ACTIVE)))
    foreign = {"job": job_of(account_id="acct_zzzzzzzzzzzz")}
    assert endpoint.call("lithi.quote", foreign).refusal["kind"] == "denied"
    assert backend.heard == []
    assert endpoint.call("lithi.quote", {"job": job_of(account_id=ACCOUNT)}).work == QUOTE


@pytest.mark.parametrize("failure", FAILURES)
def test_an_introspection_that_fails(told: Told, introspection: Service, backend: Service, failure: str) -> None:
    endpoint = told(always(FAILURES[failure]))
    turned_away(quoted(endpoint), str(endpoint.key), 503)
    assert {heard.target for heard in introspection.heard} == {"/introspect"}
    assert backend.heard == []
    introspection.answer = always(reply(200, ACTIVE))
    assert quoted(endpoint).work == QUOTE


DOUBTFUL: dict[str, dict[str, Any]] = {
    "nobody": {"sub": None},
    "a subject that is a number": {"sub": 5},
    "an empty subject": {"sub": ""},
    "an account that is a list": {"account": [ACCOUNT]},
    "scopes as a number": {"scope": 5},
    "an end that is text": {"exp": "never"},
    "an end in the past": {"exp": 1},
    "an end at once": {"exp": 0},
    "a beginning in the future": {"nbf": 4_000_000_000},
}


@pytest.mark.parametrize("doubt", DOUBTFUL)
def test_an_introspection_that_leaves_doubt(told: Told, backend: Service, doubt: str) -> None:
    whole = {name: value for name, value in {**ACTIVE, **DOUBTFUL[doubt]}.items() if value is not None}
    endpoint = told(always(reply(200, whole)))
    turned_away(quoted(endpoint), str(endpoint.key), 401, 503)
    assert backend.heard == []


def test_only_a_good_answer_is_kept(told: Told, introspection: Service) -> None:
    endpoint = told(always(reply(200, {"active": False})))
    for _ in range(2):
        turned_away(quoted(endpoint), str(endpoint.key), 401)
    assert len(introspection.heard) == 2
    introspection.answer = always(reply(200, ACTIVE))
    for _ in range(3):
        assert quoted(endpoint).work == QUOTE
    assert len(introspection.heard) == 3


def test_a_good_answer_about_one_key_is_none_about_another(told: Told, introspection: Service) -> None:
    endpoint = told(always(reply(200, ACTIVE)))
    assert quoted(endpoint).work == QUOTE
    introspection.answer = always(reply(200, {"active": False}))
    for other in (f"{endpoint.key}x", str(endpoint.key)[:-1], str(endpoint.key).upper()):
        turned_away(quoted(endpoint.with_key(other)), other, 401)
    assert quoted(endpoint).work == QUOTE


def test_an_answer_that_comes_twice_is_none_about_the_next_key(told: Told, introspection: Service) -> None:
    endpoint = told(always(reply(200, ACTIVE) * 2))
    assert quoted(endpoint).status in (200, 503)
    introspection.answer = always(reply(200, {"active": False}))
    other = fresh_key()
    turned_away(quoted(endpoint.with_key(other)), other, 401, 503)


def test_a_good_answer_is_not_kept_beyond_the_end_of_the_key(told: Told, introspection: Service) -> None:
    endpoint = told(always(reply(200, {**ACTIVE, "exp": int(time.time()) + 2})))
    assert quoted(endpoint).status == 200
    introspection.answer = always(reply(200, {"active": False}))
    give_up = time.monotonic() + PATIENCE
    while (status := quoted(endpoint).status) == 200:
        assert time.monotonic() < give_up
    assert status == 401


def test_one_question_at_a_time_about_one_key(told: Told, introspection: Service) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def answer(heard: Heard) -> bytes:
        if b"other" not in heard.body:
            asked.set()
            assert go_on.wait(PATIENCE)
        return reply(200, ACTIVE)

    endpoint = told(answer)
    with ThreadPoolExecutor(8) as pool:
        replies = [pool.submit(quoted, endpoint) for _ in range(8)]
        assert asked.wait(PATIENCE)
        assert quoted(endpoint.with_key(f"other-{fresh_key()}")).work == QUOTE
        go_on.set()
        assert all(future.result(PATIENCE).work == QUOTE for future in replies)
    assert len([heard for heard in introspection.heard if b"other" not in heard.body]) == 1


def test_many_questions_that_fail_at_once(told: Told, backend: Service) -> None:
    endpoint = told(always(None))
    with ThreadPoolExecutor(8) as pool:
        statuses = set(pool.map(lambda _: quoted(endpoint).status, range(16)))
    assert statuses == {503}
    assert backend.heard == []


def test_no_log_has_a_key(introspecting: Server) -> None:
    assert '"level": "error"' in introspecting.output.text
    assert "s3cret" not in introspecting.output.text
