"""What is on record of an approval: what it is bound to, and how far it has come."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from .moments import EPOCH, as_moment, as_text
from .policy import Approver

if TYPE_CHECKING:
    from sqlalchemy import Row

# One that is unreadable is damaged, and counts for nothing.
State: TypeAlias = Literal["pending", "approved", "rejected", "used", "expired", "unreadable"]

# What ends by itself.
OPEN: Final = ("pending", "approved")


@dataclass(frozen=True, slots=True)
class Approval:
    """One approval. Times are UTC."""

    id: str
    subject: str
    rights: tuple[str, ...]  # those that were asked for
    verb: str
    contract_digest: str  # of the verb
    target: dict[str, Any]  # what the call is about, as its plan says
    arguments: str | None  # canonical JSON, all of it; None once it is used, rejected or expired
    arguments_sha256: str
    approver: Approver  # who was to decide
    state: State
    created_at: datetime
    expires_at: datetime  # until when the state counts
    decided_at: datetime | None
    decided_by: str | None
    used_at: datetime | None

    def told(self) -> dict[str, Any]:
        """What the caller is told, as JSON: all that it is bound to, and how long it waits."""
        return {
            "id": self.id,
            "subject": self.subject,
            "rights": list(self.rights),
            "verb": self.verb,
            "contract_digest": self.contract_digest,
            "target": self.target,
            "arguments_sha256": self.arguments_sha256,
            "expires_at": as_text(self.expires_at),
        }


def approval_of(row: Row[Any], now: datetime) -> Approval:
    """What a row says; one whose time is over has expired, whether or not that is on record yet."""
    try:
        return _approval(row, now)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _unreadable(row)


def _approval(row: Row[Any], now: datetime) -> Approval:
    expires_at = as_moment(row.expires_at)
    if row.state not in get_args(State):
        raise ValueError("There is no such state.")
    state: State = "expired" if row.state in OPEN and expires_at <= now else row.state
    arguments = _text(row.arguments) if state in OPEN else None
    if arguments is not None:
        json.loads(arguments)  # whoever decides has to be able to see them
    rights, target = json.loads(row.rights), json.loads(row.target)
    if not isinstance(rights, list) or not isinstance(target, dict):
        raise TypeError("Rights are a list, and a target is an object.")
    return Approval(
        id=row.id,
        subject=_text(row.subject),
        rights=tuple(map(_text, rights)),
        verb=_text(row.verb),
        contract_digest=_text(row.contract_digest),
        target=target,
        arguments=arguments,
        arguments_sha256=_text(row.arguments_sha256),
        approver=row.approver,
        state=state,
        created_at=as_moment(row.created_at),
        expires_at=expires_at,
        decided_at=None if row.decided_at is None else as_moment(row.decided_at),
        decided_by=row.decided_by,
        used_at=None if row.used_at is None else as_moment(row.used_at),
    )


def _unreadable(row: Row[Any]) -> Approval:
    return Approval(
        id=str(row.id),
        subject="",
        rights=(),
        verb="",
        contract_digest="",
        target={},
        arguments=None,
        arguments_sha256="",
        approver="operator",
        state="unreadable",
        created_at=EPOCH,
        expires_at=EPOCH,
        decided_at=None,
        decided_by=None,
        used_at=None,
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("It is no text.")
    return value
