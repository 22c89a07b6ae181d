"""Nothing runs twice: the same call again, calls at the same time, a reply that was lost, a refusal in between.

What counts is what the service did: it answers 201 when something was started, and 200 when that had been before.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from .servers import Server, serving
from .shapes import UNKNOWN, check_call
from .stub import Cut, Heard, Service, always, forward, reply, service
from .wire import LEGACY, MODERN, PATIENCE, REVISIONS, Reply, connected
from .world import Caller, World, job_of

STARTS = {"lithi.run": "POST /jobs", "lithi.batch": "POST /batches"}
RACERS = 8


def arguments_of(tool: str, *quotes: str) -> dict[str, Any]:
    return {"quote": quotes[0]} if tool == "lithi.run" else {"quotes": list(quotes)}


def quotes_for(tool: str, caller: Caller) -> list[str]:
    return [caller.quote() for _ in range(1 if tool == "lithi.run" else 3)]


@contextmanager
def started(world: World, tool: str, count: int) -> Iterator[None]:
    """Sees to it that this many were started in between."""
    before = world.heard.count(f"{STARTS[tool]} 201")
    yield
    assert world.heard.count(f"{STARTS[tool]} 201") - before == count


@dataclass(frozen=True, slots=True)
class Between:
    """A service that ada reaches the other one through, by a lithi-mcp of its own."""

    service: Service
    server: Server
    ada: Caller

    def heard(self, target: str) -> list[Heard]:
        return [heard for heard in self.service.heard if heard.target == target]


@pytest.fixture(scope="module")
def way(world: World) -> Iterator[Between]:
    with service(always(None)) as stub, serving(world.keys, stub.url) as server:
        yield Between(stub, server, replace(world.ada, endpoint=server.endpoint(world.ada.key)))


@pytest.fixture
def between(world: World, way: Between) -> Between:
    """The same, as new: what it hears it passes on, as long as a test does not want anything else."""
    way.service.heard.clear()
    way.service.answer = partial(forward, world.core.url)
    return way


def key_of(heard: Heard) -> str:
    return heard.headers["idempotency-key"]


@pytest.mark.parametrize("tool", STARTS)
def test_the_same_call_again_gives_the_same_handle(world: World, tool: str) -> None:
    arguments = arguments_of(tool, *quotes_for(tool, world.ada))
    with started(world, tool, 1):
        handles = {world.ada.call(tool, arguments, revision).work["handle"] for revision in REVISIONS * 2}
    assert len(handles) == 1


@pytest.mark.parametrize("tool", STARTS)
def test_the_same_call_with_a_key_of_its_own(world: World, tool: str) -> None:
    arguments = {**arguments_of(tool, *quotes_for(tool, world.ada)), "idempotency_key": f"once {tool} \u00e9"}
    with started(world, tool, 1):
        handles = {world.ada.call(tool, arguments, revision).work["handle"] for revision in REVISIONS * 2}
    assert len(handles) == 1


@pytest.mark.parametrize("tool", STARTS)
def test_one_key_for_two_calls_is_a_conflict(world: World, tool: str) -> None:
    key = {"idempotency_key": f"twice {tool}"}
    first, second = (arguments_of(tool, *quotes_for(tool, world.ada)) for _ in range(2))
    with started(world, tool, 1):
        assert world.ada.call(tool, {**first, **key}).work
        reply = world.ada.call(tool, {**second, **key})
        assert reply.refusal["kind"] == "conflict"
        check_call(reply)
    with started(world, tool, 1):
        assert world.ada.call(tool, second).work


def test_a_key_is_that_of_one_caller_and_one_tool(world: World) -> None:
    dora = world.caller("open", subject="dora")
    key = {"idempotency_key": "shared"}
    with started(world, "lithi.run", 2), started(world, "lithi.batch", 1):
        for caller in (world.ada, dora):
            assert caller.call("lithi.run", {"quote": caller.quote(), **key}).work["state"] == "accepted"
        assert world.ada.call("lithi.batch", {"quotes": [world.ada.quote()], **key}).work["state"] == "accepted"


@pytest.mark.parametrize("tool", STARTS)
@pytest.mark.parametrize("own_key", [False, True])
def test_calls_at_the_same_time_start_one_thing(world: World, tool: str, own_key: bool) -> None:
    key = {"idempotency_key": f"race {tool}"} if own_key else {}
    arguments = {**arguments_of(tool, *quotes_for(tool, world.ada)), **key}
    barrier = threading.Barrier(RACERS)

    def race(number: int) -> Reply:
        barrier.wait(PATIENCE)
        return world.ada.call(tool, arguments, REVISIONS[number % 2])

    with started(world, tool, 1), ThreadPoolExecutor(RACERS) as pool:
        replies = list(pool.map(race, range(RACERS)))
    assert len({reply.work["handle"] for reply in replies}) == 1


def test_calls_at_the_same_time_that_are_both_on_their_way(world: World, between: Between) -> None:
    """The first is answered only when the second has reached the service, too."""
    together = threading.Barrier(2)

    def answer(heard: Heard) -> bytes:
        together.wait(PATIENCE)
        return forward(world.core.url, heard)

    quote = between.ada.quote()
    between.service.answer = answer
    with started(world, "lithi.run", 1), ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(lambda _: between.ada.call("lithi.run", {"quote": quote}), range(2)))
    assert len({reply.work["handle"] for reply in replies}) == 1
    assert len({key_of(heard) for heard in between.heard("/jobs")}) == 1


@pytest.mark.parametrize("tool", STARTS)
@pytest.mark.parametrize("done", [True, False], ids=["after it was done", "before it was done"])
def test_the_same_call_after_a_reply_was_lost(world: World, between: Between, tool: str, done: bool) -> None:
    target = STARTS[tool].removeprefix("POST ")
    arguments = arguments_of(tool, *quotes_for(tool, between.ada))
    lost: list[Heard] = []

    def answer(heard: Heard) -> bytes | None:
        if lost:
            return forward(world.core.url, heard)
        lost.append(heard)
        if done:
            forward(world.core.url, heard)
        return None

    between.service.answer = answer
    with started(world, tool, 1):
        first = between.ada.call(tool, arguments)
        again = between.ada.call(tool, arguments).work["handle"]
    told = check_call(first)
    assert told.get("handle", again) == again
    assert told.get("error", {"kind": "unavailable"})["kind"] == "unavailable"
    assert {key_of(heard) for heard in between.heard(target)} == {key_of(lost[0])}
    assert world.ada.call(tool, arguments).work["handle"] == again


BROKEN = {
    "half a body": Cut(b'HTTP/1.1 201 Created\r\nContent-Length: 400\r\n\r\n{"handle": "jb'),
    "half a line": Cut(b"HTTP/1.1 201 Cre"),
    "no JSON": reply(201, b"{"),
    "500": reply(500, {"error": {"code": "internal"}}),
    "503": reply(503, {"error": {"code": "unavailable"}}),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_the_same_call_after_a_reply_that_was_broken(world: World, between: Between, broken: str) -> None:
    def answer(heard: Heard) -> bytes:
        told = forward(world.core.url, heard)
        return BROKEN[broken] if len(between.heard("/jobs")) == 1 else told

    quote = between.ada.quote()
    between.service.answer = answer
    with started(world, "lithi.run", 1):
        first = check_call(between.ada.call("lithi.run", {"quote": quote}))
        handle = between.ada.call("lithi.run", {"quote": quote}).work["handle"]
    assert first.get("handle", handle) == handle
    assert first.get("error", {"kind": "internal"})["kind"] in ("unavailable", "internal")
    assert world.ada.call("lithi.run", {"quote": quote}).work["handle"] == handle


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("tool", STARTS)
def test_a_client_that_goes_away_stops_nothing(world: World, between: Between, tool: str, revision: str) -> None:
    arguments = arguments_of(tool, *quotes_for(tool, between.ada))
    asked, gone, done = threading.Event(), threading.Event(), threading.Event()

    def answer(heard: Heard) -> bytes:
        asked.set()
        assert gone.wait(PATIENCE)
        told = forward(world.core.url, heard)
        done.set()
        return told

    between.service.answer = answer
    with started(world, tool, 1):
        with connected(between.ada.endpoint.port) as connection:
            connection.sendall(between.ada.endpoint.call_request(revision, tool, arguments).encoded())
            assert asked.wait(PATIENCE)
        gone.set()
        assert done.wait(PATIENCE)
        handle = between.ada.call(tool, arguments, revision).work["handle"]
    assert world.ada.call(tool, arguments).work["handle"] == handle
    assert '"level": "error"' not in between.server.output.text


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("tool", STARTS)
@pytest.mark.parametrize("own_key", [False, True])
def test_a_refusal_is_not_remembered(world: World, tool: str, revision: str, own_key: bool) -> None:
    quotes = quotes_for(tool, world.bob)
    key = {"idempotency_key": f"approved {tool} {revision}"} if own_key else {}
    arguments = {**arguments_of(tool, *quotes), **key}
    owner = world.core.key(world.bob.account, "compute:approve", subject="owner")
    with started(world, tool, 0):
        for _ in range(2):
            assert world.bob.call(tool, arguments, revision).refusal["kind"] == "approval_required"
    for quote in quotes:
        world.approve(owner, quote)
    with started(world, tool, 1):
        handles = {world.bob.call(tool, arguments, revision).work["handle"] for _ in range(2)}
    assert len(handles) == 1


def test_a_job_is_found_again_after_its_quote_has_expired(world: World) -> None:
    quote, late = world.ada.quote(), world.ada.quote()
    handle = world.ada.call("lithi.run", {"quote": quote}).work["handle"]
    world.core.now += 3600
    with started(world, "lithi.run", 0):
        assert world.ada.call("lithi.run", {"quote": quote}).work["handle"] == handle
        assert world.ada.call("lithi.run", {"quote": late}).refusal["kind"] == "quote_expired"


def test_another_server_before_the_same_service_finds_what_was_started(world: World) -> None:
    quote = world.ada.quote()
    with started(world, "lithi.run", 1):
        handle = world.ada.call("lithi.run", {"quote": quote}).work["handle"]
        with serving(world.keys, world.core.url) as server:
            again = server.endpoint(world.ada.key).call("lithi.run", {"quote": quote})
    assert again.work["handle"] == handle


# The key that is derived, as the service sees it


Keyed = Callable[..., str]


@pytest.fixture
def keyed(between: Between) -> Keyed:
    """The idempotency key that the service gets with a call."""
    between.service.answer = always(reply(503, {"error": {"code": "unavailable"}}))

    def ask(caller: Caller, tool: str, arguments: Any, revision: str = MODERN) -> str:
        endpoint = between.ada.endpoint.with_key(caller.key)
        assert endpoint.call(tool, arguments, revision).refusal["kind"] == "unavailable"
        return key_of(between.service.heard[-1])

    return ask


def test_a_derived_key_follows_from_caller_tool_and_arguments(world: World, keyed: Keyed) -> None:
    one, two = UNKNOWN["qt"], f"qt_{'1' * 26}"
    calls = [
        (caller, tool, arguments)
        for caller in (world.ada, world.bob)
        for tool, arguments in [
            ("lithi.run", {"quote": one}),
            ("lithi.run", {"quote": two}),
            ("lithi.batch", {"quotes": [one]}),
            ("lithi.batch", {"quotes": [one, two]}),
            ("lithi.batch", {"quotes": [two, one]}),
        ]
    ]
    keys = [keyed(*call) for call in calls]
    assert len(set(keys)) == len(calls)
    assert [keyed(*call, LEGACY) for call in calls] == keys


def test_the_order_of_arguments_does_not_matter(world: World, keyed: Keyed) -> None:
    pair = {"quote": UNKNOWN["qt"], "account_id": world.ada.account}
    assert keyed(world.ada, "lithi.run", pair) == keyed(world.ada, "lithi.run", dict(reversed(pair.items())))


def test_a_derived_key_gives_nothing_away(world: World, keyed: Keyed) -> None:
    key = keyed(world.ada, "lithi.run", {"quote": UNKNOWN["qt"]})
    assert key.isascii()
    assert key.isprintable()
    assert 16 <= len(key) <= 255
    for known in (world.ada.key, world.ada.account, UNKNOWN["qt"], "0" * 26):
        assert known not in key


def test_the_key_is_no_argument_for_the_service(between: Between) -> None:
    between.service.answer = always(reply(503, {}))
    for arguments in ({"quote": UNKNOWN["qt"]}, {"quote": UNKNOWN["qt"], "idempotency_key": "mine"}):
        between.ada.call("lithi.run", arguments)
        assert json.loads(between.service.heard[-1].body) == {"quote": UNKNOWN["qt"]}
    between.ada.call("lithi.quote", {"job": job_of()})
    assert "idempotency-key" not in between.service.heard[-1].headers


@pytest.mark.parametrize(
    "key", ["mine", " ", "\u00e9", "a\r\nX-Injected: 1", "\x00", "\u2028", "x" * 128, "\U0001f600" * 128]
)
def test_any_key_that_the_schema_takes_gets_to_the_service_in_one_header(between: Between, key: str) -> None:
    between.service.answer = always(reply(503, {}))
    between.ada.call("lithi.run", {"quote": UNKNOWN["qt"], "idempotency_key": key})
    (heard,) = between.service.heard
    assert key_of(heard).isascii()
    assert key_of(heard).isprintable()
    assert 1 <= len(key_of(heard)) <= 255
    assert "x-injected" not in heard.headers


def test_keys_that_differ_stay_different(between: Between) -> None:
    between.service.answer = always(reply(503, {}))
    keys = ["a", "A", " a", "a ", "\u00e9", "e\u0301", "\u00c9", "%C3%A9", "\\u00e9", "a\n", "\x00a"]
    for key in keys:
        between.ada.call("lithi.run", {"quote": UNKNOWN["qt"], "idempotency_key": key})
    assert len({key_of(heard) for heard in between.service.heard}) == len(keys)


def test_a_call_without_a_key_is_sent_once_only(world: World, between: Between) -> None:
    """A quote has no key, so nobody may try it again on the way."""

    def answer(heard: Heard) -> None:
        forward(world.core.url, heard)

    between.service.answer = answer
    before = world.heard.count("POST /quotes 201")
    assert between.ada.call("lithi.quote", {"job": job_of()}).refusal["kind"] == "unavailable"
    assert world.heard.count("POST /quotes 201") - before == 1
    assert len(between.service.heard) == 1
