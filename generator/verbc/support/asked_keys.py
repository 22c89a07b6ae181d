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

# Whom a key stands for, None for nobody; `seconds` is how long the answer may take. Raises VerifierError.
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
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _ANSWER_SECONDS
        try:
            async with asyncio.timeout_at(deadline):
                async with self._slots:
                    asked_at = loop.time()
                    identity = await self._ask(key, deadline - asked_at)
        except TimeoutError:
            raise VerifierError("Whoever is asked about keys takes too long.") from None
        finally:
            # At once, so that nobody is given the answer to a question that was asked before his own.
            del self._questions[digest]
        if identity is not None:
            self._keep(digest, _Answer(identity, asked_at + _KEPT_SECONDS))
        return identity

    def _keep(self, digest: bytes, answer: _Answer) -> None:
        self._answers[digest] = answer
        if len(self._answers) > _MOST_KEPT:
            self._answers.popitem(last=False)


def _look_at(question: asyncio.Task[Identity | None]) -> None:
    """See how a question ended, so that nothing is said of it when nobody waits for it any more."""
    if not question.cancelled():
        question.exception()
