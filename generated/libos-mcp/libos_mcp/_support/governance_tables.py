"""The tables of what governs calls: approvals, the record of decisions and calls, and budgets."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    literal_column,
)

from .store import Component

_METADATA = MetaData()

# Times are microseconds since 1970, `rights` and `target` are JSON. `expires_at` is until when the state counts.
APPROVALS: Final = Table(
    "approvals",
    _METADATA,
    Column("id", Text, primary_key=True),
    Column("subject", Text, nullable=False),
    Column("rights", Text, nullable=False),
    Column("verb", Text, nullable=False),
    Column("contract_digest", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("arguments", Text),  # canonical JSON; nothing once it is used, rejected or expired
    Column("arguments_sha256", Text, nullable=False),
    Column("bound", Text, nullable=False),
    Column("approver", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("decided_at", BigInteger),
    Column("decided_by", Text),
    Column("used_at", BigInteger),
    Index("approvals_by_bound", "bound"),
    Index("approvals_by_expiry", "state", "expires_at"),
)

# A row for each decision, each call, each decided approval, and each change of what is registered.
AUDIT: Final = Table(
    "audit",
    _METADATA,
    # SQLite counts by itself only in a column of exactly this type.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("correlation_id", Text),
    Column("subject", Text),
    Column("verb", Text),
    Column("outcome", Text),  # of what was decided; a call has a status
    Column("reason", Text),  # why it was denied; callers are never told
    Column("actor", Text),  # who decided an approval, or changed what is registered
    Column("rights", Text),
    Column("target", Text),
    Column("arguments_sha256", Text),
    Column("approval_id", Text),
    Column("status", Text),
    Column("sent", Boolean),
    Column("response_bytes", BigInteger),
    Column("duration_ms", BigInteger),
    Column("refusal", Text),
    Column("error_type", Text),
    Column("preview", Text),
    Column("owner", Text),  # the process that carries a call out
    Column("ends_by", BigInteger),  # when a call has surely ended
)
# Written as constants, so that databases see that the statements about open calls are those of the index.
IS_OPEN: Final = (AUDIT.c.kind == literal_column("'call'")) & (AUDIT.c.status == literal_column("'pending'"))
Index("audit_open_calls", AUDIT.c.correlation_id, sqlite_where=IS_OPEN, postgresql_where=IS_OPEN)

# What each subject has used since its window began; both counts hold what is reserved.
BUDGETS: Final = Table(
    "budgets",
    _METADATA,
    Column("subject", Text, primary_key=True),
    Column("started_at", BigInteger, nullable=False),
    Column("calls", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
)


def _make_tables(connection: Connection) -> None:
    _METADATA.create_all(connection, checkfirst=False)


# A later version of the tables is a further step, and then this one makes the tables as they were, from a copy.
COMPONENT: Final = Component("governance", (_make_tables,))
