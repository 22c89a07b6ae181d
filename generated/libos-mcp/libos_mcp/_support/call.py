"""One call of a verb: made once when it arrives, and handed on until it is answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from .consent import Consent
from .registry import Registry, Verb

if TYPE_CHECKING:
    from .rights import Right

# What is started for a call ends this much before the call, so that its own silence is what is told.
_MARGIN_SECONDS = 0.1

ProgressReport: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: under stdio the local user, elsewhere whoever the credentials stand for."""

    subject: str = "local"
    account: str | None = None
    scopes: frozenset[str] = frozenset()
    credentials: str | None = field(default=None, repr=False, compare=False)  # the key that was sent, for forwarding


LOCAL: Final = Caller()


@dataclass(slots=True)
class Call:
    """A verb with its arguments, and all that is known about this one call of it."""

    verb: Verb
    arguments: dict[str, Any]
    caller: Caller
    correlation_id: str
    registry: Registry
    started_at: datetime  # when the server started, UTC
    deadline: float  # a time of the running event loop
    report: ProgressReport | None = None
    fresh: bool = False  # plan it with nothing that is only remembered
    consent: Consent | None = None  # how the client's user can be asked; None: he cannot
    may: Callable[[Right], bool] | None = None  # whether a policy allows a right outright; None: nothing decides

    @property
    def last_end(self) -> float:
        """When whatever was started for this call has to end, a little before its deadline."""
        return self.deadline - self._margin

    @property
    def last_start(self) -> float:
        """Until when it can wait for a place: those of the same age still run then, so who waited was never started."""
        return self.deadline - 2 * self._margin

    @property
    def _margin(self) -> float:
        return min(_MARGIN_SECONDS, self.verb.limits.timeout / 10)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the caller how far this is; nothing happens when it has not asked to be told.

        Raises ValueError when a number is not finite.
        """
        numbers = [progress, *([] if total is None else [total])]
        if not all(isinstance(number, int | float) and isfinite(number) for number in numbers):
            raise ValueError("Progress is told in finite numbers.")
        if self.report is not None:
            await self.report(progress, total, message)
