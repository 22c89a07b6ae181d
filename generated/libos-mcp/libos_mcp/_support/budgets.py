"""What subjects have used of their budgets: reserved before a call begins, settled when it has ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import BigInteger, Connection, bindparam, delete, insert, select, update

from .governance_tables import BUDGETS
from .moments import as_moment, as_number, as_text
from .policy import Budget
from .quoting import quoted
from .refusal import Refusal

# More than anybody can use; what a column holds at most is still far away from the sum of two of these.
_UNBOUNDED: Final = 1 << 61

_SUBJECT = BUDGETS.c.subject == bindparam("owner")
_WINDOW = BUDGETS.c.started_at == bindparam("window", type_=BigInteger)
_COST = bindparam("cost", type_=BigInteger)
_FORGET = delete(BUDGETS).where(_SUBJECT)
_BEGIN = insert(BUDGETS)
_STANDING = select(BUDGETS.c.started_at, BUDGETS.c.calls, BUDGETS.c.bytes).where(_SUBJECT)
_RESERVE = (
    update(BUDGETS)
    .where(
        _SUBJECT,
        # A window that begins far in the future is of a clock that was set back since.
        BUDGETS.c.started_at > bindparam("earliest", type_=BigInteger),
        BUDGETS.c.started_at < bindparam("latest", type_=BigInteger),
        BUDGETS.c.calls < bindparam("most_calls", type_=BigInteger),
        BUDGETS.c.bytes + _COST <= bindparam("most_bytes", type_=BigInteger),
    )
    .values(calls=BUDGETS.c.calls + 1, bytes=BUDGETS.c.bytes + _COST)
    .returning(BUDGETS.c.started_at)
)
_SETTLE = update(BUDGETS).where(_SUBJECT, _WINDOW).values(bytes=BUDGETS.c.bytes + _COST)
_RELEASE = update(BUDGETS).where(_SUBJECT, _WINDOW).values(calls=BUDGETS.c.calls - 1, bytes=BUDGETS.c.bytes + _COST)


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one call may use of a window."""

    subject: str
    window: int  # when it began
    bytes: int


def reserve(connection: Connection, subject: str, budget: Budget, cost: int, now: datetime) -> Reservation | Refusal:
    """One call of at most `cost` bytes, or the refusal why it goes beyond the budget; then nothing is charged."""
    moment, per = as_number(now), timedelta(seconds=budget.per) // timedelta(microseconds=1)
    most_calls = _UNBOUNDED if budget.calls is None else budget.calls
    most_bytes = _UNBOUNDED if budget.bytes is None else budget.bytes
    if cost > most_bytes or most_calls < 1:
        return _beyond(subject)
    values: dict[str, Any] = {"owner": subject, "cost": cost, "most_calls": most_calls, "most_bytes": most_bytes}
    window = connection.scalar(_RESERVE, {**values, "earliest": moment - per, "latest": moment + per})
    if window is not None:
        return Reservation(subject, window, cost)
    standing = connection.execute(_STANDING, {"owner": subject}).first()
    if standing is not None and abs(moment - standing.started_at) < per:
        return _used_up(subject, as_moment(standing.started_at + per))
    connection.execute(_FORGET, {"owner": subject})
    connection.execute(_BEGIN, {"subject": subject, "started_at": moment, "calls": 1, "bytes": cost})
    return Reservation(subject, moment, cost)


def settle(connection: Connection, reservation: Reservation, used: int) -> None:
    """Charge the bytes that were used instead of those that were reserved."""
    if used != reservation.bytes:
        connection.execute(_SETTLE, _named(reservation, used - reservation.bytes))


def release(connection: Connection, reservation: Reservation) -> None:
    """Charge nothing for a call that never began."""
    connection.execute(_RELEASE, _named(reservation, -reservation.bytes))


def _named(reservation: Reservation, cost: int) -> dict[str, Any]:
    """A window that is over by now is no longer there, and nothing is changed."""
    return {"owner": reservation.subject, "window": reservation.window, "cost": cost}


def _used_up(subject: str, end: datetime) -> Refusal:
    return Refusal("busy", f"The budget of {quoted(subject)} is used up until {as_text(end)}.")


def _beyond(subject: str) -> Refusal:
    return Refusal("busy", f"One such call can take more than the whole budget of {quoted(subject)}.")
