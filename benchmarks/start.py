"""How long a client waits at the start: from starting a server's process to its first list of tools."""

import sys
import time
from pathlib import Path
from typing import Final

from .command import main, turns
from .contestants import BARE, OURS, THEIRS, Contestant, contestants, prepare
from .report import MILLISECONDS, TIMES, Target, difference, quotient, table, title

ROUNDS: Final = 8
TARGETS: Final = (
    Target(f"{THEIRS} / {OURS}", (THEIRS, OURS), quotient, TIMES, least=2.3),
    Target(f"{OURS} - {BARE}", (OURS, BARE), difference, MILLISECONDS, most=0.080),
)


def measure(folder: Path, rounds: int) -> None:
    """Start each server in turn, a round unmeasured first."""
    prepare()
    servers = contestants(folder)
    seconds: dict[str, list[float]] = {server.name: [] for server in servers}
    processor: dict[str, list[float]] = {server.name: [] for server in servers}
    for number in turns(rounds + 1):
        for server in servers:
            spent = _first_list(server)
            if number:
                seconds[server.name].append(spent[0])
                processor[server.name].append(spent[1])
    title("start: from the start of the process to the first reply to tools/list, over stdio")
    table(seconds, MILLISECONDS)
    table(processor, MILLISECONDS, ", processor")
    for target in TARGETS:
        target.judge(seconds)


def _first_list(server: Contestant) -> tuple[float, float]:
    """Seconds of wall clock, and of processor time."""
    began = time.perf_counter()
    with server.start() as client:
        client.greet()
        client.ask("tools/list", {})
        seconds = time.perf_counter() - began
    return seconds, client.processor


if __name__ == "__main__":
    sys.exit(main({measure: ROUNDS}))
