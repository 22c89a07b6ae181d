"""The servers that are compared: the generated one, the one it replaces, and the least there can be."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .client import Client
from .places import LION_MCP, LION_PEER, OWN, ROOT, compile_bytecode, environment, require

OURS: Final = "lion-mcp"
THEIRS: Final = "li mcp"
BARE: Final = "bare server"


@dataclass(frozen=True, slots=True)
class Contestant:
    """A server, and the folder that is both its home and where it runs."""

    name: str
    argv: tuple[str | Path, ...]
    home: Path

    def start(self, variables: Mapping[str, str] | None = None) -> Client:
        """Start it, with `variables` over those of its environment."""
        self.home.mkdir(exist_ok=True)
        return Client(self.argv, {**environment(self.home), **(variables or {})}, self.home)


def contestants(folder: Path, answers: Path | None = None) -> tuple[Contestant, ...]:
    """All servers, with homes below `folder`. The bare one answers what the file `answers` says."""
    python = OWN / "bin" / "python"
    bare: tuple[str | Path, ...] = (python, "-m", "benchmarks.bare_server", *([answers] if answers else []))
    return (
        Contestant(BARE, bare, folder / "bare"),
        Contestant(OURS, (python, "-m", "lion_mcp"), folder / "ours"),
        Contestant(THEIRS, (LION_PEER / "bin" / "li", "mcp"), folder / "theirs"),
    )


def prepare() -> None:
    """Raises MissingError if a server is not there."""
    require((OWN / "bin" / "python", LION_PEER / "bin" / "li", LION_MCP / "lion_mcp"))
    for folder in (OWN, LION_PEER, LION_MCP, ROOT / "benchmarks"):
        compile_bytecode(folder)
