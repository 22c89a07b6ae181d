"""Keys that somebody else knows: one question for each key at a time, and no answer that is too old."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from verbc.support import asked_keys
from verbc.support.asked_keys import AskedKeys
from verbc.support.bearer import Identity, VerifierError

from .programs import finish, move_clock

ADA = Identity("ada")
Reply = Identity | VerifierError | None


@dataclass
class Asked:
    """Somebody who is asked about keys, and answers at once unless he is held up."""

    replies: dict[str, Reply] = field(default_factory=dict)
    questions: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    closed: int = 0
    held: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.held.set()

    async def ask(self, key: str, seconds: float) -> Identity | None:
        assert 0 < seconds <= 5
        self.questions.append(key)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.held.wait()
        finally:
            self.at_once -= 1
        reply = self.replies.get(key, ADA)
        if isinstance(reply, VerifierError):
            raise reply
        return reply

    async def close(self) -> None:
        self.closed += 1


def with_asked(work: Callable[[Asked, AskedKeys], Awaitable[None]], **replies: Reply) -> Asked:
    asked = Asked(replies)

    async def run() -> None:
        keys = AskedKeys(asked.ask, asked.close)
        await work(asked, keys)
        await keys.close()

    finish(run())
    assert asked.closed == 1
    return asked


async def turns(count: int = 10) -> None:
    """Let everything go on that waits for nothing."""
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_good_answer_is_kept_for_a_while() -> None:
    async def work(asked: Asked, keys: AskedKeys) -> None:
        assert [await keys.verify("k") for _ in range(3)] == [ADA] * 3
        move_clock(29.9)
        assert await keys.verify("k") == ADA
        assert asked.questions == ["k"]
        move_clock(0.2)
        assert await keys.verify("k") == ADA
        assert asked.questions == ["k", "k"]

    with_asked(work)


def test_it_is_kept_from_when_it_was_asked_for() -> None:
    async def work(asked: Asked, keys: AskedKeys) -> None:
        asked.held.clear()
        waiting = asyncio.ensure_future(keys.verify("k"))
        await turns()
        move_clock(4)
        asked.held.set()
        assert await waiting == ADA
        move_clock(26.1)
        await keys.verify("k")
        assert len(asked.questions) == 2

    with_asked(work)


def test_an_answer_that_is_too_old_is_not_given_when_there_is_no_new_one() -> None:
    async def work(asked: Asked, keys: AskedKeys) -> None:
        assert await keys.verify("k") == ADA
        asked.replies["k"] = VerifierError("away")
        assert await keys.verify("k") == ADA
        move_clock(31)
        for _ in range(2):
            with pytest.raises(VerifierError, match="away"):
                await keys.verify("k")
        asked.replies["k"] = None
        assert await keys.verify("k") is None

    assert len(with_asked(work).questions) == 4


def test_only_good_answers_are_kept() -> None:
    async def work(asked: Asked, keys: AskedKeys) -> None:
        for _ in range(3):
            assert await keys.verify("bad") is None
            with pytest.raises(VerifierError):
                await keys.verify("doubtful")
        asked.replies["bad"] = ADA
        assert await keys.verify("bad") == ADA

    asked = with_asked(work, bad=None, doubtful=VerifierError("away"))
    assert asked.questions == ["bad", "doubtful"] * 3 + ["bad"]


def test_no_answer_is_kept_beyond_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "time", lambda: now)

    async def work(asked: Asked, keys: AskedKeys) -> None:
        nonlocal now
        assert await keys.verify("k") == Identity("ada", expires_at=1010)
        now = 1009.9
        assert await keys.verify("k") is not None
        assert len(asked.questions) == 1
        now = 1010.0
        assert await keys.verify("k") is None
        assert len(asked.questions) == 2

    with_asked(work, k=Identity("ada", expires_at=1010))


def test_whoever_comes_while_a_key_is_asked_about_waits() -> None:
    async def work(asked: Asked, keys: AskedKeys) -> None:
        asked.held.clear()
        waiting = [asyncio.ensure_future(keys.verify(key)) for key in "abab" for _ in range(5)]
        await turns()
        assert sorted(asked.questions) == ["a", "b"]
        asked.held.set()
        assert await asyncio.gather(*waiting) == ([ADA] * 5 + [None] * 5) * 2

    with_asked(work, b=None)


def test_all_who_wait_are_told_that_it_cannot_be_told() -> None:
    async def work(asked: Asked, keys: AskedKeys) -> None:
        asked.held.clear()
        waiting = [asyncio.ensure_future(keys.verify("k")) for _ in range(3)]
        await turns()
        asked.held.set()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(error) for error in found] == [VerifierError] * 3
        asked.replies["k"] = ADA
        assert await keys.verify("k") == ADA

    with_asked(work, k=VerifierError("away"))


def test_whoever_goes_away_leaves_the_question_to_the_others() -> None:
    async def work(asked: Asked, keys: AskedKeys) -> None:
        asked.held.clear()
        first, second = (asyncio.ensure_future(keys.verify("k")) for _ in range(2))
        await turns()
        first.cancel()
        await turns()
        assert first.cancelled()
        asked.held.set()
        assert await second == ADA

    assert with_asked(work).questions == ["k"]


def test_a_question_that_nobody_waits_for_any_more_ends_quietly(caplog: pytest.LogCaptureFixture) -> None:
    async def work(asked: Asked, keys: AskedKeys) -> None:
        asked.held.clear()
        only = asyncio.ensure_future(keys.verify("k"))
        await turns()
        only.cancel()
        asked.held.set()
        await turns()
        assert asked.at_once == 0

    with_asked(work, k=VerifierError("away"))
    gc.collect()
    assert caplog.records == []


def test_so_many_questions_are_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_keys, "_QUESTIONS_AT_ONCE", 4)

    async def work(asked: Asked, keys: AskedKeys) -> None:
        asked.held.clear()
        waiting = [asyncio.ensure_future(keys.verify(f"k{number}")) for number in range(20)]
        await turns(50)
        assert asked.at_once == 4
        asked.held.set()
        assert await asyncio.gather(*waiting) == [ADA] * 20

    assert with_asked(work).most_at_once == 4


def test_waiting_for_a_turn_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_keys, "_QUESTIONS_AT_ONCE", 1)

    async def work(asked: Asked, keys: AskedKeys) -> None:
        asked.held.clear()
        first, second = (asyncio.ensure_future(keys.verify(key)) for key in ("a", "b"))
        await turns()
        move_clock(6)
        with pytest.raises(VerifierError, match="too many keys"):
            await second
        asked.held.set()
        assert await first == ADA
        assert asked.questions == ["a"]
        assert await keys.verify("b") == ADA

    with_asked(work)


def test_so_many_answers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_keys, "_MOST_KEPT", 3)

    async def work(asked: Asked, keys: AskedKeys) -> None:
        for key in "abcdbcd":
            await keys.verify(key)
        assert asked.questions == [*"abcd"]
        await keys.verify("a")
        assert asked.questions == [*"abcda"]

    with_asked(work)


def test_closing_ends_what_is_asked() -> None:
    async def work(asked: Asked, keys: AskedKeys) -> None:
        asked.held.clear()
        waiting = [asyncio.ensure_future(keys.verify(key)) for key in "ab"]
        await turns()
        await keys.close()
        await asyncio.wait(waiting)
        assert asked.at_once == 0
        asked.closed = 0

    with_asked(work)


def test_keys_are_not_kept() -> None:
    async def work(asked: Asked, keys: AskedKeys) -> None:
        await keys.verify("s3cret")
        asked.questions.clear()
        assert "s3cret" not in repr(vars(keys))

    with_asked(work)
