"""The registry when processes are killed at any of its writes, or write to it at the same time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from verbc.support.registrations import ABSENT_DIGEST

from .databases import KINDS, PostgresqlPlace
from .registry_programs import GONE, LATER, NEW, OLD, POINTS, PROCESSES, ROUNDS, SPECS

TESTS = Path(__file__).parents[1]


def run(command: str, database: str) -> Any:
    program = [sys.executable, "-m", "support.registry_programs", command, database]
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=TESTS, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture(scope="module", params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path_factory.mktemp("registry") / "server.db")
        return
    place = PostgresqlPlace(request.getfixturevalue("postgresql"))
    yield place.address
    place.server.drop(place.name)


@pytest.fixture(scope="module")
def crashes(database: str) -> dict[str, Any]:
    told: dict[str, Any] = run("crash", database)
    return told


# By its id: digest, digest of the manifest, generation, suspended, origin, seed digests, problem.
BEFORE = {
    "gone": [ABSENT_DIGEST, None, 2, True, "operator", None, None],
    "old": [OLD.digest, OLD.digest, 1, False, "operator", None, None],
    "specs": [SPECS.digest, SPECS.digest, 1, False, "spec", SPECS.digest, None],
}
ADDED_AGAIN = {"gone": [GONE.digest, GONE.digest, 3, True, "operator", None, None]}
AFTER: dict[str, dict[str, Any]] = {
    "migrate": {},
    "seed": {
        "new": [NEW.digest, NEW.digest, 1, False, "spec", NEW.digest, None],
        "specs": [LATER.digest, LATER.digest, 2, True, "spec", f"{SPECS.digest} {LATER.digest}", None],
    },
    "add": {"new": [NEW.digest, NEW.digest, 1, False, "operator", None, None]},
    "add again": ADDED_AGAIN,
    "replace": {"old": [OLD.digest, OLD.digest, 2, True, "operator", None, None]},
    "remove": {"old": [ABSENT_DIGEST, None, 2, True, "operator", None, None]},
    "confirm": {"gone": [GONE.digest, GONE.digest, 3, False, "operator", None, None]},
}


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_process_leaves_all_of_a_write_or_nothing_of_it(crashes: dict[str, Any], point: str) -> None:
    side, _, name = point.partition(" ")
    before = {} if name == "migrate" else BEFORE | (ADDED_AGAIN if name == "confirm" else {})
    after = before | AFTER[name]
    told = crashes[point]
    assert told == {"ended": -9, "before": before, "found": before if side == "before" else after, "again": after}


def test_of_changes_at_the_same_time_each_has_a_generation_of_its_own(database: str) -> None:
    told = run("share", database)
    assert told["ended"] == [0] * PROCESSES
    assert all(made == sorted(made) for made in told["made"])
    assert sorted(number for made in told["made"] for number in made) == list(range(2, 2 + PROCESSES * ROUNDS))
