"""Approvals of single calls: asked for, decided, and used once. Every function is a part of a transaction of the store."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import BigInteger, Connection, Integer, bindparam, delete, func, insert, null, select, update

from . import audit
from .approval_record import OPEN, Approval, approval_of
from .fingerprint import canonical_json
from .governance_tables import APPROVALS
from .moments import as_number
from .quoting import quoted
from .refusal import Refusal
from .rulings import Ruling, texts_of
from .wiping import wiped

__all__ = [
    "Approval",
    "ApprovalError",
    "any_over",
    "ask",
    "decide",
    "find",
    "give_back",
    "pending",
    "recent",
    "sweep",
    "use",
]

PENDING_FOR: Final = timedelta(minutes=15)
DECIDED_FOR: Final = timedelta(minutes=10)
KEPT_FOR: Final = timedelta(days=90)  # without arguments
MOST_PENDING: Final = 100  # of one subject

_SHORTEST: Final = 6  # characters of an id that can stand for it
_RANDOM_BYTES: Final = 10
_ID: Final = re.compile(r"appr_[0-9a-f]*")

_NOW = bindparam("now", type_=BigInteger)
_ONE = APPROVALS.c.id == bindparam("approval")
_LIMIT = bindparam("limit", type_=Integer)
_STILL = APPROVALS.c.expires_at > _NOW
_OF_CALL = APPROVALS.c.bound == bindparam("binding")
_SAME = APPROVALS.alias("same")
_USABLE = (
    select(_SAME.c.id)
    .where(_SAME.c.bound == bindparam("binding"), _SAME.c.state == "approved", _SAME.c.expires_at > _NOW)
    .order_by(_SAME.c.expires_at)
    .limit(1)
    .scalar_subquery()
)
# Only what is still approved is used, whoever comes first.
_USE = (
    update(APPROVALS)
    .where(APPROVALS.c.id == _USABLE, APPROVALS.c.state == "approved")
    .values(state="used", used_at=_NOW, arguments=null())
    .returning(APPROVALS)
)
_GIVE_BACK = (
    update(APPROVALS)
    .where(_ONE, APPROVALS.c.state == "used", _STILL)
    .values(state="approved", used_at=null(), arguments=bindparam("content"))
)
_EXPIRE = (
    update(APPROVALS)
    .where(APPROVALS.c.state.in_(OPEN), APPROVALS.c.expires_at <= _NOW)
    .values(state="expired", arguments=null())
)
_OVER = select(APPROVALS.c.id).where(APPROVALS.c.state.in_(OPEN), APPROVALS.c.expires_at <= _NOW).limit(1)
_FORGET = delete(APPROVALS).where(APPROVALS.c.state.not_in(OPEN), APPROVALS.c.expires_at <= _NOW)
_DECIDED = select(APPROVALS).where(_OF_CALL, APPROVALS.c.state.in_(("pending", "rejected")), _STILL)
_WAITING = (
    select(func.count())
    .select_from(APPROVALS)
    .where(APPROVALS.c.state == "pending", _STILL, APPROVALS.c.subject == bindparam("asking"))
)
_ADD = insert(APPROVALS)
_APPROVE = (
    update(APPROVALS)
    .where(_ONE, APPROVALS.c.state == "pending", _STILL)
    .values(
        state="approved",
        decided_at=_NOW,
        decided_by=bindparam("decider"),
        expires_at=bindparam("until", type_=BigInteger),
    )
)
# What is approved can be taken back until it is used.
_REJECT = (
    update(APPROVALS)
    .where(_ONE, APPROVALS.c.state.in_(OPEN), _STILL)
    .values(
        state="rejected",
        decided_at=_NOW,
        decided_by=bindparam("decider"),
        expires_at=bindparam("until", type_=BigInteger),
        arguments=null(),
    )
)
_STARTING = (
    select(APPROVALS)
    .where(func.substr(APPROVALS.c.id, 1, bindparam("length", type_=Integer)) == bindparam("start"))
    .limit(2)
)
_PENDING = select(APPROVALS).where(APPROVALS.c.state == "pending", _STILL).order_by(APPROVALS.c.created_at)
_RECENT = select(APPROVALS).order_by(APPROVALS.c.created_at.desc()).limit(_LIMIT)


class ApprovalError(Exception):
    """An approval cannot be found or decided; the text says why, in one sentence."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Somebody has rejected the very call."""

    approval_id: str


def pending(connection: Connection, now: datetime) -> list[Approval]:
    """Those that wait for a decision, the oldest first."""
    return [approval_of(row, now) for row in connection.execute(_PENDING, {"now": as_number(now)})]


def recent(connection: Connection, now: datetime, limit: int) -> list[Approval]:
    """The newest of all, the oldest of them first."""
    return [approval_of(row, now) for row in connection.execute(_RECENT, {"limit": limit})][::-1]


def find(connection: Connection, text: str, now: datetime) -> Approval:
    """The approval with an id, or with the only one that begins with `text`. Raises ApprovalError."""
    if len(text) < _SHORTEST or not _ID.fullmatch(text):
        raise ApprovalError(
            f"{quoted(text)} is no id of an approval, nor the first {_SHORTEST} or more characters of one."
        )
    rows = connection.execute(_STARTING, {"length": len(text), "start": text}).all()
    if not rows:
        raise ApprovalError(f"There is no approval {quoted(text)}.")
    if len(rows) > 1:
        raise ApprovalError(f"Several approvals begin with {quoted(text)}; give more of the id.")
    return approval_of(rows[0], now)


def decide(connection: Connection, text: str, approved: bool, by: str, now: datetime) -> Approval:
    """Approve or reject what waits under an id, and put on record that `by` did. Raises ApprovalError.

    What is approved already can still be rejected, until it is used.
    """
    found = find(connection, text, now)
    if found.state == "unreadable":
        raise ApprovalError(f"The approval {quoted(found.id)} cannot be read, so nobody can decide it.")
    values = {
        "approval": found.id,
        "decider": by,
        "now": as_number(now),
        "until": as_number(now + DECIDED_FOR),
    }
    if connection.execute(_APPROVE if approved else _REJECT, values).rowcount != 1:
        raise ApprovalError(f"The approval {quoted(found.id)} is {_STATES[found.state]}.")
    if not approved:
        wiped(connection)
    decided = find(connection, found.id, now)
    audit.add(connection, audit.approval_row(decided, now))
    return decided


def sweep(connection: Connection, now: datetime) -> None:
    """Expire what has waited too long, wipe the arguments of that, and forget what was settled long ago."""
    _expire(connection, now)
    connection.execute(_FORGET, {"now": as_number(now - KEPT_FOR)})


def any_over(connection: Connection, now: datetime) -> bool:
    """Whether `sweep` has anything to expire."""
    return connection.execute(_OVER, {"now": as_number(now)}).first() is not None


def use(connection: Connection, ruling: Ruling, now: datetime) -> str | None:
    """Use up an approval of this very call: its id, or None when there is none. Nobody else can use it then."""
    row = connection.execute(_USE, {"binding": ruling.bound, "now": as_number(now)}).first()
    if row is None:
        return None
    wiped(connection)
    found = approval_of(row, now)
    return None if found.state == "unreadable" else found.id


def give_back(connection: Connection, approval_id: str, arguments: str, now: datetime) -> None:
    """Let an approval be used after all, if it still counts: nothing came of the call that it was used for."""
    connection.execute(_GIVE_BACK, {"approval": approval_id, "content": arguments, "now": as_number(now)})


def ask(connection: Connection, ruling: Ruling, now: datetime) -> Approval | Rejection | Refusal:
    """What stands in the way of a call that is not approved: an approval that waits, or why there can be none."""
    _expire(connection, now)
    standing = connection.execute(_DECIDED, {"binding": ruling.bound, "now": as_number(now)}).all()
    if rejected := next((row for row in standing if row.state == "rejected"), None):
        return Rejection(rejected.id)
    for row in standing:
        if (found := approval_of(row, now)).state == "pending":
            return found
    waiting = connection.scalar(_WAITING, {"asking": ruling.subject, "now": as_number(now)}) or 0
    if waiting >= MOST_PENDING:
        return Refusal("busy", f"Too many calls of {quoted(ruling.subject)} wait to be approved.")
    values = _values(ruling, now)
    connection.execute(_ADD, values)
    return find(connection, values["id"], now)


def _expire(connection: Connection, now: datetime) -> None:
    if connection.execute(_EXPIRE, {"now": as_number(now)}).rowcount:
        wiped(connection)


_STATES: Final[Mapping[str, str]] = {
    "pending": "no longer pending",
    "approved": "approved already",
    "rejected": "rejected already",
    "used": "used already",
    "expired": "expired",
}


def _values(ruling: Ruling, now: datetime) -> dict[str, Any]:
    verb = ruling.plan.call.verb
    return {
        "id": f"appr_{secrets.token_hex(_RANDOM_BYTES)}",
        "subject": ruling.subject,
        "rights": canonical_json(list(texts_of(ruling.asked))),
        "verb": verb.name,
        "contract_digest": verb.digest,
        "target": canonical_json(dict(ruling.plan.target)),
        "arguments": ruling.arguments,
        "arguments_sha256": ruling.arguments_sha256,
        "bound": ruling.bound,
        "approver": ruling.approver,
        "state": "pending",
        "created_at": as_number(now),
        "expires_at": as_number(now + PENDING_FOR),
        "decided_at": None,
        "decided_by": None,
        "used_at": None,
    }
