"""Background runs of a small command line, served by a real admission over contracts as the compiler makes them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from verbc.support.admission import Admission, Request
from verbc.support.argv import flag, positionals
from verbc.support.backend_cli import CliBackend
from verbc.support.backend_jobs import JobsBackend
from verbc.support.binding import Binding, Bindings
from verbc.support.call import Caller
from verbc.support.registry import Verb, from_data

SPEC = """
verbc: 1
server: {name: demo, summary: Runs scripts.}
backends:
  tool: {cli: "${TOOL:-tool}", env: [PATH, "DEMO_*"], fenced: [trust]}
  local: {python: handlers.py}
  runs: {jobs: tool, hooks: local}
verbs:
  look: {summary: Look., effect: read, run: {tool: look}}
  work.submit:
    summary: Start a script.
    params:
      script: {type: string, description: What to do.}
      label: {type: string, description: A name.}
      level: {type: integer, description: How much.}
      cwd: {type: string, description: Where.}
    run: {runs: spawn work, positional: [script], held: [label, cwd]}
  job.status: {summary: Status., run: {runs: status}}
  job.output: {summary: Output., run: {runs: output}}
  job.list: {summary: List., run: {runs: list}}
  job.wait: {summary: Wait., run: {runs: wait}}
  job.kill: {summary: Kill., run: {runs: kill}}
"""
# `tool work --level=3 -- SCRIPT` runs SCRIPT; `tool report RUN` says what it finds in a file.
TOOL = """#!/bin/sh
case "$1" in
work) shift; while [ $# -gt 1 ]; do shift; done; eval "$1" ;;
report) cat "$REPORTS/$2" ;;
*) echo '"else"' ;;
esac
"""


@cache
def contract() -> dict[str, Any]:
    """The registry of the command line, as data."""
    from verbc.pipeline import compile_spec  # servers in processes of their own get by without the compiler

    with TemporaryDirectory() as folder:
        spec = Path(folder) / "demo.yaml"
        spec.write_text(SPEC)
        spec.with_name("handlers.py").touch()
        _, files = compile_spec(spec, "specs/demo.yaml")
    data: dict[str, Any] = json.loads(files["demo_mcp/registry.json"])
    return data


class View:
    """The parameters of a verb, defaults filled in, as the generated models give them."""

    def __init__(self, verb: Verb) -> None:
        self._properties = verb.params["properties"]

    def model_validate(self, arguments: Mapping[str, Any]) -> Any:
        defaults = {name: schema.get("default") for name, schema in self._properties.items()}
        return SimpleNamespace(**{**defaults, **arguments})


class Functions(Bindings):
    """What the compiler makes of the verbs."""

    def __init__(self) -> None:
        super().__init__("none")

    def of(self, verb: Verb) -> Binding:
        view: Any = View(verb)
        if verb.run.target[0] == "spawn":
            return Binding(self._command, view)
        operation = verb.run.target[0]

        async def function(jobs: Any, params: Any, call: Any) -> object:
            return await getattr(jobs, operation)(call, **vars(params))

        return Binding(function, view)

    def _command(self, params: Any) -> list[str]:
        return ["work", *flag("--level", params.level), *positionals(params.script)]


class Demo:
    """A server over a folder: `call` gives a result, or a refusal as data."""

    def __init__(self, folder: Path, hooks: object = None, **limits: Any) -> None:
        data = json.loads((folder / "registry.json").read_text())
        data["backends"]["runs"]["limits"].update(limits)
        self.registry = from_data(data)
        self.state = folder / "state"
        tool = CliBackend(self.registry.backends["tool"], Functions())
        loader: Callable[[], object] | None = None if hooks is None else lambda: hooks
        self.backend = JobsBackend(self.registry, "runs", tool, Functions(), hooks=loader, state=self.state)
        self._admission = Admission(self.registry, {"tool": tool, "runs": self.backend})

    async def call(self, verb: str, caller: str = "local", **arguments: Any) -> Any:
        outcome = await self._admission.admit(Request(verb, arguments, caller=Caller(caller)))
        return outcome.refusal.as_error() if outcome.refusal else outcome.result

    async def submit(self, script: str, **arguments: Any) -> str:
        started = await self.call("work.submit", script=script, **arguments)
        run_id: str = started["run_id"]
        return run_id

    async def wait(self, *run_ids: str) -> Any:
        """The rows of runs once all have ended."""
        waited = await self.call("job.wait", run_ids=list(run_ids), max_wait=50, poll_interval=0.05)
        assert waited["all_terminal"], waited
        return waited["runs"]

    async def status(self, run_id: str) -> Any:
        return await self.call("job.status", run_id=run_id)

    async def kill(self, run_id: str) -> Any:
        return await self.call("job.kill", run_id=run_id)

    async def runs(self) -> Any:
        return (await self.call("job.list", limit=1000))["jobs"]


@asynccontextmanager
async def serving(folder: Path, hooks: object = None, **limits: Any) -> AsyncIterator[Demo]:
    """A server, closed in the end; what it has started goes on."""
    demo = Demo(folder, hooks, **limits)
    try:
        yield demo
    finally:
        await demo.backend.close()


def make_tool(folder: Path) -> Path:
    """The command line, in a folder of its own for PATH; and its registry, in `folder`."""
    (folder / "registry.json").write_text(json.dumps(contract()))
    tool = folder / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text(TOOL)
    tool.chmod(0o700)
    return tool.parent


class Fifo:
    """A pipe with a name: what a script waits for, or what it says."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path, 0o600)

    def __str__(self) -> str:
        return str(self.path)

    async def read(self) -> str:
        """What the next writer says, once it has closed."""
        return await asyncio.to_thread(self.path.read_text)

    async def write(self, text: str = "go\n") -> None:
        """Say something to the next reader."""
        await asyncio.to_thread(self.path.write_text, text)


async def at_once(*works: Coroutine[Any, Any, Any]) -> list[Any]:
    """The results of several calls that are made at the same time."""
    return list(await asyncio.gather(*works))
