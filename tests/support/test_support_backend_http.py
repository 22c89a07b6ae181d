"""Verbs as requests: from a call to the service and back, with keys that stay where they belong, and nothing done twice."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from verbc.support import log
from verbc.support.admission import Admission, Request
from verbc.support.backend import Plan
from verbc.support.backend_http import HttpBackend
from verbc.support.binding import Bindings
from verbc.support.call import Call, Caller
from verbc.support.fingerprint import digest
from verbc.support.http_request import HttpRequest
from verbc.support.http_service import HttpService
from verbc.support.outbound import Received, UnreachableError
from verbc.support.refusal import Refusal
from verbc.support.registry import Registry, from_data

from .programs import FOR_EVER, finish, move_clock
from .rest_services import Answer, Exchange, Heard, RawService, echoing_service, hang_up, reply, say_nothing, saying
from .samples import DATA, verb_data

ANN = Caller("ann", "acct_1", frozenset({"x"}), credentials="k-ann")
BOB = Caller("bob", "acct_2", credentials="k-bob")
HANDLE = "jb_1"
DONE = {"handle": HANDLE, "state": "accepted", "secret_member": "dropped"}
WORK = {
    "type": "object",
    "properties": {"handle": {"type": "string"}, "state": {"type": "string"}},
    "required": ["handle", "state"],
    "additionalProperties": False,
}
ORDER = {**WORK, "properties": {**WORK["properties"], "idempotency_key": {"type": "string"}}}  # type: ignore[dict-item]
CODES = {"form": "pointers", "error": {"kind": "/error/code", "detail": "/error/next"}}
RUN = {"quote": "qt_1"}


def verb(
    name: str,
    target: str,
    properties: Mapping[str, str],
    *,
    effect: str = "write",
    idempotent: str | None = None,
    result: Any = WORK,
) -> dict[str, Any]:
    return verb_data(
        f"core.{name}",
        {"properties": {param: {"type": kind} for param, kind in properties.items()}},
        effect=effect,
        idempotent=idempotent,
        result=result,
        limits={"timeout": FOR_EVER, "output": 1000, "concurrency": 8, "pool": "core"},
        run={
            "backend": "core",
            "target": target.split(),
            "reply": CODES,
            "refusals": {"410": "quote_expired"},
            "module": "core_verbs",
            "function": f"core_{name}",
        },
    )


VERBS = [
    verb("quote", "POST /quotes", {"job": "object"}, effect="add"),
    verb("run", "POST /jobs", {"quote": "string", "account_id": "string"}, idempotent="derived"),
    verb("batch", "POST /batches", {"quotes": "array", "account_id": "string"}, idempotent="derived"),
    verb("status", "GET /jobs/<handle>", {"handle": "string", "account_id": "string"}, effect="read"),
    verb("result", "GET /jobs/<handle>/result", {"handle": "string", "account_id": "string"}, effect="read"),
    verb("find", "GET /things", {"tags": "array", "exact": "boolean", "page_size": "integer", "class": "string"})
    | {"effect": "read", "result": None},
    verb("ping", "POST /ping", {}, result=None),
]
ITEMS = {"item": "string", "count": "integer", "idempotency_key": "string"}
ORDERING = verb("order", "PUT /orders", ITEMS, idempotent="key", result=ORDER)
ORDERING["params"]["properties"]["note"] = {"type": ["string", "null"]}


def registry(**changes: Any) -> Registry:
    data = {**copy.deepcopy(DATA), "access": {"pin": {"account_id": "account"}}, "verbs": [*VERBS, ORDERING]}
    data["kinds"] |= {"quote_expired": "The quote is too old.", "approval_required": "Ask first."}
    return from_data({**data, **changes})


@dataclass(frozen=True)
class Core:
    """A backend over a service, and calls of it."""

    backend: HttpBackend
    registry: Registry

    async def plan(self, name: str, arguments: dict[str, Any], caller: Caller = ANN) -> Plan:
        verb = self.registry.verb(f"core.{name}")
        assert verb is not None
        deadline = asyncio.get_running_loop().time() + verb.limits.timeout
        return await self.backend.plan(Call(verb, arguments, caller, "c", self.registry, datetime.now(UTC), deadline))

    async def ask(self, name: str, arguments: dict[str, Any] | None = None, caller: Caller = ANN) -> Any:
        """What the caller gets: the result, or the refusal as data."""
        plan = await self.plan(name, arguments or {}, caller)
        try:
            if plan.refusal is not None:
                raise plan.refusal
            return await self.backend.run(plan)
        except Refusal as refusal:
            return refusal.as_error()


def core(url: str, changes: Mapping[str, Any] | None = None, **options: Any) -> Core:
    entry = {"kind": "http", "url": url, "credentials": "forward", "headers": {}, **options}
    return Core(HttpBackend(entry, Bindings(__package__)), registry(**(changes or {})))


def over(
    work: Callable[[Core, RawService], Awaitable[Any]], *answers: bytes | Answer, **options: Any
) -> tuple[Any, list[Heard]]:
    """What `work` gives with a service that answers so, and what the service heard."""

    async def inner() -> tuple[Any, list[Heard]]:
        async with RawService(*answers) as service:
            made = core(service.url, **options)
            try:
                return await work(made, service), service.heard
            finally:
                await made.backend.close()

    return finish(inner())


def met(
    name: str,
    arguments: dict[str, Any] | None = None,
    *answers: bytes | Answer,
    caller: Caller = ANN,
    **options: Any,
) -> tuple[Any, Heard]:
    """The answer to a call, and the one request that it became."""
    given, (heard,) = over(
        lambda made, _: made.ask(name, arguments, caller), *(answers or (reply(200, DONE),)), **options
    )
    return given, heard


def sent(name: str, arguments: dict[str, Any] | None = None, **options: Any) -> Heard:
    return met(name, arguments, **options)[1]


def alone(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Without a service: whatever would be sent fails."""
    return finish(work())


def refused(name: str, arguments: dict[str, Any], *answers: bytes | Answer, **options: Any) -> dict[str, Any]:
    error, _ = met(name, arguments, *answers, **options)
    assert set(error) <= {"kind", "message", "detail"}
    return dict(error)


def test_reading_is_a_path_and_a_query() -> None:
    result, heard = met("status", {"handle": "a/../b", "account_id": "acct_1"})
    assert (heard.method, heard.target, heard.body) == ("GET", "/jobs/a%2F..%2Fb?account_id=acct_1", b"")
    assert heard.header("content-type") is None
    assert heard.header("idempotency-key") is None
    assert result == {"handle": HANDLE, "state": "accepted"}


def test_a_path_may_go_on_behind_a_value() -> None:
    assert sent("result", {"handle": HANDLE}).target == "/jobs/jb_1/result"


def test_writing_is_a_json_body() -> None:
    heard = sent("run", RUN)
    assert (heard.method, heard.target) == ("POST", "/jobs")
    assert json.loads(heard.body) == RUN
    assert heard.header("content-type") == "application/json"


def test_objects_travel_as_they_were_given() -> None:
    job = {"workflow": "triage@3", "source_digest": "sha256:9f", "labels": {"é": "\u202e"}, "account_id": "acct_1"}
    assert json.loads(sent("quote", {"job": job}).body) == {"job": job}


def test_the_service_has_its_own_names() -> None:
    arguments = {"item": "tea", "note": None, "idempotency_key": "mine"}
    assert json.loads(sent("order", arguments).body) == {"itemId": "tea", "note": None}
    query = {"tags": ["a b", "&"], "exact": False, "page_size": 5, "class": "x"}
    assert sent("find", query).target == "/things?tag=a%20b&tag=%26&exact=false&pageSize=5&class=x"
    assert sent("find").target == "/things"


def test_a_verb_without_parameters_has_no_body() -> None:
    result, heard = met("ping", None, b"HTTP/1.1 204 No Content\r\n\r\n")
    assert (result, heard.body, heard.header("content-length")) == (None, b"", "0")


def test_a_base_path_stays() -> None:
    async def work(_: Core, service: RawService) -> None:
        made = core(service.url + "/api/v1/")
        await made.ask("status", {"handle": HANDLE})
        await made.backend.close()

    _, (heard,) = over(work, reply(200, DONE))
    assert heard.target == "/api/v1/jobs/jb_1"


def test_planning_sends_nothing() -> None:
    async def work(made: Core, service: RawService) -> Plan:
        plan = await made.plan("run", RUN)
        assert service.connections == 0
        return plan

    plan, heard = over(work, reply())
    assert (plan.bound, plan.refusal, heard) == (HttpRequest("POST", "/jobs", b'{"quote":"qt_1"}'), None, [])


@pytest.mark.parametrize("handle", ["", ".", ".."])
def test_a_value_that_could_be_another_place_is_refused_before_anything_is_sent(handle: str) -> None:
    async def work(made: Core, _: RawService) -> Plan:
        return await made.plan("status", {"handle": handle})

    plan, heard = over(work, reply())
    assert (plan.refusal.kind, heard) == ("invalid_input", [])


def test_a_fault_in_a_function_is_no_refusal() -> None:
    async def work() -> None:
        with pytest.raises(ValueError, match="handle"):
            await core("http://127.0.0.1:1").plan("status", {})

    alone(work)


def test_the_callers_key_goes_to_the_service() -> None:
    assert sent("status", {"handle": HANDLE}).header("authorization") == "Bearer k-ann"
    assert sent("status", {"handle": HANDLE}, caller=BOB).header("authorization") == "Bearer k-bob"


def test_the_callers_key_goes_nowhere_else() -> None:
    assert sent("status", {"handle": HANDLE}, credentials=None).header("authorization") is None


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_leads_nowhere(status: int) -> None:
    async def work(_: Core, other: RawService) -> Any:
        async with RawService(reply(status, b"", f"Location: {other.url}/jobs/jb_1")) as service:
            made = core(service.url)
            answer = await made.ask("status", {"handle": HANDLE})
            await made.backend.close()
            return answer

    answer, heard = over(work, reply(200, DONE))
    assert (answer["kind"], answer["detail"], heard) == ("internal", {"status": status}, [])
    assert "redirects are not followed" in answer["message"]


@pytest.mark.parametrize("caller", [Caller(), Caller("ann", "acct_1")])
def test_a_caller_without_a_key_is_refused_before_anything_is_sent(caller: Caller) -> None:
    async def work(made: Core, _: RawService) -> Plan:
        return await made.plan("status", {"handle": HANDLE}, caller)

    plan, heard = over(work, reply())
    assert heard == []
    assert plan.refusal.as_error() == {
        "kind": "denied",
        "message": "`core` wants the key of whoever calls, and this call came without one.",
    }


def test_nobody_needs_a_key_where_none_is_forwarded() -> None:
    result, _ = met("status", {"handle": HANDLE}, caller=Caller(), credentials=None)
    assert result["handle"] == HANDLE


@pytest.mark.parametrize("key", ["k\r\nX-Evil: 1", "k\n", "", " k", "clé", "k\0"])
def test_a_key_that_is_no_header_is_never_sent(key: str) -> None:
    async def work(made: Core, _: RawService) -> Any:
        return await made.ask("status", {"handle": HANDLE}, Caller("ann", credentials=key))

    answer, heard = over(work, reply())
    assert (answer, heard) == ({"kind": "internal", "message": "The server has a key that no header can hold."}, [])


def test_headers_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORE_KEY", "s3cret with ${HOME}")
    headers = {"X-Key": "${CORE_KEY}", "X-Team": "${NOT_SET_AT_ALL:-red}", "Accept": "application/problem+json"}
    heard = sent("status", {"handle": HANDLE}, headers=headers)
    assert heard.header("x-key") == "s3cret with ${HOME}"
    assert heard.header("x-team") == "red"
    assert heard.header("accept") == "application/problem+json"


def test_what_is_configured_does_not_replace_what_belongs_to_the_call() -> None:
    heard = sent("run", RUN, headers={"AUTHORIZATION": "Basic x", "idempotency-key": "always"})
    assert heard.header("authorization") == "Bearer k-ann"
    assert heard.header("idempotency-key") != "always"


@pytest.mark.parametrize(
    ("options", "environment", "message"),
    [
        ({"url": "${CORE_URL}"}, {}, "The environment variable `CORE_URL` is not set."),
        ({"url": "${CORE_URL}"}, {"CORE_URL": ""}, "The environment variable `CORE_URL` is empty."),
        ({"headers": {"X-Key": "${CORE_KEY}"}}, {}, "The environment variable `CORE_KEY` is not set."),
        (
            {"headers": {"X-Key": "${CORE_KEY}"}},
            {"CORE_KEY": "s3cret\r\nX-Evil: 1"},
            "The header `X-Key` is configured with what no header can hold.",
        ),
        (
            {"url": "${CORE_URL}"},
            {"CORE_URL": "https://me:s3cret@core.example"},
            "The address `${CORE_URL}` has credentials in it.",
        ),
        (
            {"url": "${CORE_URL}"},
            {"CORE_URL": "http://s3cret.example"},
            "The address `${CORE_URL}` is plain http, which is taken on this machine only.",
        ),
    ],
)
def test_what_is_not_configured_well_is_told_without_its_values(
    options: dict[str, Any], environment: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CORE_URL", "CORE_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    async def work() -> Any:
        return await core(**{"url": "http://127.0.0.1:1", **options}).ask("status", {"handle": HANDLE})

    assert alone(work) == {"kind": "internal", "message": message}


def test_a_spec_may_say_plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORE_HOST", "127.0.0.1:1")

    async def work() -> Any:
        return await core("http://${CORE_HOST}").ask("status", {"handle": HANDLE})

    assert alone(work)["kind"] == "unavailable"


def test_a_derived_key_is_sent_and_not_told() -> None:
    result, heard = met("run", {**RUN, "account_id": "acct_1"})
    assert heard.header("idempotency-key") == digest({"caller": "acct_1", "verb": "core.run", "arguments": RUN})
    assert result == {"handle": HANDLE, "state": "accepted"}


def test_the_same_call_has_the_same_derived_key() -> None:
    async def work(made: Core, _: RawService) -> None:
        await made.ask("run", RUN)
        await made.ask("run", {**RUN, "account_id": "acct_1"})
        await made.ask("run", RUN, BOB)
        await made.ask("batch", {"quotes": ["qt_1"]})

    _, heard = over(work, reply(200, DONE))
    keys = [one.header("idempotency-key") for one in heard]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_a_key_of_the_callers_own_is_sent_and_told() -> None:
    result, heard = met("order", {"item": "tea", "idempotency_key": "mine-1"})
    assert heard.header("idempotency-key") == "mine-1"
    assert "idempotency_key" not in json.loads(heard.body)
    assert result == {"handle": HANDLE, "state": "accepted", "idempotency_key": "mine-1"}


def test_a_key_that_was_left_out_is_made_and_told() -> None:
    result, heard = met("order", {"item": "tea"})
    assert result["idempotency_key"] == heard.header("idempotency-key")


def test_where_the_service_cannot_tell_callers_apart_their_keys_are_kept_apart() -> None:
    arguments = {"item": "tea", "idempotency_key": "1"}
    result, heard = met("order", arguments, credentials=None)
    _, other = met("order", arguments, credentials=None, caller=BOB)
    assert result["idempotency_key"] == "1"
    assert heard.header("idempotency-key") == digest({"caller": "acct_1", "verb": "core.order", "key": "1"})
    assert other.header("idempotency-key") != heard.header("idempotency-key")


def test_a_key_is_told_with_a_refusal_too() -> None:
    error, heard = met("order", {"item": "tea"}, reply(409, {"error": {"code": "conflict"}}))
    assert error["detail"] == {"status": 409, "idempotency_key": heard.header("idempotency-key")}


def test_a_refusal_of_the_service() -> None:
    body = {"error": {"code": "approval_required", "next": {"approve": "/approvals/7"}}}
    assert refused("run", RUN, reply(403, body)) == {
        "kind": "approval_required",
        "message": "Ask first.",
        "detail": {"approve": "/approvals/7", "status": 403},
    }
    assert refused("run", RUN, reply(410, b""))["kind"] == "quote_expired"


def test_only_what_is_declared_comes_back() -> None:
    async def work(made: Core, _: RawService) -> Any:
        admission = Admission(made.registry, {"core": made.backend})
        return [
            await admission.admit(Request(name, arguments, caller=ANN))
            for name, arguments in [
                ("core.status", {"handle": HANDLE}),
                ("core.find", {}),
                ("core.status", {"handle": 1}),
            ]
        ]

    (status, find, wrong), heard = over(work, reply(200, DONE))
    assert status.result == {"handle": HANDLE, "state": "accepted"}
    assert find.result == DONE  # nothing is declared for it
    assert (wrong.refusal.kind, len(heard)) == ("invalid_input", 2)


@pytest.mark.parametrize("body", [{"handle": HANDLE}, {"handle": 7, "state": "x"}, [], None, "x"])
def test_a_result_that_does_not_fit_does_not_leave(body: Any) -> None:
    async def work(made: Core, _: RawService) -> Any:
        admission = Admission(made.registry, {"core": made.backend})
        return await admission.admit(Request("core.status", {"handle": HANDLE}, caller=ANN))

    outcome, _ = over(work, reply(200, body))
    assert (outcome.result, outcome.refusal.kind) == (None, "internal")


@pytest.mark.parametrize(
    "answer",
    [
        reply(200, b"<html>s3cret", "Content-Type: text/html"),
        reply(200, b"", "Content-Type: application/json"),
        reply(200, b'{"handle": "s3cret"', "Content-Type: application/json"),
        reply(200, b"\x1f\x8b\x08s3cret", "Content-Encoding: gzip"),
        reply(200, b"s3cret" * 1000),
    ],
)
def test_a_reply_that_is_none_is_internal_and_tells_nothing(answer: bytes) -> None:
    async def work(made: Core, _: RawService) -> Any:
        admission = Admission(made.registry, {"core": made.backend})
        return (await admission.admit(Request("core.status", {"handle": HANDLE}, caller=ANN))).refusal

    refusal, _ = over(work, answer)
    assert refusal.kind == "internal"
    assert "s3cret" not in json.dumps(refusal.as_error())


def test_the_type_of_a_reply_is_no_matter_as_long_as_it_is_json() -> None:
    result, _ = met("status", {"handle": HANDLE}, reply(200, DONE, "Content-Type: text/plain; charset=latin-1"))
    assert result == {"handle": HANDLE, "state": "accepted"}


def test_a_service_that_is_not_there() -> None:
    async def work() -> Any:
        async with RawService(reply()) as service:
            url = service.url
        return [await core(url).ask(name, arguments) for name, arguments in (("run", RUN), ("status", {"handle": "x"}))]

    message = "`core` cannot be reached; nothing was sent to it."
    assert alone(work) == [{"kind": "unavailable", "message": message}] * 2


UNKNOWN = "It is not known whether the service did it"


@pytest.mark.parametrize(
    ("name", "arguments", "doubt"),
    [
        ("status", {"handle": HANDLE}, ""),
        ("ping", {}, f" {UNKNOWN}."),
        ("run", RUN, f" {UNKNOWN}; the same call again gives the same result."),
        (
            "order",
            {"item": "tea", "idempotency_key": "mine"},
            f" {UNKNOWN}; the same call again, with this `idempotency_key`, gives the same result.",
        ),
    ],
)
def test_a_lost_reply_says_what_is_not_known(name: str, arguments: dict[str, Any], doubt: str) -> None:
    target = {"status": "GET /jobs/<handle>", "ping": "POST /ping", "run": "POST /jobs", "order": "PUT /orders"}[name]
    key = {"idempotency_key": "mine"} if name == "order" else {}
    detail = {"detail": key} if key else {}
    lost = {"kind": "unavailable", "message": f"The reply of `{target}` was lost.{doubt}", **detail}
    torn = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"
    for answer in (hang_up, saying(torn)):
        assert refused(name, arguments, answer) == lost

    async def wait(exchange: Exchange) -> None:
        move_clock(FOR_EVER)
        await say_nothing(exchange)

    late = refused(name, arguments, wait)
    assert late == {**lost, "message": f"`{target}` did not answer within 1e+06 seconds.{doubt}"}
    gateway = refused(name, arguments, reply(504, b""))
    assert gateway["kind"] == "unavailable"
    assert gateway["message"] == f"`{target}` ended with status 504.{doubt}"
    assert gateway["detail"] == {"status": 504, **key}


def test_a_request_ends_before_its_call_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what is told is what the service left open, and not only that the call took too long."""

    async def work() -> None:
        seen: dict[str, Any] = {}

        async def send(_: HttpService, request: HttpRequest, **options: Any) -> Received:
            seen.update(options)
            return Received(200, json.dumps(DONE).encode())

        monkeypatch.setattr(HttpService, "send", send)
        made = core("http://127.0.0.1:1")
        plan = await made.plan("status", {"handle": HANDLE})
        await made.backend.run(plan)
        assert seen["deadline"] == plan.call.last_end < plan.call.deadline
        assert seen["output"] == plan.call.verb.limits.output

    alone(work)


def test_a_key_that_was_made_is_told_when_the_reply_is_lost() -> None:
    error, heard = met("order", {"item": "tea"}, hang_up)
    assert error["detail"] == {"idempotency_key": heard.header("idempotency-key")}


def test_the_same_call_after_a_lost_reply_gives_what_the_first_one_did() -> None:
    """A service that does each key once, and whose first reply is lost on the way."""
    made_under: dict[str | None, str] = {}

    async def answer(exchange: Exchange) -> None:
        key = exchange.heard.header("idempotency-key")
        if key in made_under:
            await exchange.say(reply(200, {"handle": made_under[key], "state": "accepted"}))
            return
        made_under[key] = f"jb_{len(made_under)}"
        await hang_up(exchange)

    async def work(made: Core, _: RawService) -> Any:
        return await made.ask("run", RUN), await made.ask("run", RUN)

    (first, second), heard = over(work, answer)
    assert first["kind"] == "unavailable"
    assert second == {"handle": "jb_0", "state": "accepted"}
    assert (len(heard), len(made_under)) == (2, 1)


def test_a_refusal_is_not_remembered() -> None:
    async def work(made: Core, _: RawService) -> Any:
        return await made.ask("run", RUN), await made.ask("run", RUN)

    refusal = reply(403, {"error": {"code": "approval_required"}})
    (first, second), heard = over(work, refusal, reply(201, DONE))
    assert (first["kind"], second["handle"]) == ("approval_required", HANDLE)
    assert heard[0].header("idempotency-key") == heard[1].header("idempotency-key")


def test_connections_are_shared_by_the_verbs_and_hold_no_caller() -> None:
    async def work(made: Core, service: RawService) -> int:
        await made.ask("status", {"handle": HANDLE})
        await made.ask("run", RUN, BOB)
        return service.connections

    connections, heard = over(work, reply(200, DONE, "Set-Cookie: session=ann; Path=/"))
    assert connections == 1
    assert [one.header("authorization") for one in heard] == ["Bearer k-ann", "Bearer k-bob"]
    assert heard[1].header("cookie") is None


def test_many_callers_at_once() -> None:
    callers = [Caller(f"s{n}", f"acct_{n}", credentials=f"k{n}") for n in range(40)]

    async def work(url: str) -> list[Any]:
        made = core(url)
        asked = (made.ask("find", {"class": caller.subject}, caller) for caller in callers)
        found = await asyncio.gather(*asked)
        await made.backend.close()
        return found

    with echoing_service() as url:
        found = asyncio.run(work(url))
    for caller, heard in zip(callers, found, strict=True):
        assert heard["query"] == f"class={caller.subject}"
        assert heard["headers"]["authorization"] == f"Bearer {caller.credentials}"


def test_a_question_of_the_servers_own() -> None:
    async def work(made: Core, _: RawService) -> Any:
        request = HttpRequest("GET", "/key")
        return [
            await made.backend.ask(request, credentials=credentials, seconds=FOR_EVER) for credentials in ("k-1", None)
        ]

    (first, second), heard = over(work, reply(200, {"id": "ann"}), reply(401, b""))
    assert (first.status, first.body) == (200, b'{"id": "ann"}')
    assert second.status == 401
    assert [one.header("authorization") for one in heard] == ["Bearer k-1", None]
    assert [one.target for one in heard] == ["/key", "/key"]


def test_a_question_without_an_answer() -> None:
    async def work() -> None:
        with pytest.raises(UnreachableError):
            await core("http://127.0.0.1:1").backend.ask(HttpRequest("GET", "/"), credentials="k", seconds=FOR_EVER)

    alone(work)


@pytest.fixture
def logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> Callable[[], list[dict[str, Any]]]:
    """The lines of the log so far, as a server writes them."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(logging.root, "handlers", [log._StderrHandler()])
    return lambda: [json.loads(line) for line in capsys.readouterr().err.splitlines()]


@pytest.mark.parametrize(
    "answer",
    [
        reply(200, {"handle": "s3cret", "state": "s3cret"}, "X-Reply: s3cret"),
        reply(500, {"error": {"code": "s3cret", "next": "s3cret"}}),
        reply(200, {"handle": ["s3cret"]}),
        saying(b"HTTP/1.1 s3cret\r\n\r\n"),
        hang_up,
    ],
)
def test_nothing_of_a_call_reaches_the_log(answer: bytes | Answer, logged: Callable[[], Any]) -> None:
    async def work(made: Core, _: RawService) -> None:
        admission = Admission(made.registry, {"core": made.backend})
        caller = Caller("ann", "acct_1", credentials="s3cret-key")
        for name in ("core.status", "core.find", "core.run", "core.order"):
            arguments = {
                "core.status": {"handle": "s3cret"},
                "core.find": {"class": "s3cret"},
                "core.run": {"quote": "s3cret"},
                "core.order": {"item": "s3cret", "idempotency_key": "s3cret"},
            }[name]
            await admission.admit(Request(name, arguments, caller=caller))

    over(work, answer, headers={"X-Own": "s3cret-own"})
    lines = logged()
    assert {line["logger"] for line in lines} <= {"verbc.server"}  # libraries would tell addresses
    assert "s3cret" not in json.dumps(lines)


def test_the_log_says_why_a_service_did_not_reply(logged: Callable[[], Any]) -> None:
    async def work() -> None:
        await core("http://127.0.0.1:1").ask("run", RUN)

    alone(work)
    (line,) = logged()
    del line["time"]
    assert line == {
        "level": "warning",
        "logger": "verbc.server",
        "event": "a service did not reply",
        "backend": "core",
        "verb": "core.run",
        "how": "UnreachableError",
        "cause": "ConnectionRefusedError",
        "correlation_id": "c",
    }


def test_the_key_of_a_caller_is_in_no_text_and_in_no_comparison() -> None:
    assert "k-ann" not in f"{ANN!r} {ANN}"
    assert Caller("ann", credentials="a") == Caller("ann", credentials="b")
