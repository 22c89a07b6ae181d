"""The hand-written part of a jobs backend: what its handlers do before a start, and what they know of an end."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, get_args

from . import log
from .bounded_work import within
from .call import Call
from .launch import Launch
from .run_classification import timestamp
from .run_record import LONGEST_CODE, LONGEST_WORD, End, Outcome, RunRecord
from .strict_json import limited

# `await ask(["lifecycle", run_id], timeout=20.0)`: what the command line says to that, with the arguments and the
# environment that its commands always have. Raises Refusal.
Ask: TypeAlias = Callable[..., Awaitable[Any]]

REPORT_SECONDS: Final = 60.0
DETAILS_SECONDS: Final = 2.0
_OUTCOMES: Final = get_args(Outcome)
# What runs are called that nobody has told the end of: as the word of an end they would say the contrary.
_OURS: Final = frozenset({"running", "exited", "unknown"})


class HookError(Exception):
    """A hook failed, or gave what it may not; the cause says more."""


class JobHooks:
    """The methods `<backend>_prepare`, `_ended`, `_settled` and `_details` of the handlers, each of which may be missing.

    `handlers` gives the object that has them, and is called when it is first needed; None when there are none.
    """

    def __init__(self, backend: str, handlers: Callable[[], object] | None) -> None:
        self._backend = backend
        self._handlers = handlers

    @property
    def report(self) -> bool:
        """Whether there is somebody who could tell how a run ended."""
        return self._handlers is not None

    async def prepare(self, launch: Launch, params: Any, call: Call) -> None:
        """Let the handlers shape a start. Raises whatever they raise, and ValueError for details that are no JSON."""
        if method := self._method("prepare"):
            await _finished(method(launch, params, call))
            launch.details = _plain(launch.details)

    async def ended(self, record: RunRecord, ask: Ask | None) -> End | None:
        """What is known of the end of a run whose leader is gone; without `ask` by a quick look. Raises HookError."""
        answer = await self._within(REPORT_SECONDS if ask else DETAILS_SECONDS, "ended", record, ask)
        try:
            return None if answer is None else _checked(answer)
        except (KeyError, TypeError, ValueError) as error:
            raise HookError from error

    async def settled(self, record: RunRecord) -> dict[str, Any]:
        """Tell that an end is on record; what comes back joins the details. A failure is logged and forgotten.

        It may be told again, by the next server, where this one ends before it has noted that it was told.
        """
        return await self._details("settled", REPORT_SECONDS, record)

    async def details(self, record: RunRecord) -> dict[str, Any]:
        """What else is known of a run, for its readers. A failure is logged and forgotten."""
        return await self._details("details", DETAILS_SECONDS, record)

    async def _details(self, hook: str, seconds: float, record: RunRecord) -> dict[str, Any]:
        try:
            return _plain(await self._within(seconds, hook, record) or {})
        except (HookError, TypeError, ValueError) as error:
            log.failure("a hook failed", error, hook=f"{self._backend}_{hook}", run_id=record.run_id)
            return {}

    async def _within(self, seconds: float, hook: str, *arguments: object) -> Any:
        """What a hook gives back, whatever goes wrong in it. Raises HookError."""
        try:
            if (method := self._method(hook)) is None:
                return None
            deadline = asyncio.get_running_loop().time() + seconds
            return await within(deadline, _called(method, arguments))
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise HookError from error
        except Exception as error:
            raise HookError from error

    def _method(self, hook: str) -> Callable[..., Any] | None:
        found: Callable[..., Any] | None = None
        if self._handlers is not None:
            found = getattr(self._handlers(), f"{self._backend}_{hook}", None)
        return found


async def _called(method: Callable[..., Any], arguments: tuple[object, ...]) -> Any:
    return await _finished(method(*arguments))


async def _finished(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


def _checked(end: object) -> End:
    """An end that can be kept and told. Raises TypeError or ValueError."""
    if not isinstance(end, End):
        raise TypeError("A hook tells of an end as an End, or None.")
    if not (_is_word(end.status, LONGEST_WORD) and _is_word(end.source, LONGEST_WORD)) or end.status in _OURS:
        raise ValueError("The status and the source of an end are short texts, and no word for what has no end.")
    if end.outcome not in _OUTCOMES:
        raise ValueError("An end has one of the outcomes that there are.")
    if end.reason_code is not None and not _is_word(end.reason_code, LONGEST_CODE):
        raise ValueError("The reason code of an end is a short text.")
    if end.reason_detail is not None and not isinstance(end.reason_detail, str):
        raise TypeError("The reason of an end is a text.")
    at = end.at.replace(tzinfo=UTC) if end.at is not None and end.at.tzinfo is None else end.at
    evidence = None if end.evidence is None else _evidence(_plain(end.evidence))
    return replace(end, evidence=evidence, details=_plain(end.details), at=at)


def _is_word(text: object, most: int) -> bool:
    return isinstance(text, str) and 0 < len(text) <= most


def _evidence(evidence: dict[str, Any]) -> dict[str, Any]:
    """Evidence in the form that it is told in. Raises TypeError, ValueError or KeyError for another one."""
    told = {"observer": "hooks", **evidence}
    if not all(isinstance(told[name], str) for name in ("kind", "finding", "observed_at", "observer")):
        raise TypeError("Evidence says what was looked at, what it showed, when, and who looked.")
    at = datetime.fromisoformat(told["observed_at"])
    return {**told, "observed_at": timestamp(at.replace(tzinfo=UTC) if at.tzinfo is None else at)}


def _plain(details: Mapping[str, Any]) -> dict[str, Any]:
    """Details as JSON. Raises TypeError or ValueError for what is none."""
    kept: dict[str, Any] = limited(dict(details))
    return kept
