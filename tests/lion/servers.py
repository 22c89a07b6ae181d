"""The servers that are compared: the real `li mcp`, and the generated lion-mcp that drives the same `li`."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.warm_starts import start

from .mcp_process import McpProcess

ROOT = Path(__file__).parents[2]
PEER = ROOT / ".peers" / "lion" / "bin"  # `make peers` installs lionagi there
GENERATED = ROOT / "generated" / "lion-mcp"


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a server gets: programs, a home of its own, and nothing that goes out to the network by itself."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "LIONAGI_HOME": str(home / ".lionagi"),
        "LANG": "C.UTF-8",
        "FASTMCP_CHECK_FOR_UPDATES": "off",
        **(more or {}),
    }


def start_theirs(home: Path, cwd: Path, more: Mapping[str, str] | None = None) -> McpProcess:
    """`li mcp`."""
    return McpProcess(partial(subprocess.Popen, [PEER / "li", "mcp"], env=environment(home, more)), cwd)


def start_ours(
    home: Path,
    cwd: Path,
    li: str | Path = PEER / "li",
    more: Mapping[str, str] | None = None,
    program: Sequence[str] = ("-m", "lion_mcp"),
) -> McpProcess:
    """lion-mcp, with `li` as the command that it drives; `program` is what Python is told to run."""
    variables = {"PYTHONPATH": str(GENERATED), "LIONAGI_MCP_LI_BIN": str(li), **(more or {})}
    return McpProcess(partial(start, program, env=environment(home, variables)), cwd)
