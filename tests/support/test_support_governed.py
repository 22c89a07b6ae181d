"""The way of a call under a policy: what its plan rests on may be remembered, or change, and refusals never rest on that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from verbc.support.admission import Admission, Outcome, Request
from verbc.support.backend import Backend, Evidence, Plan
from verbc.support.call import Call, Caller
from verbc.support.execution import Execution
from verbc.support.governed import GovernedExecution, StalePlanError
from verbc.support.refusal import Refusal
from verbc.support.registry import Registry, from_data
from verbc.support.rights import Right

from .programs import finish
from .samples import DATA, Functions, verb_data

REGISTRY = from_data({**DATA, "verbs": [verb_data("run")]})
DENIED = Refusal("denied", "He may not.")
ABSENT = Refusal("not_found", "It is not there.")


@dataclass
class Remembering(Functions):
    """A backend that remembers, until it is told to look; `found` speaks against a call, for each of the two."""

    found: Mapping[bool, Refusal | None] = field(default_factory=dict)  # by whether it looked
    plans: list[bool] = field(default_factory=list)

    async def plan(self, call: Call) -> Plan:
        self.plans.append(call.fresh)
        return Plan(call, refusal=self.found.get(call.fresh), remembered=not call.fresh)


@dataclass
class Permissive:
    """Permits that allow all but `denied`, and find the first `stale` plans outdated."""

    denied: frozenset[bool] = frozenset()  # by whether the plan is remembered
    stale: int = 0
    told: list[str] = field(default_factory=list)

    def execution(self, registry: Registry, backends: Mapping[str, Backend]) -> Execution:
        return GovernedExecution(registry, backends, self)

    async def decide(self, plan: Plan, rights: Sequence[Right], granted: Callable[[Right], bool]) -> Plan:
        if plan.remembered in self.denied:
            if plan.remembered:
                raise StalePlanError
            self.told.append("denied")
            raise DENIED
        return plan

    async def refused(self, ruling: Plan, refusal: Refusal, reason: str | None = None) -> None:
        self.told.append(f"refused {refusal.kind}")

    async def begin(self, ruling: Plan) -> Plan:
        if self.stale:
            self.stale -= 1
            raise StalePlanError
        self.told.append("began")
        return ruling

    async def answer(self, approval_id: str, *, approved: bool, by: str) -> None:
        self.told.append("answered")

    async def end(
        self, permit: Plan, *, outcome: str, error: Refusal | None, result_bytes: int, evidence: Evidence
    ) -> None:
        self.told.append(f"ended {outcome}")


def admit(backend: Functions, permits: Permissive) -> Outcome:
    async def work() -> Outcome:
        admission = Admission(REGISTRY, {"local": backend}, permits)
        return await admission.admit(Request("run", {}, caller=Caller("ann")))

    return finish(work())


def test_what_is_remembered_is_enough_to_begin() -> None:
    backend, permits = Remembering(), Permissive()
    assert admit(backend, permits).refusal is None
    assert (backend.plans, permits.told) == ([False], ["began", "ended ok"])


@pytest.mark.parametrize(("fresh", "told"), [(None, ["began", "ended ok"]), (ABSENT, ["refused not_found"])])
def test_a_refusal_never_rests_on_what_is_remembered(fresh: Refusal | None, told: list[str]) -> None:
    backend, permits = Remembering(found={False: ABSENT, True: fresh}), Permissive()
    assert admit(backend, permits).refusal is fresh
    assert (backend.plans, permits.told) == ([False, True], told)


@pytest.mark.parametrize(("denied", "told"), [({True}, ["began", "ended ok"]), ({True, False}, ["denied"])])
def test_nobody_is_denied_by_what_is_remembered(denied: set[bool], told: list[str]) -> None:
    backend, permits = Remembering(), Permissive(frozenset(denied))
    assert (admit(backend, permits).refusal is DENIED) == (told == ["denied"])
    assert (backend.plans, permits.told) == ([False, True], told)


def test_an_outdated_plan_is_made_anew_from_a_look() -> None:
    backend, permits = Remembering(), Permissive(stale=1)
    assert admit(backend, permits).refusal is None
    assert (backend.plans, backend.ran, permits.told) == ([False, True], ["run"], ["began", "ended ok"])


def test_what_keeps_changing_is_refused_in_the_end() -> None:
    backend, permits = Remembering(), Permissive(stale=100)
    refusal = admit(backend, permits).refusal
    assert refusal is not None
    assert (refusal.kind, backend.ran, permits.told) == ("busy", [], [])


def test_a_call_that_is_taken_back_is_settled_as_that() -> None:
    async def work() -> list[str]:
        begun = asyncio.Event()

        async def wait(_call: Call) -> Any:
            begun.set()
            await asyncio.Event().wait()

        permits = Permissive()
        admission = Admission(REGISTRY, {"local": Functions({"run": wait})}, permits)
        calling = asyncio.ensure_future(admission.admit(Request("run", {})))
        await begun.wait()
        calling.cancel()
        await asyncio.wait((calling,))
        assert calling.cancelled()
        return permits.told

    assert finish(work()) == ["began", "ended cancelled"]


@pytest.mark.parametrize(("error", "outcome"), [(Refusal("conflict", "No."), "refused"), (ValueError(), "internal")])
def test_a_run_that_fails_is_settled_as_that(error: Exception, outcome: str) -> None:
    async def fail(_call: Call) -> Any:
        raise error

    permits = Permissive()
    refusal = admit(Functions({"run": fail}), permits).refusal
    assert refusal is not None
    assert permits.told == ["began", f"ended {outcome}"]


@dataclass
class Placing(Functions):
    """A backend whose calls wait for a place of its own."""

    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    full: Refusal | None = None

    async def plan(self, call: Call) -> Plan:
        return Plan(call, place=self.place)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        if self.full is not None:
            raise self.full
        async with self.places:
            yield


def test_a_call_that_gets_no_place_has_not_begun() -> None:
    backend, permits = Placing(full=Refusal("busy", "It is full.")), Permissive()
    assert admit(backend, permits).refusal is backend.full
    assert (backend.ran, permits.told) == ([], ["refused busy"])


@pytest.mark.parametrize("governed", [True, False])
def test_whoever_waits_for_a_place_holds_up_nobody_else(governed: bool) -> None:
    """More calls wait than may run at one time; one of another backend runs all the same, and nothing is begun."""

    async def work() -> tuple[list[str], list[str]]:
        verbs = [verb_data("run"), verb_data("other")]
        verbs[1] = {**verbs[1], "run": {**verbs[1]["run"], "backend": "li"}}
        registry = from_data({**DATA, "verbs": verbs})
        backend, other, permits = Placing(), Functions(), Permissive()
        admission = Admission(registry, {"local": backend, "li": other}, permits if governed else None)
        async with backend.places:
            waiting = [asyncio.ensure_future(admission.admit(Request("run", {}))) for _ in range(50)]
            assert (await admission.admit(Request("other", {}))).refusal is None
            begun = list(permits.told)
        await asyncio.gather(*waiting)
        return begun, backend.ran

    assert finish(work()) == (["began", "ended ok"] if governed else [], ["run"] * 50)
