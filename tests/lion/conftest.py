"""The two servers, side by side, each in a home of its own."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from .hanging import Runs
from .mcp_process import McpProcess
from .servers import GENERATED, PEER, ROOT, start_ours, start_theirs

Answer = TypeVar("Answer")
Misbehave = Callable[..., None]

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

    def both(self, ask: Callable[[Side], Answer]) -> tuple[Answer, Answer]:
        """What `ask` gets from either side, both asked at the same time."""
        with ThreadPoolExecutor(max_workers=2) as pool:
            theirs, ours = pool.map(ask, (self.theirs, self.ours))
        return theirs, ours


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


@pytest.fixture(scope="session")
def server(lion_mcp: Path, stub: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpProcess]:
    """lion-mcp over the stub, started once for all tests that do not care what was asked before."""
    with start_ours(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("folder"), stub) as started:
        yield started


@pytest.fixture
def misbehave(stub: Path) -> Iterator[Misbehave]:
    """Tells the stub what to do from its next run on: `misbehave(mode="nan", exit=3)`."""
    settings = stub.with_name("settings")

    def tell(**values: object) -> None:
        lines = [f"LIONAGI_STUB_{name.upper()}={shlex.quote(str(value))}\n" for name, value in values.items()]
        settings.write_text("".join(lines))

    yield tell
    settings.write_text("")


@pytest.fixture
def hanging() -> Iterator[Runs]:
    runs = Runs()
    yield runs
    runs.close()
