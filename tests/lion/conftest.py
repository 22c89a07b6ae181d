"""The two servers, side by side, each in a home of its own."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from .mcp_process import McpProcess
from .servers import GENERATED, PEER, ROOT, start_ours, start_theirs

STUB = ROOT / "tests" / "data" / "stub_li.py"


@dataclass(frozen=True, slots=True)
class Side:
    """A running server, its home and the folder it was started in."""

    server: McpProcess
    home: Path
    folder: Path


@dataclass(frozen=True, slots=True)
class Pair:
    """The real server and the generated one."""

    theirs: Side
    ours: Side


@pytest.fixture(scope="session")
def li() -> Path:
    """The real command line."""
    if not (PEER / "li").is_file():
        pytest.fail("There is no lionagi to compare with: run `make peers`.")
    return PEER / "li"


@pytest.fixture(scope="session")
def lion_mcp() -> Path:
    """The folder of the generated package."""
    if not (GENERATED / "lion_mcp" / "registry.json").is_file():
        pytest.fail("There is no generated lion-mcp: run `make generate`.")
    return GENERATED


@pytest.fixture(scope="session")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that stands in for `li`. Before each run it reads its settings from the file `settings` beside it."""
    folder = tmp_path_factory.mktemp("stub")
    (folder / "settings").touch()
    program = folder / "li"
    program.write_text(
        f'#!/bin/sh\nset -a\n. {shlex.quote(str(folder / "settings"))}\nexec {shlex.join((sys.executable, "-I", str(STUB)))} "$@"\n'
    )
    program.chmod(0o755)
    return program


@pytest.fixture(scope="module")
def pair(li: Path, lion_mcp: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both servers, started once for a module."""
    with contextlib.ExitStack() as stack:
        sides = []
        for name, start in (("theirs", start_theirs), ("ours", start_ours)):
            home, folder = tmp_path_factory.mktemp(f"{name}-home"), tmp_path_factory.mktemp(f"{name}-folder")
            sides.append(Side(stack.enter_context(start(home, folder)), home, folder))
        yield Pair(*sides)
