"""Accounts with their approval policy, and the bearer keys that act for them."""

import hashlib
import secrets
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from .handles import new_account_id

SCOPES = ("compute:quote", "compute:run", "compute:read", "compute:approve", "compute:introspect")
Policy = Literal["approve", "open"]  # whether every quote has to be approved before it is run

_KEY_BYTES = 32  # random ones, far more than anyone can try out
_KEY_PREFIX = "core_"  # lets scanners find keys that leak


class UnknownAccountError(Exception):
    """There is no account with this id."""


class KnownKeyError(Exception):
    """There is a key with this SHA-256 already."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a key stands for. `expires_at` is in seconds since 1970; None: never."""

    subject: str
    account: str
    scopes: frozenset[str]
    expires_at: int | None


def add_account(db: sqlite3.Connection, policy: Policy, now: int) -> str:
    """The id of a new account."""
    account = new_account_id()
    db.execute("INSERT INTO accounts VALUES (?, ?, ?)", (account, policy, now))
    return account


def new_key() -> str:
    """A bearer key of 256 random bits."""
    return _KEY_PREFIX + secrets.token_urlsafe(_KEY_BYTES)


def sha256_of(key: str) -> str:
    """The 64 hex digits by which a key is known."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def add_key(db: sqlite3.Connection, sha256: str, caller: Caller, now: int) -> None:
    """Let the key with this SHA-256 act as `caller`. Raises UnknownAccountError, KnownKeyError."""
    if db.execute("SELECT 1 FROM accounts WHERE id = ?", (caller.account,)).fetchone() is None:
        raise UnknownAccountError(caller.account)
    if db.execute("SELECT 1 FROM keys WHERE sha256 = ?", (sha256,)).fetchone() is not None:
        raise KnownKeyError
    row = (sha256, caller.account, caller.subject, _joined(caller.scopes), caller.expires_at, now)
    db.execute("INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?)", row)


def revoke_keys(db: sqlite3.Connection, account: str, subject: str) -> int:
    """End all keys of a subject of an account; how many there were."""
    return db.execute("DELETE FROM keys WHERE account = ? AND subject = ?", (account, subject)).rowcount


def caller_of(db: sqlite3.Connection, key: str, now: int) -> Caller | None:
    """Who `key` stands for; None when it is not known, or not any more."""
    row = db.execute("SELECT * FROM keys WHERE sha256 = ?", (sha256_of(key),)).fetchone()
    if row is None or (row["expires_at"] is not None and now >= row["expires_at"]):
        return None
    return Caller(row["subject"], row["account"], frozenset(row["scopes"].split()), row["expires_at"])


def _joined(scopes: Iterable[str]) -> str:
    return " ".join(sorted(scopes))
