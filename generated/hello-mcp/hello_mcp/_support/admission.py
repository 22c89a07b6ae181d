"""The one path that every call takes, on both surfaces and for all backends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from . import log
from .backend import Backend
from .call import LOCAL, Call, Caller, ProgressReport
from .consent import Consent, InputRequiredError
from .contract import Contract, Contracts
from .execution import Execution, Governing, in_log
from .quoting import quoted, shown
from .refusal import Refusal
from .registry import Registry, Verb
from .slots import in_time
from .strict_json import Unacceptable, limited
from .validation import bounded_arguments, invalid


@dataclass(frozen=True, slots=True)
class Request:
    """A call as a surface hands it in: nothing of it has been looked at, apart from the name being text."""

    name: str
    arguments: Any = None  # null and absent mean none
    fingerprint: Any = None  # what the caller quotes of the schema it has read
    fingerprint_expected: bool = True  # false: a call without one is fine, one with a wrong one is not
    caller: Caller = LOCAL
    report: ProgressReport | None = None
    consent: Consent | None = None  # how the client's user can be asked; None: he cannot


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

    def __init__(self, registry: Registry, backends: Mapping[str, Backend], governing: Governing | None = None) -> None:
        self.registry = registry
        self._contracts = Contracts(registry, backends)
        self._execution = (
            Execution(registry, backends) if governing is None else governing.execution(registry, backends)
        )
        self._started_at = datetime.now(UTC)

    async def admit(self, request: Request) -> Outcome:
        """Take a call all the way. However it ends is an Outcome; only a cancellation passes through.

        Raises InputRequiredError when a client has to send the call again, with an answer of its user.
        """
        correlation = log.correlation_id()
        contract: Contract | None = None
        try:
            verb = self.resolve(request.name)
            call = self._call(verb, request, correlation)
            contract = await self._contract(call)
            _check_fingerprint(call, contract, request)
            _check_arguments(call, contract)
            result = await self._execution.result(call, contract)
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
            consent=request.consent,
        )

    async def _contract(self, call: Call) -> Contract:
        work = self._contracts.of(call)
        return await (in_time(call, work) if call.verb.varies_with else work)

    def _refused(self, name: str, error: BaseException, correlation: str, contract: Contract | None) -> Outcome:
        if isinstance(error, Refusal):
            refusal = self._declared(error)
        else:
            log.failure("a call failed", error, verb=self.op(name), correlation_id=correlation)
            refusal = Refusal("internal", f"Something went wrong in the server. {in_log(correlation)}")
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


def _let_cancellation_pass(error: BaseException) -> None:
    """Raise a cancellation of the call; one that comes out of its work, uncalled for, is a fault like any other."""
    if isinstance(error, InputRequiredError):
        raise error
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
