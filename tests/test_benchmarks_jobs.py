"""What `benchmarks.jobs` puts on record is what both servers read: else it would compare one thing with another."""

from pathlib import Path

import pytest

from benchmarks.client import AnswerError
from benchmarks.jobs import Read, Side, reads, running, see_that_they_agree, seed, settle, sides
from benchmarks.seeding import dead_runs, finished_runs


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, ...]:
    return sides(tmp_path_factory.mktemp("benchmark"))


def test_both_servers_tell_the_same_of_what_is_put_on_record(both: tuple[Side, ...], tmp_path: Path) -> None:
    runs = finished_runs(60, 20)
    seed(both, tmp_path, runs)
    with running(both) as clients:
        for read in reads(runs):
            see_that_they_agree(clients, read)
        with pytest.raises(AnswerError):
            see_that_they_agree(clients, Read("too few", reads(runs)[1].op, 1, 1.0))
        dead = dead_runs(1)
        for side in both:
            side.records.add_dead(next(iter(runs)), dead)
            settle(clients[side.server.name], dead)
        see_that_they_agree(clients, reads(runs | dict.fromkeys(dead, "exited"))[1])
