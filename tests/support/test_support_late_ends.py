"""Ends that nobody waits for: they go with the next transaction, or alone after a while, and none is lost on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from sqlalchemy import Connection

from verbc.support.governed import StalePlanError
from verbc.support.late_ends import LateEnds
from verbc.support.refusal import Refusal
from verbc.support.registry import Registry
from verbc.support.state_store import StateStore

Work: TypeAlias = Callable[[Connection], Any]

PATIENCE = 60
UNUSABLE = Refusal("unavailable", "It cannot be used.")


class Transactions:
    """Stands in for a store: each is carried out when `run` says so; nothing of one that fails is kept."""

    def __init__(self) -> None:
        self.started: list[tuple[str, Work, asyncio.Future[Any]]] = []
        self.kept: list[tuple[str, list[str]]] = []
        self.noted: list[str] = []
        self._coming = asyncio.Event()

    def write(self, name: str, work: Work) -> asyncio.Future[Any]:
        future = asyncio.get_running_loop().create_future()
        # As whoever starts them does: looked at, so that nothing is said of an error that nobody waits for.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.started.append((name, work, future))
        self._coming.set()
        return future

    def end(self, text: str) -> Work:
        return lambda _connection: self.noted.append(text)

    @property
    def names(self) -> list[str]:
        """Those that are started and not carried out."""
        return [name for name, _, _ in self.started]

    async def run(self, problem: Exception | None = None) -> None:
        """Carry out the first of those that are started, or have it fail before any of its work is done."""
        name, work, future = self.started.pop(0)
        self.noted = []
        try:
            if problem is not None:
                raise problem
            future.set_result(work(None))  # type: ignore[arg-type]
            self.kept.append((name, self.noted))
        except Exception as error:
            future.set_exception(error)
        await asyncio.sleep(0)  # for those who want to know of it

    async def next(self) -> None:
        """Wait until one is started."""
        self._coming.clear()
        async with asyncio.timeout(PATIENCE):
            while not self.started:
                await self._coming.wait()


def late(work: Callable[[Transactions, LateEnds], Awaitable[None]]) -> list[tuple[str, list[str]]]:
    """What is kept after `work`: the names of transactions, each with what was noted in it, in order."""

    async def run() -> list[tuple[str, list[str]]]:
        transactions = Transactions()
        await work(transactions, LateEnds(transactions.write))
        assert transactions.started == []
        return transactions.kept

    return asyncio.run(run())


def test_they_go_with_the_next_transaction_before_its_own_work() -> None:
    async def work(transactions: Transactions, ends: LateEnds) -> None:
        ends.add(transactions.end("one"))
        ends.add(transactions.end("two"))

        def begin(connection: Connection) -> str:
            transactions.end("work")(connection)
            return "permit"

        begun = ends.write("begin", begin)
        assert transactions.names == ["begin"]
        await transactions.run()
        assert await begun == "permit"
        ends.flush()

    assert late(work) == [("begin", ["one", "two", "work"])]


def test_they_go_alone_after_a_while() -> None:
    async def work(transactions: Transactions, ends: LateEnds) -> None:
        ends.add(transactions.end("one"))
        ends.add(transactions.end("two"))
        assert transactions.names == []
        await transactions.next()
        await transactions.run()
        ends.add(transactions.end("three"))
        await transactions.next()
        await transactions.run()

    assert late(work) == [("end", ["one", "two"]), ("end", ["three"])]


def test_what_is_added_behind_a_transaction_waits_for_the_next_one() -> None:
    async def work(transactions: Transactions, ends: LateEnds) -> None:
        ends.add(transactions.end("one"))
        ends.write("begin", transactions.end("work"))
        ends.add(transactions.end("two"))
        await transactions.run()
        assert transactions.names == []
        await transactions.next()
        await transactions.run()

    assert late(work) == [("begin", ["one", "work"]), ("end", ["two"])]


def test_a_flush_starts_at_once_what_waits_and_nothing_else() -> None:
    async def work(transactions: Transactions, ends: LateEnds) -> None:
        ends.flush()
        ends.add(transactions.end("one"))
        ends.flush()
        ends.flush()
        assert transactions.names == ["end"]
        await transactions.run()

    assert late(work) == [("end", ["one"])]


@pytest.mark.parametrize("problem", [StalePlanError(), UNUSABLE, None])
def test_they_go_by_themselves_when_the_other_work_comes_to_nothing(problem: Exception | None) -> None:
    async def work(transactions: Transactions, ends: LateEnds) -> None:
        def failing(_connection: Connection) -> None:
            raise StalePlanError

        ends.add(transactions.end("one"))
        begun = ends.write("begin", failing)
        ends.add(transactions.end("two"))
        await transactions.run(problem)
        assert begun.exception() is not None
        assert transactions.names == ["end"]
        await transactions.run()

    assert late(work) == [("end", ["one", "two"])]


def test_a_transaction_without_them_brings_nothing_along_when_it_fails() -> None:
    async def work(transactions: Transactions, ends: LateEnds) -> None:
        ends.write("begin", transactions.end("work"))
        await transactions.run(StalePlanError())
        assert transactions.names == []

    assert late(work) == []


def test_a_store_that_cannot_be_used_is_tried_once_more_and_not_again() -> None:
    async def work(transactions: Transactions, ends: LateEnds) -> None:
        ends.add(transactions.end("one"))
        ends.write("begin", transactions.end("work"))
        await transactions.run(UNUSABLE)
        await transactions.run(UNUSABLE)
        assert transactions.names == []
        ends.flush()
        assert transactions.names == []

    assert late(work) == []


# On a store


def test_a_store_that_cannot_be_used_is_told_in_the_log(
    registry: Registry, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "state").write_text("")

    async def work() -> None:
        store = StateStore(registry, ["governance_tables"], state=tmp_path / "state")
        writing: list[asyncio.Future[Any]] = []

        def write(name: str, work: Work) -> asyncio.Future[Any]:
            writing.append(asyncio.ensure_future(store.write(name, work)))
            return writing[-1]

        ends = LateEnds(write)
        ends.add(lambda _connection: None)
        ends.flush()
        (problem,) = await asyncio.gather(*writing, return_exceptions=True)
        assert isinstance(problem, Refusal)
        ends.flush()
        assert len(writing) == 1
        await store.close()

    asyncio.run(work())
    assert [record.message for record in caplog.records] == ["what the server keeps cannot be used"]
