"""Quotes: the price of a job, and terms that are signed, hold for a while and can be run once."""

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

from . import prices
from .accounts import Caller
from .canonical import canonical_json, digest_of
from .clock import written
from .core import Asked, Core, Reply, created
from .handles import new_handle
from .reading import unfit
from .refusal import Refusal, not_found
from .shapes import Job, QuoteRequest

_SELECT = """
SELECT quotes.*, accounts.policy, approvals.created_at AS approved_at, jobs.handle AS job, jobs.batch
FROM quotes JOIN accounts ON accounts.id = quotes.account
LEFT JOIN approvals ON approvals.quote = quotes.handle
LEFT JOIN jobs ON jobs.quote = quotes.handle
WHERE quotes.handle = ? AND quotes.account = ?
"""


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote as it stands now. `terms` is canonical JSON, `job` the handle of the job that was started from it."""

    handle: str
    account: str
    terms: str
    digest: str
    signature: str
    cents: int
    created_at: int
    expires_at: int
    policy: str
    approved_at: int | None = None
    job: str | None = None
    batch: str | None = None

    def standing(self, now: int) -> tuple[str, str]:
        """The state of the quote, and what to do next."""
        if self.job is not None:
            return "accepted", "none"
        if now >= self.expires_at:
            return "expired", "none"
        return "quoted", "approve" if self.lacks_approval else "run"

    @property
    def lacks_approval(self) -> bool:
        return self.policy == "approve" and self.approved_at is None

    def check_valid(self, now: int) -> None:
        """Raises Refusal when it is too old."""
        if now >= self.expires_at:
            raise Refusal(410, "quote_expired", next_action="quote")

    def check_startable(self, now: int) -> None:
        """Raises Refusal when a job may not be started from it: too old, or not approved."""
        self.check_valid(now)
        if self.lacks_approval:
            raise Refusal(403, "approval_required", next_action="approve")


def find_quote(db: sqlite3.Connection, account: str, handle: str) -> Quote:
    """The quote of this account with this handle. Raises Refusal `not_found`."""
    row = db.execute(_SELECT, (handle, account)).fetchone()
    if row is None:
        raise not_found()
    return Quote(**row)


def request_quote(core: Core, asked: Asked[QuoteRequest]) -> Reply:
    """Price a job and sign the terms. Raises Refusal when that is above the most it may cost."""
    job, caller, now = asked.body.job, asked.caller, core.now()
    cents = prices.price_of(job)
    _check_price(job, cents)
    with core.store.write() as db:
        (policy,) = db.execute("SELECT policy FROM accounts WHERE id = ?", (caller.account,)).fetchone()
        quote = _signed(core, caller, job, cents, now, policy)
        _insert(db, quote)
    return created(_shown(core, quote, now), f"/quotes/{quote.handle}")


def read_quote(core: Core, caller: Caller, handle: str) -> Reply:
    """The whole terms of a quote, also of one that is too old, with their signature."""
    with core.store.read() as db:
        quote = find_quote(db, caller.account, handle)
    return Reply(_shown(core, quote, core.now()))


def standing_of(quote: Quote, now: int) -> dict[str, Any]:
    """The members that replies about a quote begin with."""
    state, next_action = quote.standing(now)
    return {"handle": quote.handle, "digest": quote.digest, "state": state, "p_next_action": next_action}


def _check_price(job: Job, cents: int) -> None:
    if job.max_price is None:
        return
    most = prices.cents_of(job.max_price)
    if most is None:
        raise unfit([{"path": "body.job.max_price", "expected": f"an amount in {prices.CURRENCY}"}])
    if cents > most:
        raise Refusal(409, "price_above_max", next_action="quote", detail={"price": prices.shown(cents)})


def _signed(core: Core, caller: Caller, job: Job, cents: int, now: int, policy: str) -> Quote:
    handle, expires_at = new_handle("qt"), now + core.settings.quote_seconds
    terms = {
        "quote": handle,
        "account": caller.account,
        "subject": caller.subject,
        "job": job.model_dump(exclude_unset=True, exclude={"account_id"}),
        "price": prices.shown(cents),
        "issued_at": written(now),
        "expires_at": written(expires_at),
    }
    content = canonical_json(terms)
    return Quote(
        handle,
        caller.account,
        content.decode("ascii"),
        digest_of(content),
        core.signer.signature(content),
        cents,
        now,
        expires_at,
        policy,
    )


def _insert(db: sqlite3.Connection, quote: Quote) -> None:
    row = (
        quote.handle,
        quote.account,
        quote.terms,
        quote.digest,
        quote.signature,
        quote.cents,
        quote.created_at,
        quote.expires_at,
    )
    db.execute("INSERT INTO quotes VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def _shown(core: Core, quote: Quote, now: int) -> dict[str, Any]:
    members = {
        **standing_of(quote, now),
        "account": quote.account,
        "price": prices.shown(quote.cents),
        "created_at": written(quote.created_at),
        "expires_at": written(quote.expires_at),
        "terms": json.loads(quote.terms),
        "signature": core.signer.shown(quote.signature),
    }
    if quote.approved_at is not None:
        members["approved_at"] = written(quote.approved_at)
    if quote.job is not None:
        members["job"] = quote.job
    return members
