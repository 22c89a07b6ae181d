"""What a policy allows of each call, and the record of it: decided, begun, and settled however the call ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from . import log
from .backend import Backend, Evidence, Plan
from .execution import Execution
from .governed import GovernedExecution, PendingError, StalePlanError
from .late_ends import LateEnds
from .policy_file import PolicyFile, PolicyFileError, PolicySource
from .refusal import Refusal
from .registry import Registry
from .rights import Right
from .rulings import Ruling, allows, denial, rule
from .state_store import StateStore
from .trusted_file import Stamp, stamp

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from .permits import Ended, Permit

__all__ = ["Governor", "PendingError", "StalePlanError"]

T = TypeVar("T")

# How often, at most, what is over is looked for on the way of a call.
_SWEEP_SECONDS: Final = 30.0


def _now() -> datetime:
    return datetime.now(UTC)


class Governor:
    """Rules over the calls of a server by the policy in `policy`, or by that of the registry where there is no file.

    Whatever it keeps it keeps in `store`, which it closes.
    """

    def __init__(
        self,
        registry: Registry,
        store: StateStore,
        *,
        policy: Path | None = None,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self._store = store
        self._path = policy
        self._policy = PolicySource((registry.access or {}).get("policy") or {}, policy)
        self._seen: Stamp | None = None  # of the policy file that was read last
        self._clock = clock
        self._swept = -_SWEEP_SECONDS
        self._writing: set[asyncio.Future[Any]] = set()
        self._ends = LateEnds(lambda name, work: self._started(store.write(name, work)))

    def execution(self, registry: Registry, backends: Mapping[str, Backend]) -> Execution:
        """How calls are carried out under it."""
        return GovernedExecution(registry, backends, self)

    async def decide(self, plan: Plan, rights: Sequence[Right], granted: Callable[[Right], bool]) -> Ruling:
        """What the policy says of a plan that needs `rights` and its own; `granted` says which of them scopes bring.

        The call learns what else its caller may, by the same policy.

        Raises Refusal `denied`, once that is on record, and `unavailable` where policy or store cannot be used;
        StalePlanError instead of `denied` where the plan is only remembered.
        """
        ruling = rule(plan, rights, await self._policy_in_force(), granted)
        plan.call.may = lambda right: allows(ruling, right, granted)
        if ruling.denied:
            if plan.remembered:
                raise StalePlanError
            refusal = denial(ruling)
            await self.refused(ruling, refusal)
            raise refusal
        return ruling

    async def refused(self, ruling: Ruling, refusal: Refusal, reason: str | None = None) -> None:
        """Put on record that a call was refused before it began; `reason` is why, where that is not the ruling.

        Raises Refusal `unavailable`.
        """
        now, sweeping = self._clock(), self._sweeps()

        def work(connection: Connection) -> None:
            from . import permits

            if sweeping:
                permits.sweep(connection, now)
            permits.refuse(connection, ruling, refusal, now, reason=reason)

        await self._write("refused", work)

    async def begin(self, ruling: Ruling) -> Permit:
        """The permit to start, with all that goes with it on record.

        Raises StalePlanError where the plan has to be made anew, PendingError, and Refusal: `denied` when somebody has
        rejected the call, `busy` beyond a budget or with too much that waits, `unavailable`.
        """
        in_force = await self._policy_in_force()
        if in_force is not ruling.policy and in_force.subjects != ruling.policy.subjects:
            raise StalePlanError  # it has changed while the call waited for its place
        now, sweeping = self._clock(), self._sweeps()
        seconds = ruling.plan.call.deadline - asyncio.get_running_loop().time()

        def work(connection: Connection) -> Permit | Refusal:
            from . import permits

            if sweeping:
                permits.sweep(connection, now)
            return permits.begin(connection, ruling, seconds, now)

        beginning = self._ends.write("begin", work)
        try:
            begun = await asyncio.shield(beginning)
        except asyncio.CancelledError:
            self._started(self._take_back(beginning))
            raise
        if isinstance(begun, Refusal):
            raise begun
        return begun

    async def answer(self, approval_id: str, *, approved: bool, by: str) -> None:
        """Decide an approval that the client may decide, as `by` wants it. One that is decided already stays so."""
        now = self._clock()

        def work(connection: Connection) -> None:
            from .approvals import ApprovalError, decide, find

            with suppress(ApprovalError):
                found = find(connection, approval_id, now)
                if (found.approver, found.state) == ("client", "pending"):
                    decide(connection, approval_id, approved, by, now)

        await self._write("answer", work)

    async def end(
        self, permit: Permit, *, outcome: str, error: Refusal | None, result_bytes: int, evidence: Evidence
    ) -> None:
        """Settle what was begun, also when whoever waits for that is cancelled.

        Where that cannot be put on record, the log says so, and the record that nobody knows how it ended.
        """
        from .permits import Ended

        settling = self._settling(permit, Ended(outcome, error, result_bytes, evidence))
        # Where nothing is given back, and nothing waits for room, an answer need not wait until its end is on record.
        if permit.reservation is None and error is None and evidence.contacted:
            self._ends.add(settling)
            return
        with suppress(Refusal):
            await self._write("end", settling)

    async def close(self) -> None:
        """Wait for what is still to be put on record, and let go of the store."""
        self._ends.flush()
        while self._writing:
            await asyncio.wait(tuple(self._writing))
        await self._store.close()

    async def _policy_in_force(self) -> PolicyFile:
        try:
            if self._path is None:
                return self._policy.current()
            found = stamp(self._path)
            if found == self._seen:
                return self._policy.current()
            policy = await asyncio.to_thread(self._policy.current)  # it has to be read first
            self._seen = found
            return policy
        except PolicyFileError as error:
            log.event("error", "the policy cannot be used", problem=str(error))
            raise Refusal("unavailable", "The policy of this server cannot be used now; its log says why.") from None

    def _sweeps(self) -> bool:
        """Whether it is time again to look for what is over."""
        moment = time.monotonic()
        if moment - self._swept < _SWEEP_SECONDS:
            return False
        self._swept = moment
        return True

    async def _take_back(self, beginning: asyncio.Future[Permit | Refusal]) -> None:
        """Settle what nobody waits for any more as soon as it has begun."""
        from .permits import Ended

        with suppress(Refusal, StalePlanError):
            begun = await beginning
            if not isinstance(begun, Refusal):
                ended = Ended("cancelled", None, 0, Evidence(contacted=False))
                await self._store.write("end", self._settling(begun, ended))

    def _settling(self, permit: Permit, ended: Ended) -> Callable[[Connection], None]:
        now = self._clock()

        def work(connection: Connection) -> None:
            from .permits import end

            end(connection, permit, ended, now)

        return work

    async def _write(self, name: str, work: Callable[[Connection], T]) -> T:
        """What `work` gives; it is done to the end, whoever waits for it."""
        return await asyncio.shield(self._started(self._store.write(name, work)))

    def _started(self, work: Awaitable[T]) -> asyncio.Future[T]:
        future = asyncio.ensure_future(work)
        self._writing.add(future)
        future.add_done_callback(self._written)
        return future

    def _written(self, future: asyncio.Future[Any]) -> None:
        self._writing.discard(future)
        if not future.cancelled():
            future.exception()  # looked at, so that nothing is said of it when nobody waits for it
