"""Batches: the jobs of many quotes, started all or none."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import prices
from .accounts import Caller
from .canonical import canonical_json, digest_of
from .clock import written
from .core import Asked, Core, Reply, created
from .handles import new_handle
from .jobs import Job, jobs_of_batch, order
from .once import note, recalled
from .quotes import Quote, find_quote
from .refusal import Refusal, conflict, not_found
from .shapes import BatchRequest


def start_batch(core: Core, asked: Asked[BatchRequest]) -> Reply:
    """Start the jobs of these quotes, or tell of the batch that was made of them before. Raises Refusal."""
    with core.store.write() as db:
        known = recalled(db, "batches", asked)
        quotes = _found(db, asked.caller.account, asked.body.quotes)
        before = known or _batch_of(db, quotes)
        handle = before or _start(db, asked.caller, quotes, core.now())
        if known is None:
            note(db, "batches", asked, handle)
        content = _shown(db, asked.caller.account, handle)
    core.job_started.set()
    return created(content, f"/batches/{handle}", new=before is None)


def read_batch(core: Core, caller: Caller, handle: str) -> Reply:
    """How a batch stands, and its items: each quote with its job, in their order."""
    with core.store.read() as db:
        content = _shown(db, caller.account, handle)
        items = [{"quote": job.quote, "job": job.standing()} for job in jobs_of_batch(db, handle)]
    return Reply({**content, "items": items})


def _found(db: sqlite3.Connection, account: str, handles: list[str]) -> list[Quote]:
    quotes = []
    for position, handle in enumerate(handles):
        with _about(position):
            quotes.append(find_quote(db, account, handle))
    return quotes


def _batch_of(db: sqlite3.Connection, quotes: list[Quote]) -> str | None:
    """The batch that was made of exactly these quotes. Raises Refusal when any of them was run otherwise."""
    used = [position for position, quote in enumerate(quotes) if quote.job is not None]
    if not used:
        return None
    batch = quotes[used[0]].batch
    if batch is not None and {job.quote for job in jobs_of_batch(db, batch)} == {quote.handle for quote in quotes}:
        return batch
    with _about(used[0]):
        raise conflict()


def _start(db: sqlite3.Connection, caller: Caller, quotes: list[Quote], now: int) -> str:
    batch = new_handle("bt")
    record = canonical_json(
        {
            "batch": batch,
            "account": caller.account,
            "subject": caller.subject,
            "items": [{"quote": quote.handle, "terms_digest": quote.digest} for quote in quotes],
            "created_at": written(now),
        }
    )
    row = (batch, caller.account, record.decode("ascii"), digest_of(record), now)
    db.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?)", row)
    for position, quote in enumerate(quotes):
        with _about(position):
            order(db, caller, quote, now, batch)
    return batch


def _shown(db: sqlite3.Connection, account: str, handle: str) -> dict[str, Any]:
    row = db.execute("SELECT * FROM batches WHERE handle = ? AND account = ?", (handle, account)).fetchone()
    if row is None:
        raise not_found()
    jobs = jobs_of_batch(db, handle)
    state = _state(jobs)
    return {
        "handle": handle,
        "digest": row["digest"],
        "state": state,
        "p_next_action": "read_result" if state in ("succeeded", "failed") else "wait",
        "account": account,
        "price": prices.shown(sum(job.cents for job in jobs)),
        "created_at": written(row["created_at"]),
        "record": json.loads(row["record"]),
    }


def _state(jobs: list[Job]) -> str:
    """Accepted while nothing has begun, running until all have ended, then failed if any has."""
    states = {job.state for job in jobs}
    if states == {"accepted"}:
        return "accepted"
    if not states.isdisjoint(("accepted", "running")):
        return "running"
    return "failed" if "failed" in states else "succeeded"


@contextmanager
def _about(position: int) -> Iterator[None]:
    """What is refused inside is refused about the quote at this position."""
    try:
        yield
    except Refusal as refusal:
        raise refusal.at(f"body.quotes.{position}") from None
