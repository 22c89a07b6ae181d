"""What a backend is to the rest of a server: it plans a call without touching anything, then runs the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from .call import Call
from .refusal import Refusal


@dataclass(frozen=True, slots=True)
class Plan:
    """What is about to run: the call, what stands for it outside, and what already speaks against it."""

    call: Call
    bound: Any = None
    refusal: Refusal | None = None


class Backend(Protocol):
    """Runs verbs."""

    def plan(self, call: Call) -> Plan:
        """Prepare a call whose arguments fit. Touches nothing outside. May raise Refusal."""

    async def run(self, plan: Plan) -> Any:
        """Do it, and return a JSON value. Raises Refusal; any other exception means that the server is at fault."""


@runtime_checkable
class Resolver(Protocol):
    """A backend that turns a value of a parameter into further parameters."""

    async def params_for(self, param: str, value: str, call: Call) -> dict[str, Any]:
        """`{"properties": {...}, "required": [...]}`, both optional. Raises Refusal when the value stands for nothing."""
