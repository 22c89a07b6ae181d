"""The one path that every call takes, on both surfaces and for all backends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from . import log
from .backend import Backend, Plan
from .bounded_work import within
from .call import LOCAL, Call, Caller, ProgressReport
from .content import CONTENT_SCHEMA, FORM
from .contract import Contract, Contracts
from .pin import Pin
from .quoting import quoted, shown
from .refusal import Refusal
from .registry import Registry, Verb
from .rights import Access, rights_of
from .strict_json import Unacceptable, limited
from .validation import Validator, bounded_arguments, bounded_result, invalid

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """A call as a surface hands it in: nothing of it has been looked at, apart from the name being text."""

    name: str
    arguments: Any = None  # null and absent mean none
    fingerprint: Any = None  # what the caller quotes of the schema it has read
    fingerprint_expected: bool = True  # false: a call without one is fine, one with a wrong one is not
    caller: Caller = LOCAL
    report: ProgressReport | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to a call: a result, or a refusal; and the schema, once the arguments were looked at."""

    op: str  # the verb's own name, or what was asked for in a form that can be shown
    result: Any = None
    refusal: Refusal | None = None
    schema: dict[str, Any] | None = None
    schema_fingerprint: str | None = None


class Admission:
    """Lets calls through to their backends, one step after the other, and answers for whatever happens there."""

    def __init__(self, registry: Registry, backends: Mapping[str, Backend]) -> None:
        self.registry = registry
        self._backends = backends
        self._contracts = Contracts(registry, backends)
        self._access = Access.of(registry)
        self._pin = Pin.of(registry)
        self._started_at = datetime.now(UTC)
        self._slots = {
            limit.pool: asyncio.Semaphore(limit.concurrency)
            for limit in (verb.limits for verb in registry.verbs)
            if limit.concurrency is not None
        }
        self._results: dict[str, Validator] = {}

    async def admit(self, request: Request) -> Outcome:
        """Take a call all the way. However it ends is an Outcome; only a cancellation passes through."""
        correlation = log.correlation_id()
        contract: Contract | None = None
        try:
            verb = self.resolve(request.name)
            call = self._call(verb, request, correlation)
            contract = await self._contract(call)
            _check_fingerprint(call, contract, request)
            _check_arguments(call, contract)
            plan = self._plan(call)
            self._check_access(plan, contract)
            result = await self._run(plan)
            result = self._checked(call, result)
        except BaseException as error:
            _let_cancellation_pass(error)
            return self._refused(request.name, error, correlation, contract)
        return Outcome(verb.name, result)

    async def describe(self, name: str, values: dict[str, str]) -> Outcome:
        """The schema of a verb, for these values of the parameters that it varies with; or a refusal."""
        correlation = log.correlation_id()
        try:
            verb = self.resolve(name)
            call = self._call(verb, Request(name, values), correlation)
            contract = await self._contract(call)
            if left := sorted(values.keys() - contract.varied_by.keys()):
                raise invalid([f"{quoted(param)} has a value that does not fit" for param in left])
        except BaseException as error:
            _let_cancellation_pass(error)
            return self._refused(name, error, correlation, None)
        return Outcome(verb.name, schema=contract.schema, schema_fingerprint=contract.fingerprint)

    def resolve(self, name: str) -> Verb:
        """The verb that a name or a synonym stands for. Raises Refusal `not_found`, or `unavailable` with the reason."""
        verb = self.registry.resolve(name)
        if verb is None:
            raise Refusal("not_found", self._unknown(name))
        if verb.unavailable is not None:
            raise Refusal("unavailable", verb.unavailable, {"summary": verb.summary})
        return verb

    def op(self, name: str) -> str:
        """How a name that was asked for is shown: the verb's own name, or the text itself where that may be told."""
        if verb := self.registry.resolve(name):
            return verb.name
        return shown(name) if self.registry.feedback == "names" else "*"

    def _unknown(self, name: str) -> str:
        counts = f"Verbs available: {len(self.registry.available)}, unavailable: {len(self.registry.unavailable)}."
        if self.registry.feedback != "names":
            return f"There is no such verb. {counts}"
        nearest = self.registry.nearest(name)
        meant = f"; did you mean {quoted(nearest)}?" if nearest else "."
        return f"There is no verb {quoted(name)}{meant} {counts}"

    def _call(self, verb: Verb, request: Request, correlation: str) -> Call:
        arguments = {} if request.arguments is None else request.arguments
        if not isinstance(arguments, dict):
            raise Refusal("invalid_input", "The arguments must be an object.")
        return Call(
            verb=verb,
            arguments=bounded_arguments(arguments),
            caller=request.caller,
            correlation_id=correlation,
            registry=self.registry,
            started_at=self._started_at,
            deadline=asyncio.get_running_loop().time() + verb.limits.timeout,
            report=request.report,
        )

    def _plan(self, call: Call) -> Plan:
        try:
            return self._backends[call.verb.run.backend].plan(call)
        except Refusal as refusal:
            return Plan(call, refusal=refusal)

    def _check_access(self, plan: Plan, contract: Contract) -> None:
        """See that the caller may do it, with what is his own: before whatever the plan found is told to anybody."""
        call = plan.call
        refusal = self._access.refusal(call.caller, [*rights_of(call.verb, call.arguments), *plan.rights])
        if refusal := refusal or self._pin.refusal(call.arguments, call.caller, contract.schema):
            raise refusal

    async def _run(self, plan: Plan) -> Any:
        if plan.refusal is not None:
            raise plan.refusal
        call = plan.call
        limits, backend = call.verb.limits, self._backends[call.verb.run.backend]
        if limits.concurrency is None:
            return await self._within(call, backend.run(plan))
        slots = self._slots[limits.pool]
        await _slot(slots, call)
        # The place is free when the work has really ended, which may be after its call was answered.
        return await self._within(call, backend.run(plan), slots.release)

    async def _contract(self, call: Call) -> Contract:
        work = self._contracts.of(call)
        return await (self._within(call, work) if call.verb.varies_with else work)

    async def _within(self, call: Call, work: Awaitable[T], when_ended: Callable[[], None] | None = None) -> T:
        try:
            return await within(call.deadline, work, when_ended)
        except TimeoutError:
            if asyncio.get_running_loop().time() < call.deadline:
                raise
            sentence = f"{quoted(call.verb.name)} did not end within {call.verb.limits.patience}."
            raise Refusal("unavailable", sentence) from None

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
        message = f"The result does not have the form that is declared for it. {_in_log(call.correlation_id)}"
        raise Refusal("internal", message)

    def _result_validator(self, verb: Verb) -> Validator | None:
        if verb.name not in self._results and (schema := _result_schema(verb)) is not None:
            # Names that a result has and its schema does not are data, and data does not go into the log.
            self._results[verb.name] = Validator(schema, names=False, subject="the result")
        return self._results.get(verb.name)

    def _refused(self, name: str, error: BaseException, correlation: str, contract: Contract | None) -> Outcome:
        if isinstance(error, Refusal):
            refusal = self._declared(error)
        else:
            log.failure("a call failed", error, verb=self.op(name), correlation_id=correlation)
            refusal = Refusal("internal", f"Something went wrong in the server. {_in_log(correlation)}")
        if contract is None:
            return Outcome(self.op(name), refusal=refusal)
        return Outcome(self.op(name), None, refusal, contract.schema, contract.fingerprint)

    def _declared(self, refusal: Refusal) -> Refusal:
        """A refusal of a kind that the registry has, in plain JSON; one of another kind becomes the detail of `internal`."""
        try:
            error = limited(refusal.as_error())
        except Unacceptable as problem:
            return Refusal(
                "internal", f"It was refused with details that cannot be sent: the refusal {problem.reason}."
            )
        if not (isinstance(error["message"], str) and isinstance(error.get("detail", {}), dict)):
            return Refusal("internal", "It was refused without a message, or with details that are no object.")
        if isinstance(refusal.kind, str) and refusal.kind in self.registry.kinds:
            return refusal
        return Refusal("internal", "It was refused with a kind that is not declared.", error)


def _result_schema(verb: Verb) -> dict[str, Any] | None:
    return CONTENT_SCHEMA if verb.run.reply["form"] == FORM else verb.result


def _let_cancellation_pass(error: BaseException) -> None:
    """Raise a cancellation of the call; one that comes out of its work, uncalled for, is a fault like any other."""
    task = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        raise error


def _check_fingerprint(call: Call, contract: Contract, request: Request) -> None:
    verb = call.verb
    if not (verb.fingerprint_required and contract.gated):
        return
    absent = request.fingerprint is None
    if request.fingerprint == contract.fingerprint or (absent and not request.fingerprint_expected):
        return
    detail: dict[str, Any] = {"schema_fingerprint": contract.fingerprint}
    if request.fingerprint_expected:
        # The values that made a variant are known to the server, so they can be told.
        detail = {"help": {"verb": verb.name, **contract.varied_by} if contract.varied_by else verb.name, **detail}
    problem = "needs the fingerprint of its schema" if absent else "has a schema with another fingerprint"
    raise Refusal("stale_schema", f"{quoted(verb.name)} {problem}; read the schema, then send its fingerprint.", detail)


def _check_arguments(call: Call, contract: Contract) -> None:
    if problems := contract.validator.problems(call.arguments):
        raise invalid(problems)


async def _slot(slots: asyncio.Semaphore, call: Call) -> None:
    if not slots.locked():
        await slots.acquire()  # at once; a timer would cost more than the wait
        return
    try:
        async with asyncio.timeout_at(call.last_start):
            await slots.acquire()
    except TimeoutError:
        raise Refusal("busy", f"No place became free for {quoted(call.verb.name)}; try again later.") from None


def _in_log(correlation: str) -> str:
    return f"The server's log has more under {correlation}."
