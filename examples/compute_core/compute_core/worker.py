"""The worker of a process: a thread that takes up started jobs, one after the other, and stores their results.

Every job is claimed by one worker at a time. When a process dies, its claim runs out and another takes up the job; a
result is stored only by who still holds the claim, so each job gets exactly one.
"""

import json
import logging
import secrets
import threading
from dataclasses import dataclass

from .canonical import canonical_json, digest_of
from .core import Core
from .log import log_fault
from .work import carry_out

CLAIM_SECONDS = 60  # beyond what the job takes

_POLL = 1.0  # seconds between looks for jobs that other processes left
_CLAIM = """
UPDATE jobs SET state = 'running', claim = ?, claimed_until = ?
WHERE sequence = (
    SELECT sequence FROM jobs
    WHERE state IN ('accepted', 'running') AND (state = 'accepted' OR claimed_until <= ?)
    ORDER BY sequence LIMIT 1
)
RETURNING handle, quote
"""
_FINISH = """
UPDATE jobs SET state = ?, result = ?, result_digest = ?, finished_at = ?, claim = NULL, claimed_until = NULL
WHERE handle = ? AND claim = ?
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """A job that this worker may work on. `terms` is JSON."""

    handle: str
    token: str
    terms: str


def claim_next(core: Core) -> Claim | None:
    """Claim the job that was started first among those nobody works on; it is running then."""
    now, token = core.now(), secrets.token_hex(16)
    until = now + CLAIM_SECONDS + int(core.settings.job_seconds)
    with core.store.write() as db:
        row = db.execute(_CLAIM, (token, until, now)).fetchone()
        if row is None:
            return None
        (terms,) = db.execute("SELECT terms FROM quotes WHERE handle = ?", (row["quote"],)).fetchone()
    return Claim(row["handle"], token, terms)


def finish(core: Core, claim: Claim) -> bool:
    """Do the work and store what it came to; whether the claim still stood, and so it was stored."""
    state, result = carry_out(claim.handle, json.loads(claim.terms))
    content = canonical_json(result)
    row = (state, content, digest_of(content), core.now(), claim.handle, claim.token)
    with core.store.write() as db:
        return db.execute(_FINISH, row).rowcount == 1


class Worker:
    """Works from `start` to `stop`; a job under way is finished before it stops."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="compute-core worker", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """Return when the thread has ended."""
        self._stopping.set()
        self._core.job_started.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                busy = self._do_next()
            except Exception as error:
                log_fault("worker", error)
                busy = False
            if not busy:
                self._core.job_started.wait(_POLL)
                self._core.job_started.clear()

    def _do_next(self) -> bool:
        claim = claim_next(self._core)
        if claim is None:
            return False
        self._stopping.wait(self._core.settings.job_seconds)
        finish(self._core, claim)
        logging.getLogger("compute_core").info("job %s finished", claim.handle)
        return True
