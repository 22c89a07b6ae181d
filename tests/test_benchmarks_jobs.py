"""What `benchmarks.jobs` puts on record is what both servers read: else it would compare one thing with another."""

from pathlib import Path

import pytest

from benchmarks.client import AnswerError
from benchmarks.jobs import Read, reads, running, see_that_they_agree, seed, settle, sides
from benchmarks.seeding import dead_runs, finished_runs
from benchmarks.stand_ins import with_claude


def test_both_servers_tell_the_same_of_what_is_put_on_record(tmp_path: Path) -> None:
    both, runs = sides(tmp_path), finished_runs(60, 20)
    with running(both, with_claude(tmp_path)) as clients:
        seed(both, clients, runs)
        for read in reads(runs):
            see_that_they_agree(clients, read)
        with pytest.raises(AnswerError):
            see_that_they_agree(clients, Read("too few", reads(runs)[1].op, 49, 1.0))
        dead = dead_runs(1)
        for side in both:
            side.records.add_dead(next(iter(runs)), dead)
            settle(clients[side.server.name], dead)
        see_that_they_agree(clients, reads({**dict.fromkeys(dead, "exited"), **runs})[1])
