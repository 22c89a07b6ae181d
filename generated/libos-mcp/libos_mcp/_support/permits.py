"""How governed calls begin and end: all that is put on record of that, each in one transaction of the store."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection

from . import approvals, audit, budgets
from .backend import Evidence
from .call_owner import own_name
from .consent_question import question_of
from .governed import REJECTED, PendingError, StalePlanError
from .moments import as_number
from .refusal import Refusal
from .rulings import Ruling, denial, texts_of

# What is cut short at its deadline has still to put things in order.
_GRACE: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Permit:
    """A call that may run: what was used and reserved for it."""

    ruling: Ruling
    approval_id: str | None
    reservation: budgets.Reservation | None
    began: float  # a time of the monotonic clock

    @property
    def correlation_id(self) -> str:
        """What the record calls the call."""
        return self.ruling.plan.call.correlation_id


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call has ended: in words, with an error or without, and what it is known to have brought."""

    outcome: str
    error: Refusal | None
    result_bytes: int
    evidence: Evidence


def begin(connection: Connection, ruling: Ruling, seconds: float, now: datetime) -> Permit | Refusal:
    """The permit to start, with all that goes with it on record; or a refusal, which is on record as well.

    The call has `seconds` left. Raises StalePlanError when what its plan rests on is no longer so.
    """
    guard = ruling.plan.guard
    if guard is not None and not guard(connection):
        raise StalePlanError
    approval_id = None
    if ruling.asked:
        approval_id = approvals.use(connection, ruling, now)
        if approval_id is None:
            return _unapproved(connection, ruling, now)
    reservation = None
    if ruling.budget is not None:
        reserved = budgets.reserve(connection, ruling.subject, ruling.budget, ruling.cost, now)
        if isinstance(reserved, Refusal):
            if approval_id is not None:
                approvals.give_back(connection, approval_id, ruling.arguments, now)
            return refuse(connection, ruling, reserved, now, approval_id)
        reservation = reserved
    decision = _decision(ruling, now, "allow", approval_id)
    call = {
        **decision,
        "kind": "call",
        "outcome": None,
        "status": "pending",
        "sent": False,
        "owner": own_name(),
        "ends_by": as_number(now + timedelta(seconds=max(seconds, 0)) + _GRACE),
    }
    audit.add(connection, decision, call)
    return Permit(ruling, approval_id, reservation, time.monotonic())


def end(connection: Connection, permit: Permit, ended: Ended, now: datetime) -> None:
    """Settle a call. Where nothing outside was contacted, all that was used for it is given back."""
    evidence = ended.evidence
    status = ended.outcome if evidence.contacted else "not_started"
    seconds = time.monotonic() - permit.began
    if not audit.end(connection, permit.correlation_id, status, evidence, ended.error, seconds):
        return
    if not evidence.contacted:
        _undo(connection, permit, now)
    elif permit.reservation is not None and (used := _used(ended)) is not None:
        budgets.settle(connection, permit.reservation, used)


def refuse(
    connection: Connection,
    ruling: Ruling,
    refusal: Refusal,
    now: datetime,
    approval_id: str | None = None,
    reason: str | None = None,
) -> Refusal:
    """Put a refusal of a call on record, and give it back; `reason` is why, where that is not the ruling."""
    outcome = {"denied": "deny", "pending": "pending"}.get(refusal.kind, "refused")
    decision = _decision(ruling, now, outcome, approval_id)
    audit.add(connection, {**decision, "reason": reason or ruling.reason, "refusal": refusal.kind})
    return refusal


def sweep(connection: Connection, now: datetime) -> None:
    """Let go of what is over: approvals and their arguments, and old rows of the record."""
    approvals.sweep(connection, now)
    audit.sweep(connection, now)


def _unapproved(connection: Connection, ruling: Ruling, now: datetime) -> Refusal:
    asked = approvals.ask(connection, ruling, now)
    if isinstance(asked, Refusal):
        return refuse(connection, ruling, asked, now)
    if isinstance(asked, approvals.Rejection):
        return refuse(connection, ruling, denial(ruling), now, asked.approval_id, REJECTED)
    return refuse(connection, ruling, _pending(ruling, asked), now, asked.id)


def _pending(ruling: Ruling, approval: approvals.Approval) -> PendingError:
    call, told = ruling.plan.call, approval.told()
    question = None
    if ruling.approver == "client" and call.consent is not None:
        arguments = call.arguments if ruling.plan.arguments is None else ruling.plan.arguments
        question = question_of(told, arguments, call.registry.server.distribution)
    sentence = "This has to be approved first; once it is, send the very same call again."
    return PendingError(sentence, {"approval": told}, question)


def _undo(connection: Connection, permit: Permit, now: datetime) -> None:
    if permit.approval_id is not None:
        approvals.give_back(connection, permit.approval_id, permit.ruling.arguments, now)
    if permit.reservation is not None:
        budgets.release(connection, permit.reservation)


def _used(ended: Ended) -> int | None:
    """The bytes that a call has brought; None when nobody knows, and then it is charged with all it could."""
    evidence = ended.evidence
    if evidence.response_bytes is not None:
        return evidence.response_bytes
    # Where the backend tells nothing of how it went, the reply is all there is.
    return ended.result_bytes if evidence.status is None and ended.outcome in ("ok", "refused") else None


def _decision(ruling: Ruling, now: datetime, outcome: str, approval_id: str | None) -> dict[str, Any]:
    """The row of a decision on a call."""
    plan = ruling.plan
    return audit.row(
        "decision",
        now,
        outcome=outcome,
        approval_id=approval_id,
        correlation_id=plan.call.correlation_id,
        subject=ruling.subject,
        verb=plan.call.verb.name,
        rights=list(texts_of(ruling.rights)),
        target=dict(plan.target),
        arguments_sha256=ruling.arguments_sha256,
        preview=ruling.arguments[: audit.PREVIEW_CHARACTERS] if ruling.previews else None,
    )
