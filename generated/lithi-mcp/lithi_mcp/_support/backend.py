"""What a backend is to the rest of a server: it plans a call without touching anything, then runs the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from .call import Call
from .refusal import Refusal
from .registry import Verb
from .rights import Right

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(slots=True)
class Evidence:
    """What a run finds out about itself: it fills this in, and whoever settles the run reads it."""

    contacted: bool = True  # something outside may have begun; false is certain: nothing has
    sent: bool = False  # an upstream was sent the call itself
    response_bytes: int | None = None  # what came back; None: not known
    status: str | None = None  # how it ended, in the words of the backend
    error_type: str | None = None  # a finer name for an end that is none of the good ones


@dataclass(frozen=True, slots=True)
class Plan:
    """What is about to run: the call, what stands for it outside, what it needs, and what already speaks against it.

    The rights are needed beside those of the verb: what only the arguments tell.
    """

    call: Call
    bound: Any = None
    refusal: Refusal | None = None  # told after the rights, and before anybody is asked to approve
    rights: tuple[Right, ...] = ()  # each allowed, or asked for
    outright: tuple[Right, ...] = ()  # each allowed; no approval makes up for one
    any_of: tuple[Right, ...] = ()  # one of them allowed or to be asked for, though it never is
    suspended: bool = False  # what a policy grants on `mcp:<id>` does not reach this
    target: Mapping[str, Any] = field(default_factory=dict)  # what an approval is bound to beside the call
    arguments: Mapping[str, Any] | None = None  # what an approval is about; None: the arguments of the call
    objection: Callable[[], Refusal | None] | None = None  # the same as `refusal`, looked for only once it may be told
    cost: Callable[[], int] | None = None  # the most bytes that it can bring; None: as many as the verb may give back
    place: Callable[[], AbstractAsyncContextManager[None]] | None = None  # taken before it begins; may raise `busy`
    guard: Callable[[Connection], bool] | None = None  # whether what it rests on still stands
    # It rests on an earlier look: that is good enough to begin, where `guard` looks again, and not to refuse.
    remembered: bool = False
    evidence: Evidence = field(default_factory=Evidence)

    def obstacle(self) -> Refusal | None:
        """What speaks against it; asked once that may be told."""
        return self.objection() if self.refusal is None and self.objection is not None else self.refusal


class Backend(Protocol):
    """Runs verbs."""

    async def plan(self, call: Call) -> Plan:
        """Prepare a call whose arguments fit. Touches nothing outside. May raise Refusal."""

    async def run(self, plan: Plan) -> Any:
        """Do it, and return a JSON value. Raises Refusal; any other exception means that the server is at fault."""


@runtime_checkable
class Closing(Protocol):
    """What has something to let go of when its server ends."""

    async def close(self) -> None:
        """Let go of it."""


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
