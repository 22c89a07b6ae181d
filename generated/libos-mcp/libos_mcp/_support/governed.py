"""The way of a call under a policy: decided before it is asked for, begun on record, and settled however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from pydantic_core import to_json

from .backend import Backend, Evidence, Plan
from .call import Call
from .consent import Question
from .contract import Contract
from .execution import Execution, place_of
from .refusal import Refusal
from .registry import Registry
from .rights import Right, rights_of

# How often what a call is about may change while it is on its way.
_PLANS: Final = 5
REJECTED: Final = "rejected"  # as the record has it of what somebody who may approve it does not want


class StalePlanError(Exception):
    """What a plan rests on has changed since; nothing was begun."""


class PendingError(Refusal):
    """Refusal `pending`: an approval is asked for. `question` is for a client whose yes would count, else None."""

    def __init__(self, message: str, detail: dict[str, Any], question: Question | None = None) -> None:
        super().__init__("pending", message, detail)
        self.question = question


class Permits(Protocol):
    """Decides what callers may do, and keeps the record of it. Its rulings and permits are its own."""

    async def decide(self, plan: Plan, rights: Sequence[Right], granted: Callable[[Right], bool]) -> Any:
        """The ruling on a plan that needs `rights` and its own; `granted` says which of them scopes bring.

        Raises Refusal `denied`; or StalePlanError instead, where the plan is only remembered.
        """

    async def refused(self, ruling: Any, refusal: Refusal, reason: str | None = None) -> None:
        """Put on record that a call with all its rights was refused; `reason` is why, in a word of the record."""

    async def begin(self, ruling: Any) -> Any:
        """The permit to start. Raises StalePlanError, PendingError, and Refusal."""

    async def answer(self, approval_id: str, *, approved: bool, by: str) -> None:
        """Decide an approval as `by` wants it."""

    async def end(
        self, permit: Any, *, outcome: str, error: Refusal | None, result_bytes: int, evidence: Evidence
    ) -> None:
        """Settle what was begun, also when whoever waits for that is cancelled."""


class GovernedExecution(Execution):
    """Carries calls out where a policy decides."""

    def __init__(self, registry: Registry, backends: Mapping[str, Backend], permits: Permits) -> None:
        super().__init__(registry, backends)
        self._permits = permits

    async def result(self, call: Call, contract: Contract) -> Any:
        """What a call gives whose arguments fit its contract. Raises Refusal, and what the backend raises."""
        for attempt in range(_PLANS):
            call.fresh = attempt > 0
            plan = await self._plan(call)
            try:
                ruling = await self._ruling(plan)
                if refusal := self._objection(plan, contract):
                    if plan.remembered:
                        continue
                    await self._permits.refused(ruling, refusal)
                    raise refusal
                return await self._placed(ruling, plan)
            except StalePlanError:
                continue
            except PendingError as pending:
                await self._asked(pending, ruling, call)
        raise Refusal("busy", "What this is about keeps changing; try again.")

    async def _placed(self, ruling: Any, plan: Plan) -> Any:
        """Carry it out once it has its places; nothing is used or reserved by a call that waits for one."""
        waiting = True
        try:
            async with place_of(plan):
                waiting = False
                return await self._slots.run(plan.call, lambda: self._permitted(ruling, plan))
        except Refusal as refusal:
            if waiting:
                await self._permits.refused(ruling, refusal)
            raise

    async def _ruling(self, plan: Plan) -> Any:
        call = plan.call
        rights = tuple(rights_of(call.verb, call.arguments))
        return await self._permits.decide(plan, rights, lambda right: self._access.brings(call.caller, right))

    async def _permitted(self, ruling: Any, plan: Plan) -> Any:
        permit = await self._permits.begin(ruling)
        try:
            result = await self._run(plan)
        except BaseException as error:
            await self._failed(permit, plan.evidence, error)
            raise
        size = plan.evidence.response_bytes
        size = len(to_json(result)) if size is None else size
        outcome = plan.evidence.status or "ok"
        await self._permits.end(permit, outcome=outcome, error=None, result_bytes=size, evidence=plan.evidence)
        return result

    async def _asked(self, pending: PendingError, ruling: Any, call: Call) -> None:
        """Have the client's user decide. Raises `pending` where he cannot be asked, or does not say; `denied` after a no."""
        loop = asyncio.get_running_loop()
        question, consent, began = pending.question, call.consent, loop.time()
        answer = None if question is None or consent is None else await consent.ask(question)
        if question is None or answer is None:
            raise pending
        call.deadline += loop.time() - began  # nobody has to hurry
        await self._permits.answer(question.approval_id, approved=answer, by="client")
        if not answer:  # whatever was said of the same call elsewhere meanwhile
            refusal = Refusal("denied", "The client's user has declined this.")
            await self._permits.refused(ruling, refusal, REJECTED)
            raise refusal

    async def _failed(self, permit: Any, evidence: Evidence, error: BaseException) -> None:
        refusal = error if isinstance(error, Refusal) else None
        outcome = "cancelled" if isinstance(error, asyncio.CancelledError) else "refused" if refusal else "internal"
        await self._permits.end(permit, outcome=outcome, error=refusal, result_bytes=0, evidence=evidence)
