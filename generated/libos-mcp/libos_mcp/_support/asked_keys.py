"""Keys that somebody else knows: each is asked about by one question at a time, and a good answer is kept for a while."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from .bearer import Identity, VerifierError

# Whom a key stands for, None for nobody. Raises VerifierError, also when there is no answer within so many seconds.
Ask: TypeAlias = Callable[[str, float], Awaitable[Identity | None]]

_KEPT_SECONDS = 30.0
_ANSWER_SECONDS = 5.0
_MOST_KEPT = 4096
_QUESTIONS_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class _Answer:
    identity: Identity
    until: float  # a time of the running loop

    @property
    def is_good(self) -> bool:
        """Whether it still counts: it is young enough, and the key has not expired."""
        expires_at = self.identity.expires_at
        return asyncio.get_running_loop().time() < self.until and (expires_at is None or time.time() < expires_at)


class AskedKeys:
    """A verifier over `ask`; `close` is what there is to close. An answer that has become too old is never given again."""

    def __init__(self, ask: Ask, close: Callable[[], Awaitable[None]]) -> None:
        self._ask = ask
        self._close = close
        self._answers: OrderedDict[bytes, _Answer] = OrderedDict()  # by the SHA-256 of the key
        self._questions: dict[bytes, asyncio.Task[Identity | None]] = {}
        self._slots = asyncio.Semaphore(_QUESTIONS_AT_ONCE)

    async def verify(self, key: str) -> Identity | None:
        """Whom the key stands for. Raises VerifierError when it cannot be told."""
        digest = hashlib.sha256(key.encode()).digest()
        answer = self._answers.get(digest)
        if answer is not None and answer.is_good:
            return answer.identity
        question = self._questions.get(digest)
        if question is None:
            question = asyncio.ensure_future(self._answered(digest, key))
            question.add_done_callback(_look_at)
            self._questions[digest] = question
        # Whoever asked first may go away, and the others still want to know.
        return await asyncio.shield(question)

    async def close(self) -> None:
        """Ask nothing more, and close what was opened for it."""
        questions = [*self._questions.values()]
        for question in questions:
            question.cancel()
        if questions:
            await asyncio.wait(questions)
        await self._close()

    async def _answered(self, digest: bytes, key: str) -> Identity | None:
        self._answers.pop(digest, None)
        try:
            asked_at, identity = await self._asked_in_turn(key)
        finally:
            # At once: whoever comes from now on is told nothing older than himself.
            self._questions.pop(digest, None)
        answer = None if identity is None else _Answer(identity, asked_at + _KEPT_SECONDS)
        if answer is None or not answer.is_good:
            return None
        self._keep(digest, answer)
        return answer.identity

    async def _asked_in_turn(self, key: str) -> tuple[float, Identity | None]:
        """When the question was asked, and the answer."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _ANSWER_SECONDS
        try:
            async with asyncio.timeout_at(deadline):
                await self._slots.acquire()
        except TimeoutError:
            raise VerifierError("too many keys are asked about") from None
        try:
            # With an end of its own: to be told twice to stop would keep it from putting its things in order.
            asked_at = loop.time()
            return asked_at, await self._ask(key, deadline - asked_at)
        finally:
            self._slots.release()

    def _keep(self, digest: bytes, answer: _Answer) -> None:
        self._answers[digest] = answer
        if len(self._answers) > _MOST_KEPT:
            self._answers.popitem(last=False)


def _look_at(question: asyncio.Task[Identity | None]) -> None:
    """See how a question ended, so that nothing is said of it when nobody waits for it any more."""
    if not question.cancelled():
        question.exception()
