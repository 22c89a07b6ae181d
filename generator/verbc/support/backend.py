"""What a backend is to the rest of a server: it plans a call without touching anything, then runs the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from .call import Call
from .refusal import Refusal
from .registry import Verb
from .rights import Right


@dataclass(frozen=True, slots=True)
class Plan:
    """What is about to run: the call, what stands for it outside, and what already speaks against it.

    `rights` are needed beside those of the verb: what only the arguments tell.
    """

    call: Call
    bound: Any = None
    refusal: Refusal | None = None
    rights: tuple[Right, ...] = ()


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


@runtime_checkable
class Chooser(Protocol):
    """A backend that cannot take every parameter that a variant of a verb may add."""

    def objection(self, verb: Verb, further: Mapping[str, Any]) -> str | None:
        """Why these parameters, names and their schemas, cannot be added to those of the verb; None when they can."""
