"""The page about governing MCP servers is followed as it stands: its commands are run, and print what it shows.

A block of commands belongs to the operator's terminal, or by a comment to the agent's. What it prints stands in the block of
text after it; one without that prints nothing. How things are installed is not run: all of it is put in place here, from
what `make peers` has installed.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.judges.workshop import empty_environment, site_packages

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "gateway.md"
BLOCK: Final = re.compile(r"(?ms)^(?:<!-- (?P<mark>[a-z]+) -->\n)?```(?P<language>console|text)\n(?P<text>.*?)^```$")
SETUP, AGENT, OPERATOR = "setup", "agent", ""
PATIENCE: Final = 60.0  # seconds for one block

# What differs from run to run. The right to start a program is a digest of its command line, and never differs.
MASKS: Final = {
    r"(?<!mcp_stdio:)\b[0-9a-f]{64}\b": "<sha256>",
    r"\b[0-9a-f]{12}\b": "<start of a sha256>",
    r"\bappr_[0-9a-f]{20}\b": "<approval>",
    r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?(Z|[+-]\d\d:\d\d)": "<moment>",
    r'"day_of_week": "[A-Z][a-z]+day"': "<weekday>",
}


@dataclass(frozen=True, slots=True)
class Step:
    """Commands of the page, and what it shows that they print."""

    line: int
    terminal: str
    commands: str
    shown: str


def steps() -> list[Step]:
    """What is to be done, in the order of the page."""
    page = PAGE.read_text(encoding="utf-8")
    found = [block for block in BLOCK.finditer(page) if block["mark"] != SETUP]
    return [
        Step(
            page.count("\n", 0, block.start()) + 1,
            block["mark"] or OPERATOR,
            block["text"],
            after["text"] if after is not None and after["language"] == "text" else "",
        )
        for block, after in zip(found, [*found[1:], None], strict=True)
        if block["language"] == "console"
    ]


def masked(text: str) -> str:
    for pattern, name in MASKS.items():
        text = re.sub(pattern, name, text)
    return text


class Terminal:
    """A shell that stays, as variables do that are set in it."""

    def __init__(self, process: subprocess.Popen[bytes], printed: Path) -> None:
        self._process = process
        self._printed = printed

    def run(self, commands: str) -> tuple[int, str]:
        """The exit code of the last command, and what all of them print."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        whole = f"{{\n{commands}\n}} >'{self._printed}' 2>&1 </dev/null; echo $?\n"
        self._process.stdin.write(whole.encode())
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        assert ready, f"This does not end:\n{commands}{self._printed.read_text()}"
        code = self._process.stdout.readline()
        return int(code), self._printed.read_text()


@contextmanager
def terminal(folder: Path, variables: Mapping[str, str], printed: Path) -> Iterator[Terminal]:
    """One that is open while this lasts; nobody can be asked for anything in it."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        ["bash", "--norc"], bufsize=0, cwd=folder, env=variables, stdin=pipe, stdout=pipe, start_new_session=True
    ) as process:
        try:
            yield Terminal(process, printed)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # with whatever did not end


def set_up(folder: Path) -> None:
    """What the commands of the page would install."""
    (folder / "notes").mkdir(parents=True)
    shutil.copy(ROOT / "examples" / "libos" / "call.py", folder)
    environment = folder / ".venv"
    python = empty_environment(environment, seeing=Path(sys.prefix))
    (site_packages(environment) / "libos.pth").write_text(f"{ROOT / 'generated' / 'libos-mcp'}\n", encoding="utf-8")
    command = python.with_name("libos-mcp")
    command.write_text(f"#!/bin/sh\nexec '{python}' -m libos_mcp \"$@\"\n", encoding="utf-8")
    command.chmod(0o755)
    node = shutil.which("node")
    assert node is not None, "There is no Node.js on PATH."
    for name, place in {
        "mcp-server-time": ROOT / ".peers" / "time" / "bin" / "mcp-server-time",
        "mcp-server-filesystem": ROOT / ".peers" / "servers" / "node_modules" / ".bin" / "mcp-server-filesystem",
        "node": Path(node),
    }.items():
        assert place.is_file(), f"There is no {name} to be a gateway to: run `make peers`."
        python.with_name(name).symlink_to(place)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    set_up(tmp_path / "governed")
    return tmp_path / "governed"


def test_the_commands_of_the_page_do_what_it_says(folder: Path, tmp_path: Path) -> None:
    bin_folder = folder / ".venv" / "bin"
    agents = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    operators = {**agents, "PATH": f"{bin_folder}{os.pathsep}{agents['PATH']}"}
    with (
        terminal(folder, operators, tmp_path / "operator.out") as operator,
        terminal(folder, agents, tmp_path / "agent.out") as agent,
    ):
        for step in steps():
            code, printed = (agent if step.terminal == AGENT else operator).run(step.commands)
            assert masked(printed) == masked(step.shown), f"{PAGE.name}:{step.line}"
            # The agent's calls may be refused.
            assert code == 0 or step.terminal == AGENT, f"{PAGE.name}:{step.line}"
    assert (folder / "notes" / "todo.txt").read_text() == "Buy milk."


def test_the_page_has_both_sides_of_it() -> None:
    found = steps()
    assert {step.terminal for step in found} == {AGENT, OPERATOR}
    assert [word for word in ("denied: ", "pending: ", "ok: ", "Approved ") if not shows(found, word)] == []


def shows(found: list[Step], beginning: str) -> bool:
    return any(step.shown.startswith(beginning) for step in found)
