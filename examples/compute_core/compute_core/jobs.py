"""Jobs: started from a quote, at most one from each; how they stand and what they came to."""

import base64
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
from .once import note, recalled
from .quotes import Quote, find_quote
from .refusal import Refusal, not_found
from .shapes import RunRequest

_SELECT = "SELECT jobs.*, quotes.cents FROM jobs JOIN quotes ON quotes.handle = jobs.quote"
_NEXT_ACTIONS = {"accepted": "wait", "running": "wait", "succeeded": "read_result", "failed": "read_result"}


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it stands now. `record` is what was ordered, as canonical JSON; `result`, what it came to, as well."""

    handle: str
    account: str
    quote: str
    batch: str | None
    record: str
    digest: str
    state: str
    cents: int
    created_at: int
    finished_at: int | None
    result: bytes | None
    result_digest: str | None

    @classmethod
    def of_row(cls, row: sqlite3.Row) -> "Job":
        """From a row of `_SELECT`, which has columns for the worker as well."""
        return cls(**{name: row[name] for name in cls.__slots__})

    def standing(self) -> dict[str, Any]:
        """The members that replies about a job begin with."""
        return {
            "handle": self.handle,
            "digest": self.digest,
            "state": self.state,
            "p_next_action": _NEXT_ACTIONS[self.state],
        }

    def finished(self) -> tuple[bytes, str]:
        """The result and its digest. Raises Refusal while there is none."""
        if self.result is None or self.result_digest is None:
            raise Refusal(409, "not_ready", next_action="wait")
        return self.result, self.result_digest


def start_job(core: Core, asked: Asked[RunRequest]) -> Reply:
    """Start the job of a quote, or tell of the one that was started from it before. Raises Refusal."""
    account = asked.caller.account
    with core.store.write() as db:
        known = recalled(db, "jobs", asked)
        quote = find_quote(db, account, asked.body.quote)
        handle = quote.job or order(db, asked.caller, quote, core.now())
        if known is None:
            note(db, "jobs", asked, handle)
        job = find_job(db, account, handle)
    core.job_started.set()
    return created(_with_record(job), f"/jobs/{handle}", new=quote.job is None)


def order(db: sqlite3.Connection, caller: Caller, quote: Quote, now: int, batch: str | None = None) -> str:
    """Put a job that is to run on record; its handle. Raises Refusal when the quote may not be run."""
    quote.check_startable(now)
    handle = new_handle("jb")
    record = canonical_json(
        {
            "job": handle,
            "account": caller.account,
            "subject": caller.subject,
            "quote": quote.handle,
            "terms_digest": quote.digest,
            "batch": batch,
            "created_at": written(now),
        }
    )
    row = (handle, caller.account, quote.handle, batch, record.decode("ascii"), digest_of(record), "accepted", now)
    db.execute(
        "INSERT INTO jobs (handle, account, quote, batch, record, digest, state, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        row,
    )
    return handle


def find_job(db: sqlite3.Connection, account: str, handle: str) -> Job:
    """The job of this account with this handle. Raises Refusal `not_found`."""
    row = db.execute(f"{_SELECT} WHERE jobs.handle = ? AND jobs.account = ?", (handle, account)).fetchone()
    if row is None:
        raise not_found()
    return Job.of_row(row)


def jobs_of_batch(db: sqlite3.Connection, batch: str) -> list[Job]:
    """The jobs of a batch, in their order."""
    rows = db.execute(f"{_SELECT} WHERE jobs.batch = ? ORDER BY jobs.sequence", (batch,))
    return [Job.of_row(row) for row in rows]


def read_job(core: Core, caller: Caller, handle: str) -> Reply:
    """How a job stands."""
    with core.store.read() as db:
        job = find_job(db, caller.account, handle)
    return Reply(_with_record(job))


def read_result(core: Core, caller: Caller, handle: str) -> Reply:
    """What a job came to: its state, and the digest of its result. Raises Refusal `not_ready`."""
    with core.store.read() as db:
        job = find_job(db, caller.account, handle)
    result, digest = job.finished()
    return Reply({**_shown(job), "digest": digest, "p_next_action": "none", "size": len(result)})


def read_result_bytes(core: Core, caller: Caller, handle: str) -> Reply:
    """The result itself: exactly the bytes that its digest is of. Raises Refusal `not_ready`."""
    with core.store.read() as db:
        job = find_job(db, caller.account, handle)
    result, digest = job.finished()
    return Reply(result, headers={"Repr-Digest": _repr_digest(digest)})


def _shown(job: Job) -> dict[str, Any]:
    members = {
        **job.standing(),
        "account": job.account,
        "quote": job.quote,
        "price": prices.shown(job.cents),
        "created_at": written(job.created_at),
    }
    if job.batch is not None:
        members["batch"] = job.batch
    if job.finished_at is not None:
        members["finished_at"] = written(job.finished_at)
    return members


def _with_record(job: Job) -> dict[str, Any]:
    """With the record that `digest` is of."""
    return {**_shown(job), "record": json.loads(job.record)}


def _repr_digest(digest: str) -> str:
    """A digest as the header of RFC 9530 has it."""
    content = bytes.fromhex(digest.removeprefix("sha256:"))
    return f"sha-256=:{base64.b64encode(content).decode('ascii')}:"
