"""The record of what was decided, called and changed. Every function is a part of a transaction of the store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any, Final

from sqlalchemy import BigInteger, Boolean, Connection, Integer, Row, bindparam, delete, func, insert, select, update

from .approval_record import Approval
from .backend import Evidence
from .call_owner import has_ended
from .fingerprint import canonical_json
from .governance_tables import AUDIT, IS_OPEN
from .moments import as_moment, as_number, as_text, readable_moment
from .refusal import Refusal

KEPT_FOR: Final = timedelta(days=90)
PREVIEW_CHARACTERS: Final = 512
UNREADABLE: Final = "unreadable"  # the kind of a row that is damaged; nothing else of it is told

_SWEPT_AT_A_TIME: Final = 1000
# What only says how a call is known again.
_INTERNAL: Final = ("owner", "ends_by")
_COLUMNS: Final = tuple(column.name for column in AUDIT.columns)
_EMPTY: Final[Mapping[str, Any]] = dict.fromkeys(_COLUMNS[1:])

_ADD = insert(AUDIT)
_END = (
    update(AUDIT)
    .where(AUDIT.c.correlation_id == bindparam("correlation"), IS_OPEN)
    .values(
        status=bindparam("ending"),
        sent=bindparam("was_sent", type_=Boolean),
        response_bytes=bindparam("size", type_=BigInteger),
        duration_ms=bindparam("duration", type_=BigInteger),
        refusal=bindparam("kind_of_refusal"),
        error_type=bindparam("type_of_error"),
    )
)
_AFTER = select(AUDIT).where(AUDIT.c.id > bindparam("after", type_=BigInteger)).order_by(AUDIT.c.id)
_NEWEST = select(AUDIT).order_by(AUDIT.c.id.desc())
_LIMIT = bindparam("limit", type_=Integer)
_OF_SUBJECT = AUDIT.c.subject == bindparam("whose")
_OLDEST = select(AUDIT.c.id, AUDIT.c.at).order_by(AUDIT.c.id).limit(_SWEPT_AT_A_TIME)
# The last row stays whatever its age, so that no id comes twice.
_LAST = select(func.max(AUDIT.alias("kept").c.id)).scalar_subquery()
_FORGET = delete(AUDIT).where(AUDIT.c.id <= bindparam("last", type_=BigInteger), AUDIT.c.id < _LAST)


def add(connection: Connection, *rows: Mapping[str, Any]) -> None:
    """Put rows on record, in this order."""
    connection.execute(_ADD, list(rows))


def row(kind: str, now: datetime, **values: Any) -> dict[str, Any]:
    """A row with all its columns; `rights` and `target` are JSON values."""
    for name in ("rights", "target"):
        if name in values:
            values[name] = canonical_json(values[name])
    return {**_EMPTY, "kind": kind, "at": as_number(now), **values}


def approval_row(approval: Approval, now: datetime) -> dict[str, Any]:
    """The row of a decision that somebody has made on an approval."""
    return row(
        "approval",
        now,
        subject=approval.subject,
        verb=approval.verb,
        outcome=approval.state,
        actor=approval.decided_by,
        rights=list(approval.rights),
        target=approval.target,
        arguments_sha256=approval.arguments_sha256,
        approval_id=approval.id,
    )


def registry_row(change: str, target: Mapping[str, Any], by: str, now: datetime) -> dict[str, Any]:
    """The row of a change of what is registered: `seed`, `add`, `replace`, `remove` or `confirm`; `target` says of what."""
    return row("registry", now, outcome=change, actor=by, target=dict(target))


def end(
    connection: Connection, correlation_id: str, status: str, evidence: Evidence, error: Refusal | None, seconds: float
) -> bool:
    """Put on record how a call has ended. True for the first end, which stays."""
    values = {
        "correlation": correlation_id,
        "ending": status,
        "was_sent": evidence.sent,
        "size": evidence.response_bytes,
        "duration": round(seconds * 1000),
        "kind_of_refusal": None if error is None else error.kind,
        "type_of_error": evidence.error_type,  # never what a refusal tells: its details may be those of an upstream
    }
    return connection.execute(_END, values).rowcount == 1


def lines(
    connection: Connection, now: datetime, *, subject: str | None = None, after: int | None = None, limit: int
) -> list[dict[str, Any]]:
    """Rows as JSON objects, the oldest first: the first ones after the id `after`, or the newest.

    A call that was under way when its process ended has the status `unknown`.
    """
    statement = (_NEWEST if after is None else _AFTER).limit(_LIMIT)
    values: dict[str, Any] = {"limit": limit, **({} if after is None else {"after": after})}
    if subject is not None:
        statement, values = statement.where(_OF_SUBJECT), {**values, "whose": subject}
    found = connection.execute(statement, values).all()
    return list(_told(found if after is not None else found[::-1], now))


def sweep(connection: Connection, now: datetime) -> None:
    """Forget rows that are older than 90 days; of very many, some remain for the next time."""
    moment = as_number(now - KEPT_FOR)
    old = [entry.id for entry in takewhile(lambda entry: _is_over(entry.at, moment), connection.execute(_OLDEST))]
    if old:
        connection.execute(_FORGET, {"last": max(old)})


def _is_over(at: Any, moment: int) -> bool:
    """Whether a row can go with all before it; a moment that cannot be read keeps nobody up."""
    return readable_moment(at) is None or at < moment


def _told(rows: list[Row[Any]] | Any, now: datetime) -> Iterator[dict[str, Any]]:
    ended: dict[str | None, bool | None] = {}
    for entry in rows:
        try:
            values = _read(entry, now, ended)
        except (TypeError, ValueError, OverflowError, RecursionError):
            values = {**_EMPTY, "id": entry.id, "kind": UNREADABLE}
        yield {name: values[name] for name in _COLUMNS if name not in _INTERNAL}


def _read(entry: Row[Any], now: datetime, ended: dict[str | None, bool | None]) -> dict[str, Any]:
    values = dict(zip(_COLUMNS, entry, strict=True))
    if any(isinstance(value, bytes) for value in values.values()):
        raise TypeError("No column has bytes.")
    values["at"] = as_text(as_moment(values["at"]))
    for name in ("rights", "target"):
        values[name] = None if values[name] is None else json.loads(values[name])
    if values["status"] == "pending":
        values["status"] = _of_open(values, as_number(now), ended)
    return values


def _of_open(values: Mapping[str, Any], now: int, ended: dict[str | None, bool | None]) -> str:
    """The status of a call without an end: unknown when nobody is left who could put one on record."""
    owner = values["owner"]
    if owner not in ended:
        ended[owner] = has_ended(owner)
    over = ended[owner]
    return "unknown" if over or (over is None and now > (values["ends_by"] or 0)) else "pending"
