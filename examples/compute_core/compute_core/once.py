"""Idempotency keys: the same request under the same key makes nothing twice, also when its reply was lost.

What was made is noted in the transaction that makes it, so there is never one without the other, and a refusal,
which makes nothing, is never noted.
"""

import sqlite3

from .canonical import canonical_json, digest_of
from .core import Asked
from .refusal import conflict
from .shapes import Strict


def recalled(db: sqlite3.Connection, operation: str, asked: Asked[Strict]) -> str | None:
    """The handle of what was made under the key of this request. Raises Refusal when that was another request."""
    if asked.key is None:
        return None
    row = db.execute(
        "SELECT body_digest, handle FROM requests WHERE account = ? AND operation = ? AND key_digest = ?",
        (asked.caller.account, operation, digest_of(asked.key.encode("ascii"))),
    ).fetchone()
    if row is None:
        return None
    if row["body_digest"] != _body_digest(asked):
        raise conflict()
    return str(row["handle"])


def note(db: sqlite3.Connection, operation: str, asked: Asked[Strict], handle: str) -> None:
    """Note what was made for this request, if it has a key."""
    if asked.key is None:
        return
    row = (asked.caller.account, operation, digest_of(asked.key.encode("ascii")), _body_digest(asked), handle)
    db.execute("INSERT INTO requests VALUES (?, ?, ?, ?, ?)", row)


def _body_digest(asked: Asked[Strict]) -> str:
    # The account is the caller's, said or not, so saying it makes no other request.
    meant = asked.body.model_dump(exclude_unset=True, exclude={"account_id"})
    return digest_of(canonical_json(meant))
