"""What a call costs over HTTP, with one client and with sixteen, for a server that checks their key."""

import json
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from .client import AnswerError
from .command import main, turns
from .http_contestants import BARE, OURS, THEIRS, contestants
from .http_load import Load, Spent, see_that_keys_are_checked
from .http_messages import LEGACY, MODERN
from .http_server import HttpServer
from .places import ROOT
from .report import MICROSECONDS, PER_SECOND, TIMES, Target, quotient, table, title

ROUNDS: Final = 10
MANY: Final = 16
CALLS: Final = {1: 200, MANY: 400}
TARGETS: Final = (
    Target(f"speed of {OURS} / {BARE}", (BARE, OURS), quotient, TIMES, least=0.9),
    Target(f"speed of {OURS} / {THEIRS}", (THEIRS, OURS), quotient, TIMES, least=1.5),
)
_PATIENCE_SECONDS: Final = 100.0


@dataclass(slots=True)
class Figures:
    """Of each server, in one revision and with a number of clients: seconds of calls, and of processor time for each."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    processor: dict[str, list[float]] = field(default_factory=dict)


def measure(folder: Path, rounds: int) -> None:
    """Call each server in turns, those of every second round the other way round."""
    compared = contestants(folder)
    names = [server.name for server in compared.servers]
    figures = {(revision, clients): Figures() for clients in CALLS for revision in (LEGACY, MODERN)}
    with ExitStack() as running:
        servers = {server.name: running.enter_context(server.start()) for server in compared.servers}
        for server in servers.values():
            see_that_keys_are_checked(server.port, LEGACY)
            see_that_keys_are_checked(server.port, MODERN)
        for number in turns(rounds):
            for (revision, clients), spent in figures.items():
                for name in names if number % 2 else names[::-1]:
                    load = Load(servers[name].port, compared.key, revision, clients, CALLS[clients])
                    _take_turn(spent, name, servers[name], load)
    _report(figures)


def _take_turn(figures: Figures, name: str, server: HttpServer, load: Load) -> None:
    before = server.processor
    spent = _drive(load)
    after = server.processor
    each = spent.each if load.clients == 1 else [spent.together / load.calls]
    figures.seconds.setdefault(name, []).extend(each)
    if before is not None and after is not None:
        figures.processor.setdefault(name, []).append((after - before) / load.all_calls)


def _drive(load: Load) -> Spent:
    """Make calls in a process of their own. Raises AnswerError."""
    command = (sys.executable, "-m", "benchmarks.http_load")
    try:
        ended = subprocess.run(
            command,
            input=json.dumps(asdict(load)),
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=_PATIENCE_SECONDS,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        raise AnswerError(error.stderr[-2000:]) from None
    except subprocess.TimeoutExpired:
        raise AnswerError("the clients did not come to an end") from None
    return Spent(**json.loads(ended.stdout))


def _report(figures: dict[tuple[str, int], Figures]) -> None:
    title("http: from sending a request to the end of its reply; with several clients, replies in a second")
    for (revision, clients), spent in figures.items():
        of_whom = f", {revision}, {clients} client{'s' if clients > 1 else ''}"
        table(spent.seconds, MICROSECONDS if clients == 1 else PER_SECOND, of_whom)
        table(spent.processor, MICROSECONDS, f"{of_whom}, processor")
        for target in TARGETS:
            target.judge(spent.seconds)


if __name__ == "__main__":
    sys.exit(main({measure: ROUNDS}))
