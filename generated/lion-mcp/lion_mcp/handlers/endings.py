"""How a run of li ended: what it reported when it was there, or what its store says of it afterwards."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from lion_mcp.interface import Ask, End, Refusal, RunRecord

from .answers import Answers, answers_in
from .causes import failure_cause
from .reported_ends import Report, report_of, understood
from .run_files import folder_of

LIFECYCLE_SECONDS = 20.0
SLACK = timedelta(seconds=1)
EMPTY: Final = "empty_answer"
NOTHING_SPECIAL: Final = (None, "run.completed.ok")  # reasons that say no more than the status
CANCELLED: Final = ("cancelled", "aborted")
REASONS: Final[Mapping[str, str]] = {"completed_empty": "no_artifacts"}  # where li gives none


async def end_of(record: RunRecord, ask: Ask | None) -> End | None:
    """The end of a run whose process is gone; None when li says nothing of it. Raises Refusal when li cannot be asked."""
    told, source = await asyncio.to_thread(report_of, record), "report"
    if told is None and ask is not None:
        told, source = in_store(await ask(["lifecycle", record.run_id], timeout=LIFECYCLE_SECONDS)), "lifecycle"
    return None if told is None else await asyncio.to_thread(_end, record, told, source)


def in_store(answer: Any) -> Report | None:
    """What `li lifecycle` says, if it says that the run is over. Raises Refusal when li could not look into its store."""
    data = _object(_object(answer).get("data"))
    lifecycle = _object(data.get("lifecycle"))
    if lifecycle.get("available") is not True and lifecycle.get("reason_code") != "not_found":
        raise Refusal("unavailable", "li could not look into its store of runs.")
    told = _object(lifecycle.get("value"))
    return understood(told) if told.get("terminal") is True else None


def outcome_of(status: str) -> Literal["succeeded", "cancelled", "failed"]:
    """What li's own word means; one that is not known is no success."""
    if status == "completed":
        return "succeeded"
    return "cancelled" if status in CANCELLED else "failed"


def _end(record: RunRecord, told: Report, source: str) -> End:
    outcome = outcome_of(told.status)
    code, sentence, details = told.reason_code or REASONS.get(told.status), None, dict[str, Any]()
    if outcome == "succeeded":
        answers = _answers(record, told)
        sentence, details = answers.sentence, {"answer": answers.state}
        if answers.state == "empty" and code in NOTHING_SPECIAL:
            code = EMPTY
    elif cause := failure_cause(record):
        details = {"failure_cause": cause}
    return End(told.status, outcome, source, code, sentence, details=details, at=_credible(told.ended_at, record))


def _credible(at: datetime | None, record: RunRecord) -> datetime | None:
    """The moment, if it lies between the submit and now; a clock may have been set meanwhile."""
    if at is None or not record.submitted_at - SLACK <= at <= datetime.now(UTC) + SLACK:
        return None
    return at


def _answers(record: RunRecord, told: Report) -> Answers:
    return answers_in(folder_of(record), str(record.details.get("kind")), told.status)


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
