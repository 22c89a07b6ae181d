"""How long a call takes in a server that is running, as its client sees it."""

import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from .client import AnswerError, Client
from .command import main, turns
from .contestants import BARE, OURS, contestants, prepare
from .report import MICROSECONDS, TIMES, Target, quotient, table, title
from .tool import call, turn, value

ROUNDS: Final = 10
REJECTED: Final = "a rejected op"
CALLS: Final[Mapping[str, dict[str, Any]]] = {
    "help": {"help": True},
    REJECTED: {"ops": [{"op": "state.ls", "args": {"surprise": 1}}]},
    "profile.list": {"ops": [{"op": "profile.list"}]},
    "server.info": {"ops": [{"op": "server.info"}]},
}
TARGET: Final = Target(f"{OURS} / {BARE}", (OURS, BARE), quotient, TIMES, most=1.3)


def measure(folder: Path, rounds: int) -> None:
    """Call each server in turns. The bare one answers with the very results of ours, so that sizes are equal."""
    prepare()
    servers = contestants(folder, _record(folder))
    samples: dict[str, dict[str, list[float]]] = {what: {server.name: [] for server in servers} for what in CALLS}
    with ExitStack() as running:
        clients = {server.name: running.enter_context(server.start()) for server in servers}
        for client in clients.values():
            client.greet()
            _see_that_it_does_the_same(client)
        for _ in turns(rounds):
            for what, arguments in CALLS.items():
                for name, client in clients.items():
                    samples[what][name] += turn(client, arguments)
    title("calls: from sending a request to the end of its reply, over stdio")
    for what, figures in samples.items():
        table(figures, MICROSECONDS, f", {what}")
        TARGET.judge(figures)


def _record(folder: Path) -> Path:
    """A file with what our server answers to each call."""
    place = folder / "answers.json"
    (ours,) = (server for server in contestants(folder) if server.name == OURS)
    with ours.start() as client:
        client.greet()
        answers = [[arguments, call(client, arguments)[1]] for arguments in CALLS.values()]
    place.write_text(json.dumps(answers))
    return place


def _see_that_it_does_the_same(client: Client) -> None:
    """Raises AnswerError if a server does not run what is to be run, or does not reject what is to be rejected."""
    for what, arguments in CALLS.items():
        _, result = call(client, arguments)
        if "ops" in arguments and value(result)["ops"][0]["ok"] is (what == REJECTED):
            raise AnswerError(f"{arguments} was answered with {result}")


if __name__ == "__main__":
    sys.exit(main({measure: ROUNDS}))
