"""Approvals: an account whose policy asks for it runs no quote before one of its keys has approved that quote."""

from .clock import written
from .core import Asked, Core, Reply, created
from .quotes import find_quote, standing_of
from .shapes import RunRequest


def approve(core: Core, asked: Asked[RunRequest]) -> Reply:
    """Approve a quote, once; who asks again gets the approval that stands. Raises Refusal."""
    now, caller, handle = core.now(), asked.caller, asked.body.quote
    with core.store.write() as db:
        before = find_quote(db, caller.account, handle)
        if before.approved_at is None:
            before.check_valid(now)
            db.execute("INSERT INTO approvals VALUES (?, ?, ?)", (handle, caller.subject, now))
        quote = find_quote(db, caller.account, handle)
        subject, approved_at = db.execute(
            "SELECT subject, created_at FROM approvals WHERE quote = ?", (handle,)
        ).fetchone()
    content = {**standing_of(quote, now), "approved_by": subject, "approved_at": written(approved_at)}
    return created(content, f"/quotes/{handle}", new=before.approved_at is None)
