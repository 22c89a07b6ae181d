"""The command line that all benchmarks share."""

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Protocol

from .client import AnswerError
from .places import MissingError
from .processes import FailedError

_SECONDS: Final = 50.0


class Benchmark(Protocol):
    def __call__(self, folder: Path, rounds: int) -> None:
        """Measure `rounds` times, with an empty `folder` to work in, and print the figures."""


def main(benchmarks: Mapping[Benchmark, int]) -> int:
    """Run benchmarks, each with its usual number of rounds. Returns 1 if one could not be run, whatever the figures."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--rounds", type=int, metavar="N", help="how often everything is measured, at least 1")
    asked: int | None = parser.parse_args().rounds
    _introduce()
    for benchmark, usual in benchmarks.items():
        began = time.perf_counter()
        try:
            with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
                benchmark(Path(folder), max(1, asked or usual))
        except (MissingError, FailedError, AnswerError) as error:
            print(error, file=sys.stderr)
            return 1
        print(f"  ({time.perf_counter() - began:.0f} s)", flush=True)
    return 0


def turns(rounds: int) -> Iterator[int]:
    """0, 1, … below `rounds`; on a machine that is too slow or too busy it ends when the time is up, but never before 2."""
    until = time.perf_counter() + _SECONDS
    for number in range(rounds):
        if number >= 2 and time.perf_counter() > until:
            break
        yield number


def _introduce() -> None:
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} processors, load {load} (1, 5, 15 minutes)", flush=True
    )
