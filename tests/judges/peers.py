"""The independent judges: where `make peers` puts them, and how they are asked."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NODE = ROOT / ".peers" / "node"
INSPECTOR = NODE / "node_modules" / ".bin" / "mcp-inspector"
TYPESCRIPT_SDK = NODE / "node_modules" / "@modelcontextprotocol" / "sdk"
PROBE = ROOT / ".peers" / "probe" / "bin" / "amagi-mcp-probe"
MCPCHECK = ROOT / ".peers" / "mcpcheck" / "bin" / "mcpcheck"
CONFORMANCE = ROOT / ".peers" / "conformance"
CLIENT = Path(__file__).with_name("client.mjs")

GIVE_UP_AFTER = 600  # seconds, so that a judge that hangs fails its test


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server over HTTP, and the key that it is called with."""

    url: str
    key: str | None = field(default=None, repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """What each request has to have, beside what the protocol wants."""
        return {} if self.key is None else {"Authorization": f"Bearer {self.key}"}

    def header_options(self) -> list[str]:
        """The same as options of a command."""
        return [word for name, value in self.headers.items() for word in ("--header", f"{name}: {value}")]


Server = Path | Endpoint  # a program that speaks over stdio, or one over HTTP


def peer(path: Path) -> Path:
    """A judge's own file; the test fails when it was never installed."""
    if not path.exists():
        pytest.fail(f"There is no {path.relative_to(ROOT)}: run `make peers`.")
    return path


def ran(
    command: Iterable[str | Path], *, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A program that was run to its end, whatever its exit code."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=GIVE_UP_AFTER,
        check=False,
    )


def output(command: Iterable[str | Path], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """The stdout of a program that has to succeed."""
    done = ran(command, cwd=cwd, env=env)
    assert done.returncode == 0, f"{command} left with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


def inspected(server: Server, era: str, *options: str) -> tuple[int, dict[str, Any]]:
    """Exit code and result of one request that the Inspector sends."""
    fixed = ["--cli", "--protocol-era", era, "--format", "json", "-q"]
    if isinstance(server, Endpoint):
        where: list[str | Path] = ["--transport", "http", "--server-url", server.url, *server.header_options()]
    else:
        where = ["--", server]
    done = ran([peer(INSPECTOR), *fixed, *options, *where])
    assert done.stdout.strip(), done.stderr
    return done.returncode, json.loads(done.stdout)["result"]


def inspected_call(server: Server, era: str, tool: str, arguments: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """The same for `tools/call`."""
    options = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)]
    return inspected(server, era, *options)


def through_typescript(server: Server, calls: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """What the client of the TypeScript SDK saw: `server`, `tools` and `answers`."""
    peer(TYPESCRIPT_SDK)
    where: dict[str, Any]
    if isinstance(server, Endpoint):
        where = {"url": server.url, "headers": server.headers}
    else:
        where = {"command": [str(server)]}
    request = {**where, "calls": [{"name": name, "arguments": given} for name, given in calls]}
    seen = json.loads(output(["node", CLIENT, json.dumps(request)], cwd=NODE))
    assert isinstance(seen, dict)
    return seen
