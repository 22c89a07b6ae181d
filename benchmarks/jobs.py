"""What it costs to start runs in the background, and to look after a thousand of them, as the client sees it."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .client import AnswerError, Client
from .command import main, turns
from .contestants import OURS, THEIRS, Contestant, contestants, prepare
from .report import MILLISECONDS, TENTHS, TIMES, Target, quotient, table, title
from .seeding import TIMED_OUT, OurRecords, Records, TheirRecords, dead_runs, finished_runs
from .stand_ins import waiting_li, with_claude
from .tool import call, run_op, turn, value

ROUNDS: Final = 5
RUNS: Final = 1000
ONE_IN: Final = 25  # of which timed out: 40 in all, so that a filter finds them all and looks for more
DEAD: Final = 10
_SUBMITS: Final = 10  # in a turn; the processes stay until the end
_POLL_SECONDS: Final = 0.02
_PATIENCE_SECONDS: Final = 60.0
_LISTING: Final = {"op": "job.list", "args": {"limit": 50}}
_SUBMIT: Final = "agent.submit"
_ARGUMENTS: Final = {"query": ["claude/sonnet"], "prompt": "Say that it is done.", "label": "benchmark"}


@dataclass(frozen=True, slots=True)
class Side:
    """A server, and what it has on record."""

    server: Contestant
    records: Records


@dataclass(frozen=True, slots=True)
class Read:
    """An op that reads, how many runs its answer has, and how many times as fast as the peer it has to be."""

    name: str
    op: dict[str, Any]
    runs: int
    least: float


def reads(runs: Mapping[str, str]) -> tuple[Read, ...]:
    """What is asked when just these runs are on record, given by their ids with how they ended."""
    example, count = list(runs)[len(runs) // 2], f"{len(runs):,}"
    timed_out = sum(end == TIMED_OUT for end in runs.values())
    return (
        Read("status of a finished run", _op("job.status", run_id=example), 1, 1.0),
        Read(f"list 50 of {count}", _LISTING, min(50, len(runs)), 3.0),
        Read(f"filter {count}, none fits", _op("job.list", status="cancelled"), 0, 3.0),
        Read(f"filter {count}, {timed_out} fit", _op("job.list", status=TIMED_OUT), timed_out, 3.0),
    )


def sides(folder: Path) -> tuple[Side, ...]:
    """Both servers, with homes below `folder`."""
    records: dict[str, type[OurRecords] | type[TheirRecords]] = {OURS: OurRecords, THEIRS: TheirRecords}
    return tuple(
        Side(server, records[server.name](server.home)) for server in contestants(folder) if server.name in records
    )


def seed(both: Sequence[Side], clients: Mapping[str, Client], runs: Mapping[str, str]) -> None:
    """Have each server run one agent, its first run, and put copies of that in its place."""
    started = {name: run_op(client, _submission(client))[1]["run_id"] for name, client in clients.items()}
    for name, client in clients.items():
        _see_its_end(client, started[name])
    for side in both:
        side.records.copy(started[side.server.name], runs)


def measure(folder: Path, rounds: int) -> None:
    """Ask both servers in turns, first for finished runs, then for dead ones; then let them start some."""
    prepare()
    both = sides(folder)
    runs = finished_runs(RUNS, ONE_IN)
    with running(both, with_claude(folder)) as clients:
        seed(both, clients, runs)
    with waiting_li(folder) as li:
        variables = {"LIONAGI_MCP_LI_BIN": str(li)}
        title("jobs: from sending a request to the end of its reply, over stdio")
        with running(both, variables) as clients:
            _measure_reads(clients, rounds, reads(runs))
        with running(both, variables) as clients:
            _measure_dead(both, clients, rounds, next(iter(runs)))
        with running(both, variables) as clients:
            _measure_submits(clients, rounds)


def _measure_reads(clients: Mapping[str, Client], rounds: int, what: Sequence[Read]) -> None:
    for read in what:
        see_that_they_agree(clients, read)
    samples: dict[str, dict[str, list[float]]] = {read.name: {name: [] for name in clients} for read in what}
    for _ in turns(rounds):
        for read in what:
            for name, client in clients.items():
                samples[read.name][name] += turn(client, {"ops": [read.op]})
    for read in what:
        table(samples[read.name], TENTHS, f", {read.name}")
        _target(read.least).judge(samples[read.name])


def _measure_dead(both: Sequence[Side], clients: Mapping[str, Client], rounds: int, like: str) -> None:
    """Every list has new runs to settle. A side goes on only when those of the other are settled."""
    first: dict[str, list[float]] = {name: [] for name in clients}
    settled: dict[str, list[float]] = {name: [] for name in clients}
    for client in clients.values():
        run_op(client, _LISTING)
    for _ in turns(rounds):
        run_ids = dead_runs(DEAD)
        for side in both:
            name = side.server.name
            side.records.add_dead(like, run_ids)
            answered, done = settle(clients[name], run_ids)
            first[name].append(answered)
            settled[name].append(done)
    what = f"list with {DEAD} freshly dead"
    table(first, MILLISECONDS, f", {what}")
    _target(20.0).judge(first)
    table(settled, MILLISECONDS, f", until all {DEAD} are settled")
    _target(1.0).judge(settled)


def _measure_submits(clients: Mapping[str, Client], rounds: int) -> None:
    """The first submit of each turn, on cold caches, is left out."""
    submissions = {name: _submission(client) for name, client in clients.items()}
    samples: dict[str, list[float]] = {name: [] for name in clients}
    for _ in turns(rounds):
        for name, client in clients.items():
            samples[name] += [_submit(client, submissions[name]) for _ in range(_SUBMITS + 1)][1:]
    table(samples, TENTHS, ", submit")
    _target(1.0).judge(samples)


@contextmanager
def running(both: Sequence[Side], variables: Mapping[str, str] | None = None) -> Iterator[dict[str, Client]]:
    """Both servers, greeted, by their names."""
    with ExitStack() as stack:
        clients = {side.server.name: stack.enter_context(side.server.start(variables)) for side in both}
        for client in clients.values():
            client.greet()
        yield clients


def see_that_they_agree(clients: Mapping[str, Client], read: Read) -> None:
    """Raises AnswerError if the servers tell of other runs, or of other ends."""
    told = {}
    for name, client in clients.items():
        _, result = run_op(client, read.op)
        rows = result.get("jobs", [result])
        told[name] = [(row["run_id"], row["status"], row["outcome"], row["terminal"]) for row in rows]
    if any(rows != told[THEIRS] or len(rows) != read.runs for rows in told.values()):
        raise AnswerError(f"{read.op} is answered differently: {told}")


def settle(client: Client, run_ids: Sequence[str]) -> tuple[float, float]:
    """Seconds until a list of dead runs is answered, and until they have ended. Raises AnswerError."""
    began = time.perf_counter()
    answered, result = run_op(client, _LISTING)
    while True:
        done = time.perf_counter() - began
        rows = result["jobs"][: len(run_ids)]
        if [row["run_id"] for row in rows] != run_ids or done > _PATIENCE_SECONDS:
            raise AnswerError(f"The dead runs are not listed, or never settled: {rows}")
        if all(row["terminal"] for row in rows):
            return answered, done
        time.sleep(_POLL_SECONDS)
        _, result = run_op(client, _LISTING)


def _submission(client: Client) -> dict[str, Any]:
    fingerprint = value(call(client, {"help": _SUBMIT})[1])["schema_fingerprint"]
    return {**_op(_SUBMIT, **_ARGUMENTS), "schema_fingerprint": fingerprint}


def _submit(client: Client, submission: Mapping[str, Any]) -> float:
    """The seconds that a submit took. Raises AnswerError if no run was started."""
    seconds, result = run_op(client, submission)
    if result["spawn_state"] != "started":
        raise AnswerError(f"Nothing was started: {result}")
    return seconds


def _see_its_end(client: Client, run_id: str) -> None:
    """Raises AnswerError if the run does not complete, and its process does not go."""
    run_op(client, _op("job.wait", run_ids=[run_id], max_wait=_PATIENCE_SECONDS, poll_interval=0.1))
    until = time.perf_counter() + _PATIENCE_SECONDS
    while (status := run_op(client, _op("job.status", run_id=run_id))[1])["alive"]:
        if time.perf_counter() > until:
            break
        time.sleep(_POLL_SECONDS)
    if status["status"] != "completed" or status["alive"]:
        raise AnswerError(f"The run that is to be copied did not complete: {status}")


def _target(least: float) -> Target:
    return Target(f"{THEIRS} / {OURS}", (THEIRS, OURS), quotient, TIMES, least=least)


def _op(verb: str, **args: Any) -> dict[str, Any]:
    return {"op": verb, "args": args}


if __name__ == "__main__":
    sys.exit(main({measure: ROUNDS}))
