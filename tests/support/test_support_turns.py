"""Places that go to the most urgent, and to nobody who has given up."""

from __future__ import annotations

import asyncio

from verbc.support.turns import Rank, Turns


async def take(turns: Turns, rank: Rank, had: list[Rank], go: asyncio.Event) -> None:
    async with turns.at(rank):
        had.append(rank)
        await go.wait()


async def settled() -> None:
    """Everything has happened that can."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_the_most_urgent_has_the_next_place() -> None:
    async def work() -> None:
        turns, had = Turns(2), list[Rank]()
        first, go = asyncio.Event(), asyncio.Event()
        ranks: list[Rank] = [(5, 0), (4, 0), (3, 0), (1, 2), (2, 0), (1, 1)]
        tasks = [asyncio.ensure_future(take(turns, rank, had, first if rank[0] > 3 else go)) for rank in ranks]
        await settled()
        assert had == [(5, 0), (4, 0)]
        first.set()
        await settled()
        assert had[2:] == [(1, 1), (1, 2)]
        go.set()
        await asyncio.gather(*tasks)
        assert had[4:] == [(2, 0), (3, 0)]

    asyncio.run(work())


def test_who_gives_up_leaves_the_place_to_others() -> None:
    async def work() -> None:
        turns, had, go = Turns(1), list[Rank](), asyncio.Event()
        tasks = [asyncio.ensure_future(take(turns, (number,), had, go)) for number in range(4)]
        await settled()
        tasks[1].cancel()
        await settled()
        go.set()
        await asyncio.wait((tasks[0],))
        tasks[2].cancel()  # its place may have come a moment ago
        await settled()
        assert tasks[3].done()
        assert (had[0], had[-1]) == ((0,), (3,))
        await take(turns, (9,), had, go)

    asyncio.run(work())
