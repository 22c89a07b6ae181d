"""From arguments that fit to a result that fits: plan, rights, pin, run, and a look at what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Protocol

from . import log
from .backend import Backend, Plan
from .call import Call
from .content import CONTENT_SCHEMA, FORM
from .contract import Contract
from .pin import Pin
from .refusal import Refusal
from .registry import Registry, Verb
from .rights import Access, rights_of
from .slots import Slots
from .validation import Validator, bounded_result


class Execution:
    """Carries calls out where scopes decide, or nothing does."""

    def __init__(self, registry: Registry, backends: Mapping[str, Backend]) -> None:
        self._backends = backends
        self._access = Access.of(registry)
        self._pin = Pin.of(registry)
        self._slots = Slots(registry)
        self._results: dict[str, Validator] = {}

    async def result(self, call: Call, contract: Contract) -> Any:
        """What a call gives whose arguments fit its contract. Raises Refusal, and what the backend raises."""
        plan = await self._plan(call)
        # What is the caller's own, and what he may do, come before whatever the plan found is told to anybody.
        rights = [*rights_of(call.verb, call.arguments), *plan.rights]
        if refusal := self._access.refusal(call.caller, rights) or self._objection(plan, contract):
            raise refusal
        async with place_of(plan):
            return await self._slots.run(call, lambda: self._run(plan))

    async def _plan(self, call: Call) -> Plan:
        try:
            return await self._backends[call.verb.run.backend].plan(call)
        except Refusal as refusal:
            return Plan(call, refusal=refusal)

    def _objection(self, plan: Plan, contract: Contract) -> Refusal | None:
        call = plan.call
        return self._pin.refusal(call.arguments, call.caller, contract.schema) or plan.obstacle()

    async def _run(self, plan: Plan) -> Any:
        return self._checked(plan.call, await self._backends[plan.call.verb.run.backend].run(plan))

    def _checked(self, call: Call, result: Any) -> Any:
        result = bounded_result(result)
        validator = self._result_validator(call.verb)
        if validator is None or not (problems := validator.problems(result)):
            return result
        log.event(
            "error",
            "a result did not fit its schema",
            verb=call.verb.name,
            problems=problems,
            correlation_id=call.correlation_id,
        )
        message = f"The result does not have the form that is declared for it. {in_log(call.correlation_id)}"
        raise Refusal("internal", message)

    def _result_validator(self, verb: Verb) -> Validator | None:
        if verb.name not in self._results and (schema := _result_schema(verb)) is not None:
            # Names that a result has and its schema does not are data, and data does not go into the log.
            self._results[verb.name] = Validator(schema, names=False, subject="the result")
        return self._results.get(verb.name)


class Governing(Protocol):
    """What rules over the calls of a server: it makes the way that they take."""

    def execution(self, registry: Registry, backends: Mapping[str, Backend]) -> Execution:
        """How calls are carried out under it."""


def place_of(plan: Plan) -> AbstractAsyncContextManager[None]:
    """What a plan waits for before it takes a place among the calls that run, and has until it ends."""
    return nullcontext() if plan.place is None else plan.place()


def in_log(correlation: str) -> str:
    """Where an answer says that there is more."""
    return f"The server's log has more under {correlation}."


def _result_schema(verb: Verb) -> dict[str, Any] | None:
    return CONTENT_SCHEMA if verb.run.reply["form"] == FORM else verb.result
