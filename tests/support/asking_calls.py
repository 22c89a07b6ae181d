"""Calls that have to be approved, as a governed server makes them, in the state of an `Operation`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from verbc.support.backend import Plan
from verbc.support.call import Call, Caller
from verbc.support.governed import PendingError
from verbc.support.governor import Governor
from verbc.support.refusal import Refusal
from verbc.support.rights import Right
from verbc.support.state_store import StateStore

from .operators import Operation
from .programs import finish

RIGHT = Right(("write mcp", "time", "set"))


def begin(
    server: Operation, arguments: Mapping[str, Any], *, subject: str = "ada", clock: datetime | None = None
) -> Any:
    """Start a call that needs the right to set the time, and end it: None when it ran, else what stood in its way."""

    async def work() -> Refusal | None:
        store = StateStore(server.registry, ("governance_tables",), state=server.state)
        moment = clock or datetime.now(UTC)
        governor = Governor(server.registry, store, policy=server.policy, clock=lambda: moment)
        deadline = asyncio.get_running_loop().time() + 30
        verb = server.registry.verbs[0]
        call = Call(verb, dict(arguments), Caller(subject), "corr_0123456789abcdef", server.registry, moment, deadline)
        plan = Plan(call, rights=(RIGHT,), target={"server_id": "time", "tool_id": "set"})
        try:
            permit = await governor.begin(await governor.decide(plan, (), lambda _right: False))
            await governor.end(permit, outcome="ok", error=None, result_bytes=7, evidence=plan.evidence)
        except Refusal as refusal:
            return refusal
        finally:
            await governor.close()
        return None

    return finish(work())


def ask(server: Operation, arguments: Mapping[str, Any], *, subject: str = "ada", clock: datetime | None = None) -> str:
    """The id of the approval that a call waits for."""
    pending = begin(server, arguments, subject=subject, clock=clock)
    assert isinstance(pending, PendingError)
    assert pending.detail is not None
    return str(pending.detail["approval"]["id"])
