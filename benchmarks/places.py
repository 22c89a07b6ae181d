"""Where the contestants are, and the environment that all of them get."""

import os
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
OWN: Final = ROOT / ".venv"
LION_MCP: Final = ROOT / "generated" / "lion-mcp"
LIBOS_MCP: Final = ROOT / "generated" / "libos-mcp"
LION_PEER: Final = ROOT / ".peers" / "lion"
MODELS_PEER: Final = ROOT / ".peers" / "dmcg"
FASTMCP_PEER: Final = ROOT / ".peers" / "fastmcp"


class MissingError(Exception):
    """Raised when something that is measured is not there. The message says how to get it."""


def environment(home: Path) -> dict[str, str]:
    """The whole environment of a contestant, whose home folder is `home`.

    It is made from nothing: PYTHONDONTWRITEBYTECODE, or a Python path of the caller's, would falsify the figures.
    """
    return {
        "PATH": os.pathsep.join((str(LION_PEER / "bin"), os.defpath)),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join((str(LION_MCP), str(ROOT))),
        "FASTMCP_CHECK_FOR_UPDATES": "off",
    }


def require(programs: Iterable[Path]) -> None:
    """Raises MissingError, naming the first program that is not there."""
    for program in programs:
        if not program.exists():
            raise MissingError(f"{program.relative_to(ROOT)} is missing; run `make benchmarks` once")


@cache
def compile_bytecode(folder: Path) -> None:
    """Compile whatever is not compiled yet below `folder`, so that no contestant does it while it is measured."""
    python = folder / "bin" / "python"
    # Some packages carry sources for other versions of Python, which do not compile: that is no fault.
    subprocess.run(
        [python if python.exists() else sys.executable, "-m", "compileall", "-qq", folder],
        env={"PATH": os.defpath},
        check=False,
    )
