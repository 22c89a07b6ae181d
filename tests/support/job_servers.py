"""Servers over a folder in processes of their own, to be killed at a write of their store, or to share the folder.

python -m tests.support.job_servers <folder> <line>...     does what each line says, a line being a verb and its arguments
as JSON, where `<run>` is the last run, and says each result as a line of JSON; then it waits for the end of its input.

python -m tests.support.job_servers                        reads lines of JSON with folder, point, lines and environment:
for each one it lets a server do the same until that is killed, as its store reaches the point, and says how it ended.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verbc.support import run_keeper, store
from verbc.support.job_hooks import Ask
from verbc.support.run_record import End, RunRecord

from .jobs import serving

SECONDS = 60

assert run_keeper  # loaded before anything forks


@dataclass
class Noting:
    """Hooks that note in a file what they are told of; they report what a file says, if there is one."""

    folder: Path

    async def runs_ended(self, record: RunRecord, ask: Ask | None) -> End | None:
        report = self.folder / "report"
        return End(report.read_text(), "failed", "lifecycle") if report.exists() else None

    async def runs_settled(self, record: RunRecord) -> dict[str, Any]:
        assert record.end is not None
        with (self.folder / "settled").open("a") as file:
            file.write(f"{record.run_id} {record.end.outcome}\n")
        return {"told": True}


def hooks_of(folder: Path) -> Noting | None:
    """Hooks, where the folder has a place for what they are told."""
    return Noting(folder) if (folder / "settled").exists() else None


async def serve(folder: Path, lines: list[str]) -> None:
    run_id = ""
    async with serving(folder, hooks_of(folder), grace=0.2) as demo:
        for line in lines:
            verb, arguments = json.loads(line)
            arguments = {name: run_id if value == "<run>" else value for name, value in arguments.items()}
            result = await demo.call(verb, **arguments)
            run_id = result.get("run_id", run_id)
            print(json.dumps(result), flush=True)  # noqa: T201
        await asyncio.to_thread(sys.stdin.read)


def crash(folder: str, point: str, lines: list[str], environment: dict[str, str]) -> int:
    """How a server ended that is killed at a point."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.alarm(SECONDS)
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(os.pipe()[0], 0)  # an input that does not end
    os.dup2(2, 1)
    store.fault = lambda reached: os.kill(os.getpid(), signal.SIGKILL) if reached == point else None
    asyncio.run(serve(Path(folder), lines))
    os._exit(1)


def main(*arguments: str) -> None:
    if arguments:
        signal.alarm(SECONDS)
        asyncio.run(serve(Path(arguments[0]), list(arguments[1:])))
        return
    for line in sys.stdin:
        print(crash(**json.loads(line)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
