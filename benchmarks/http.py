"""What a call costs over HTTP while keys are checked: with one client, and with sixteen."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict
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

ROUNDS: Final = 8
CALLS: Final = {1: 200, 16: 400}  # by the number of clients
LIMITS: Final = {BARE: 0.9, THEIRS: 1.5}  # how many times as fast as these
_PATIENCE_SECONDS: Final = 100.0


class Figures:
    """What calls of each server took, in one revision and with a number of clients, in seconds."""

    def __init__(self, names: Iterable[str], revision: str, clients: int) -> None:
        self.revision = revision
        self.clients = clients
        # With several clients: of all calls of a turn, for one of them.
        self.calls: dict[str, list[float]] = {name: [] for name in names}
        # Of the server's processor, for one call.
        self.processor: dict[str, list[float]] = {name: [] for name in names}

    def take_turn(self, name: str, server: HttpServer, key: str) -> None:
        load = Load(server.port, key, self.revision, self.clients, CALLS[self.clients])
        before = server.processor
        spent = _drive(load)
        after = server.processor
        self.calls[name] += spent.each if self.clients == 1 else [spent.together / load.calls]
        if before is not None and after is not None:
            self.processor[name].append((after - before) / load.all_calls)

    def report(self) -> None:
        suffix = f", {self.revision}, {self.clients} client{'' if self.clients == 1 else 's'}"
        table(self.calls, MICROSECONDS if self.clients == 1 else PER_SECOND, suffix)
        _judge("speed", self.calls)
        if all(self.processor.values()):
            table(self.processor, MICROSECONDS, f"{suffix}, processor")
            _judge("speed by processor", self.processor)


def _judge(what: str, figures: Mapping[str, list[float]]) -> None:
    """By seconds for each call: who needs fewer is faster."""
    for peer, least in LIMITS.items():
        Target(f"{what}, {OURS} / {peer}", (peer, OURS), quotient, TIMES, least=least).judge(figures)


def measure(folder: Path, rounds: int) -> None:
    """Call each server in turns, in every second round the other way round."""
    compared = contestants(folder)
    names = [server.name for server in compared.servers]
    figures = [Figures(names, revision, clients) for clients in CALLS for revision in (LEGACY, MODERN)]
    with ExitStack() as running:
        servers = {server.name: running.enter_context(server.start()) for server in compared.servers}
        _see_that_keys_are_checked(servers)
        for number in turns(rounds):
            for each in figures:
                for name in names[::-1] if number % 2 else names:
                    each.take_turn(name, servers[name], compared.key)
    title("http: from sending a request to the end of its reply; with several clients, replies in a second")
    for each in figures:
        each.report()


def _see_that_keys_are_checked(servers: Mapping[str, HttpServer]) -> None:
    """Raises AnswerError."""
    for name, server in servers.items():
        for revision in (LEGACY, MODERN):
            try:
                see_that_keys_are_checked(server.port, revision)
            except OSError as error:
                raise AnswerError(f"{name} does not answer: {error}") from None


def _drive(load: Load) -> Spent:
    """Make calls in a process of their own. Raises AnswerError."""
    command = (sys.executable, "-m", "benchmarks.http_load")
    order = json.dumps(asdict(load))
    try:
        ended = subprocess.run(
            command, input=order, capture_output=True, text=True, cwd=ROOT, timeout=_PATIENCE_SECONDS, check=True
        )
    except subprocess.CalledProcessError as error:
        raise AnswerError(error.stderr[-2000:]) from None
    except subprocess.TimeoutExpired:
        raise AnswerError("the calls did not come to an end") from None
    return Spent(**json.loads(ended.stdout))


if __name__ == "__main__":
    sys.exit(main({measure: ROUNDS}))
