"""The servers over HTTP that are compared: one compiled for this, the least there can be, and FastMCP; all know one key."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from .http_server import HttpServer
from .places import FASTMCP_PEER, OWN, ROOT, compile_bytecode, environment, require
from .processes import FailedError, run

OURS: Final = "generated"
BARE: Final = "bare app"
THEIRS: Final = "FastMCP"

_PYTHON: Final = OWN / "bin" / "python"
_VERBC: Final = OWN / "bin" / "verbc"
_PEER_PYTHON: Final = FASTMCP_PEER / "bin" / "python"
_SPEC: Final = """\
verbc: 1
server: {name: noop, summary: Does nothing.}
surface: tools
serve: {protocols: ["2026-07-28", "2025-06-18"], http: {}}
access: {verify: {keys: "${NOOP_KEYS}"}}
backends: {local: {python: handlers.py}}
verbs:
  noop:
    summary: Does nothing.
    effect: read
    params: {note: string}
    required: [note]
    result: {type: object, properties: {done: boolean}, required: [done]}
    run: {local: noop}
"""
_HANDLERS: Final = '''\
"""Does nothing."""

from noop_mcp.interface import Call, LocalHandlers
from noop_mcp.models import NoopParams


class Handlers(LocalHandlers):
    async def noop(self, params: NoopParams, call: Call) -> dict[str, bool]:
        return {"done": True}
'''


@dataclass(frozen=True, slots=True)
class Contestant:
    """A server, the folder that is both its home and where it runs, and what else is in its environment."""

    name: str
    argv: tuple[str | Path, ...]
    home: Path
    variables: Mapping[str, str] = field(repr=False)

    def start(self) -> HttpServer:
        """Raises AnswerError if it does not come to listen."""
        self.home.mkdir()
        return HttpServer(self.argv, {**environment(self.home), **self.variables}, self.home)


@dataclass(frozen=True, slots=True)
class Contestants:
    """All servers, and the key that they know."""

    servers: tuple[Contestant, ...]
    key: str = field(repr=False)


def contestants(folder: Path) -> Contestants:
    """Compile one server, and make a key that all know. Raises MissingError, FailedError."""
    require((_PYTHON, _VERBC, _PEER_PYTHON))
    package = _compiled(folder)
    for place in (OWN, FASTMCP_PEER, ROOT / "benchmarks", package):
        compile_bytecode(place)
    ours = {"PYTHONPATH": os.pathsep.join((str(package), str(ROOT))), "NOOP_KEYS": str(folder / "keys.json")}
    key = _new_key(environment(folder) | ours)
    theirs = {"BENCHMARK_KEY": key}
    servers = (
        Contestant(BARE, (_PYTHON, "-m", "benchmarks.bare_http_server"), folder / "bare", theirs),
        Contestant(OURS, (_PYTHON, "-m", "noop_mcp", "--port", "0"), folder / "ours", ours),
        Contestant(THEIRS, (_PEER_PYTHON, "-m", "benchmarks.fastmcp_server"), folder / "theirs", theirs),
    )
    return Contestants(servers, key)


def _compiled(folder: Path) -> Path:
    """The folder of the package that the spec stands for."""
    specs = folder / "specs"
    specs.mkdir()
    (specs / "noop.yaml").write_text(_SPEC)
    (specs / "handlers.py").write_text(_HANDLERS)
    run((_VERBC, "generate"), environment(folder), folder)
    return folder / "generated" / "noop-mcp"


def _new_key(variables: Mapping[str, str]) -> str:
    """A key that is added to the file of our server."""
    command = (_PYTHON, "-m", "noop_mcp", "keys", "add", "--subject", "benchmark")
    added = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if added.returncode != 0:
        raise FailedError(f"there is no key: {added.stderr}")
    return added.stdout.strip()
