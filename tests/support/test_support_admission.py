"""The one path of a call: what stops it on the way, and what comes back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from verbc.support import bounded_work
from verbc.support.admission import Admission, Outcome, Request
from verbc.support.backend import Plan
from verbc.support.call import Call
from verbc.support.refusal import Refusal
from verbc.support.registry import Registry, from_data

from .programs import finish, move_clock
from .samples import Functions, Work


def over(registry: Registry, works: Mapping[str, Work] | None = None) -> Admission:
    return Admission(registry, {"local": Functions(works or {}), "li": Functions()})


def ask(admission: Admission, name: str, arguments: Any = None, fingerprint: Any = None, **more: Any) -> Outcome:
    return finish(admission.admit(Request(name, arguments, fingerprint, **more)))


def returning(value: Any) -> Work:
    async def work(call: Call) -> Any:
        return value

    return work


def raising(error: BaseException) -> Work:
    async def work(call: Call) -> Any:
        raise error

    return work


def refused(outcome: Outcome) -> Refusal:
    assert outcome.refusal is not None
    return outcome.refusal


def test_a_call_gets_its_result(admission: Admission) -> None:
    assert ask(admission, "item.show", {"id": "a"}) == Outcome("item.show", {"id": "a"})
    assert ask(admission, "free") == Outcome("free", {})


def test_a_synonym_is_answered_by_its_own_name(admission: Admission) -> None:
    assert ask(admission, "show_item", {"id": "a"}).op == "item.show"


def test_an_unknown_verb_gets_the_nearest_and_the_counts(admission: Admission) -> None:
    outcome = ask(admission, "item.shwo")
    assert (outcome.op, refused(outcome).kind) == ("item.shwo", "not_found")
    message = "There is no verb `item.shwo`; did you mean `item.show`? Verbs available: 6, unavailable: 2."
    assert refused(outcome).message == message
    assert outcome.schema is None


def test_an_unknown_verb_is_shown_cut_and_escaped(admission: Admission) -> None:
    outcome = ask(admission, "\x1b[31m" + "x" * 1000)
    assert outcome.op == "\\u001b[31m" + "x" * 58 + "…"
    assert "x" * 60 not in refused(outcome).message


def test_shapes_does_not_tell_what_was_asked_for(data: dict[str, Any]) -> None:
    outcome = ask(over(from_data({**data, "feedback": "shapes"})), "item.shwo")
    assert outcome.op == "*"
    assert refused(outcome).message == "There is no such verb. Verbs available: 6, unavailable: 2."


def test_an_unavailable_verb_gives_its_reason(admission: Admission) -> None:
    outcome = ask(admission, "gone", {"anything": 1})
    assert (outcome.op, outcome.schema) == ("gone", None)
    error = {"kind": "unavailable", "message": "Nobody needs it.", "detail": {"summary": "Summary of gone."}}
    assert refused(outcome).as_error() == error


@pytest.mark.parametrize("arguments", [[], "x", False, 0])
def test_arguments_that_are_no_object_are_refused_without_a_schema(admission: Admission, arguments: Any) -> None:
    outcome = ask(admission, "item.show", arguments)
    error = {"kind": "invalid_input", "message": "The arguments must be an object."}
    assert (refused(outcome).as_error(), outcome.schema) == (error, None)


def test_arguments_that_do_not_fit_are_refused_with_the_schema(admission: Admission, registry: Registry) -> None:
    outcome = ask(admission, "item.show", {"id": 1, "nme": 1})
    problems = ["`id` must be a string", "`nme` is not a parameter"]
    error = {"kind": "invalid_input", "message": "; ".join(problems), "detail": {"problems": problems}}
    assert refused(outcome).as_error() == error
    verb = registry.verb("item.show")
    assert verb is not None
    assert (outcome.schema, outcome.schema_fingerprint) == (verb.params, verb.fingerprint)


def test_arguments_beyond_the_generic_limits_are_refused(admission: Admission) -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    for value, reason in [
        (deep, "is nested too deeply"),
        (float("nan"), "holds a number that is not finite"),
        ("\ud800", "holds text that is not valid Unicode"),
    ]:
        refusal = refused(ask(admission, "spawn", {"query": [value]}, "x"))
        assert (refusal.kind, refusal.message) == ("invalid_input", f"the arguments object {reason}")


def test_integral_numbers_reach_the_backend_as_integers(registry: Registry) -> None:
    seen: list[Any] = []

    async def work(call: Call) -> Any:
        seen.append(call.arguments["count"])
        return {"id": "a"}

    assert ask(over(registry, {"item.show": work}), "item.show", {"id": "a", "count": 7.0}).refusal is None
    assert seen == [7]
    assert type(seen[0]) is int


def test_a_call_knows_what_it_is_part_of(registry: Registry) -> None:
    seen: list[Call] = []

    async def work(call: Call) -> Any:
        seen.append(call)
        await call.progress(1)

    assert ask(over(registry, {"free": work}), "free").refusal is None
    (call,) = seen
    assert (call.verb.name, call.caller.subject, call.registry) == ("free", "local", registry)
    assert call.started_at.utcoffset() is not None
    assert re.fullmatch(r"corr_[0-9a-f]{16}", call.correlation_id)


# Fingerprints


def test_a_fingerprint_is_asked_for_where_one_is_required(admission: Admission, registry: Registry) -> None:
    verb = registry.verb("spawn")
    assert verb is not None
    wrong: list[Any] = [None, "0" * 16, 7, []]
    for sent in wrong:
        problem = "needs the fingerprint" if sent is None else "another fingerprint"
        outcome = ask(admission, "spawn", {"unknown": 1}, sent)
        assert refused(outcome).kind == "stale_schema"
        assert problem in refused(outcome).message
        assert refused(outcome).detail == {"help": "spawn", "schema_fingerprint": verb.fingerprint}
        assert outcome.schema == verb.params
    assert ask(admission, "spawn", {"query": []}, verb.fingerprint).refusal is None


def test_a_fingerprint_among_the_arguments_does_not_count(admission: Admission, registry: Registry) -> None:
    verb = registry.verb("spawn")
    assert verb is not None
    inside = {"schema_fingerprint": verb.fingerprint}
    assert refused(ask(admission, "spawn", inside)).kind == "stale_schema"
    assert (
        refused(ask(admission, "spawn", inside, verb.fingerprint)).message == "`schema_fingerprint` is not a parameter"
    )


def test_a_fingerprint_that_nobody_needs_is_ignored(admission: Admission) -> None:
    assert ask(admission, "free", {}, "whatever").refusal is None


def test_where_none_is_expected_only_a_wrong_one_is_refused(admission: Admission) -> None:
    assert ask(admission, "spawn", {}, fingerprint_expected=False).refusal is None
    refusal = refused(ask(admission, "spawn", {}, "0" * 16, fingerprint_expected=False))
    assert refusal.kind == "stale_schema"
    assert refusal.detail is not None
    assert refusal.detail.keys() == {"schema_fingerprint"}


# What backends do


def test_a_refusal_comes_back_as_it_is(registry: Registry) -> None:
    refusal = Refusal("conflict", "It is in use.", {"by": "you"})
    outcome = ask(over(registry, {"item.show": raising(refusal)}), "item.show", {"id": "a"})
    assert outcome.refusal is refusal
    assert outcome.schema is not None


def test_a_declared_kind_is_taken_and_another_becomes_internal(registry: Registry) -> None:
    declared = over(registry, {"free": raising(Refusal("weird", "Odd."))})
    assert refused(ask(declared, "free")).as_error() == {"kind": "weird", "message": "Odd."}
    kinds: tuple[Any, ...] = ("strange", 7, None, ["conflict"], {})
    for kind in kinds:
        refusal = Refusal(kind, "Odd.", {"a": 1})
        error = refused(ask(over(registry, {"free": raising(refusal)}), "free")).as_error()
        assert error["kind"] == "internal"
        assert error["detail"] == {"kind": kind, "message": "Odd.", "detail": {"a": 1}}


@pytest.mark.parametrize(("message", "detail"), [(None, None), (7, None), ("No.", ["a"]), ("No.", "text")])
def test_a_refusal_of_another_shape_is_internal(registry: Registry, message: Any, detail: Any) -> None:
    refusal = refused(ask(over(registry, {"free": raising(Refusal("conflict", message, detail))}), "free"))
    assert (refusal.kind, refusal.detail) == ("internal", None)
    assert isinstance(refusal.message, str)


def test_a_refusal_that_cannot_be_sent_is_internal(registry: Registry) -> None:
    for detail in ({"a": float("nan")}, {"a": object()}):
        refusal = refused(ask(over(registry, {"free": raising(Refusal("conflict", "No.", detail))}), "free"))
        assert (refusal.kind, refusal.detail) == ("internal", None)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("secret"),
        RecursionError(),
        TimeoutError(),
        SystemExit("secret"),
        KeyboardInterrupt(),
        GeneratorExit("secret"),
        BaseException("secret"),
        asyncio.CancelledError("secret"),
    ],
)
def test_an_exception_is_internal_and_its_text_stays_inside(
    registry: Registry, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = ask(over(registry, {"free": raising(error)}), "free")
    refusal = refused(outcome)
    assert refusal.kind == "internal"
    assert "secret" not in refusal.message
    (record,) = caplog.records
    assert record.verbc_fields["correlation_id"] in refusal.message  # type: ignore[attr-defined]
    assert "secret" not in caplog.text
    assert outcome.schema is not None


def test_a_plan_can_refuse(registry: Registry) -> None:
    class Careful(Functions):
        async def plan(self, call: Call) -> Plan:
            return Plan(call, refusal=Refusal("denied", "Not this one."))

    backend = Careful()
    outcome = ask(Admission(registry, {"local": backend}), "free")
    assert (refused(outcome).kind, backend.ran) == ("denied", [])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"a": float("inf")}, "holds a number that is not finite"),
        ({"a": "\ud800"}, "holds text that is not valid Unicode"),
        ({"a": {1, 2}}, "holds something that is not JSON"),
    ],
)
def test_a_result_that_cannot_be_sent_is_internal(registry: Registry, value: Any, reason: str) -> None:
    refusal = refused(ask(over(registry, {"free": returning(value)}), "free"))
    assert (refusal.kind, refusal.message) == ("internal", f"The result cannot be sent: it {reason}.")


def test_a_result_is_held_to_its_schema(registry: Registry, caplog: pytest.LogCaptureFixture) -> None:
    works = {"item.show": returning({"id": "a", "size": 2.0}), "item.names": returning(["a", 7])}
    outcome = ask(over(registry, works), "item.show", {"id": "a"})
    assert outcome.result == {"id": "a", "size": 2}
    assert type(outcome.result["size"]) is int
    refusal = refused(ask(over(registry, works), "item.names"))
    assert refusal.kind == "internal"
    assert caplog.records[-1].verbc_fields["correlation_id"] in refusal.message  # type: ignore[attr-defined]
    assert caplog.records[-1].verbc_fields["problems"] == ["`[1]` must be a string"]  # type: ignore[attr-defined]


# Time and places


def test_a_call_that_takes_too_long_is_ended(registry: Registry) -> None:
    ended: list[str] = []

    async def work(call: Call) -> Any:
        move_clock(31)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    refusal = refused(ask(over(registry, {"free": work}), "free"))
    assert (refusal.kind, refusal.message) == ("unavailable", "`free` did not end within 30 seconds.")
    assert ended == ["cancelled"]


def test_a_cancellation_passes_through(registry: Registry) -> None:
    async def work(call: Call) -> Any:
        await asyncio.Event().wait()

    async def scenario() -> None:
        task = asyncio.create_task(over(registry, {"free": work}).admit(Request("free")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    finish(scenario())


def test_only_so_many_calls_of_a_pool_run_at_once(registry: Registry) -> None:
    running: list[int] = []
    most: list[int] = []
    go = asyncio.Event()

    async def work(call: Call) -> Any:
        running.append(1)
        most.append(len(running))
        await go.wait()
        running.pop()

    async def scenario() -> None:
        admission = over(registry, {"free": work, "spawn": work})
        tasks = [asyncio.create_task(admission.admit(Request("free"))) for _ in range(6)]
        for _ in range(20):
            await asyncio.sleep(0)
        go.set()
        assert [outcome.refusal for outcome in await asyncio.gather(*tasks)] == [None] * 6

    finish(scenario())
    assert max(most) == 4


def test_calls_that_only_wait_take_no_place(data: dict[str, Any]) -> None:
    for verb in data["verbs"]:
        verb["limits"] = {**verb["limits"], "concurrency": None if verb["name"] == "free" else 1}
    go = asyncio.Event()

    async def work(call: Call) -> Any:
        if call.verb.name == "free":
            await go.wait()

    async def scenario() -> None:
        admission = over(from_data(data), {"free": work, "spawn": work})
        waiting = [asyncio.create_task(admission.admit(Request("free"))) for _ in range(6)]
        for _ in range(20):
            await asyncio.sleep(0)
        assert (await admission.admit(Request("spawn", fingerprint=fingerprint_of(data, "spawn")))).refusal is None
        go.set()
        assert [outcome.refusal for outcome in await asyncio.gather(*waiting)] == [None] * 6

    finish(scenario())


def fingerprint_of(data: dict[str, Any], name: str) -> str:
    (verb,) = (verb for verb in data["verbs"] if verb["name"] == name)
    return str(verb["fingerprint"])


def test_a_call_that_finds_no_place_in_time_is_told_so(registry: Registry) -> None:
    async def work(call: Call) -> Any:
        if call.verb.name == "free":
            await asyncio.Event().wait()

    async def scenario() -> Outcome:
        admission = over(registry, {"free": work})
        holders = [asyncio.create_task(admission.admit(Request("free"))) for _ in range(4)]
        await asyncio.sleep(0)
        waiting = asyncio.create_task(admission.admit(Request("item.names")))
        await asyncio.sleep(0)
        move_clock(31)
        outcome = await waiting
        assert {refused(await holder).kind for holder in holders} == {"unavailable"}
        return outcome

    refusal = refused(finish(scenario()))
    assert refusal.kind == "busy"
    assert "`item.names`" in refusal.message


def test_a_call_is_busy_before_those_that_came_with_it_are_ended(registry: Registry) -> None:
    """Else it would get the place of one of them, without any time left, and not know that nothing was done."""
    ran: list[str] = []

    async def work(call: Call) -> Any:
        ran.append(call.verb.name)
        await asyncio.Event().wait()

    async def scenario() -> None:
        admission = over(registry, {"free": work, "item.names": work})
        holders = [asyncio.create_task(admission.admit(Request("free"))) for _ in range(4)]
        await asyncio.sleep(0)
        waiting = asyncio.create_task(admission.admit(Request("item.names")))
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        stopped = loop.time() + 29.85  # commands are ended 0.1 seconds before their calls
        loop.time = lambda: stopped  # type: ignore[method-assign]
        assert refused(await waiting).kind == "busy"
        assert not any(holder.done() for holder in holders)
        for holder in holders:
            holder.cancel()
        await asyncio.gather(*holders, return_exceptions=True)

    finish(scenario())
    assert set(ran) == {"free"}


def test_the_place_of_work_that_does_not_end_is_not_free(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_work, "GRACE_SECONDS", 0)
    enough = asyncio.Event()

    async def stubborn(call: Call) -> Any:
        while not enough.is_set():
            with suppress(asyncio.CancelledError):
                await enough.wait()

    async def scenario() -> None:
        admission = over(registry, {"free": stubborn, "item.names": returning(["a"])})
        holders = [asyncio.create_task(admission.admit(Request("free"))) for _ in range(4)]
        await asyncio.sleep(0)
        move_clock(31)
        assert {refused(outcome).kind for outcome in await asyncio.gather(*holders)} == {"unavailable"}
        late = asyncio.create_task(admission.admit(Request("item.names")))
        await asyncio.sleep(0)
        assert not late.done()
        enough.set()
        assert (await late).refusal is None
        await asyncio.sleep(0)

    finish(scenario())


@pytest.mark.parametrize("numbers", [(float("nan"),), (1, float("inf")), ("abc",), (None,)])
def test_progress_is_told_in_finite_numbers(registry: Registry, numbers: tuple[Any, ...]) -> None:
    told: list[Any] = []

    async def report(*progress: Any) -> None:
        told.append(progress)

    async def work(call: Call) -> None:
        await call.progress(1, 2, "half")
        await call.progress(*numbers)

    outcome = ask(over(registry, {"free": work}), "free", report=report)
    assert refused(outcome).kind == "internal"
    assert told == [(1, 2, "half")]


def test_problems_are_joined_without_two_ends(registry: Registry) -> None:
    message = refused(ask(over(registry), "item.show", {"id": "a", "force": 1, "zz": 1})).message
    assert message == "`force` is not accepted: It would stop a run in the middle; `zz` is not a parameter"
