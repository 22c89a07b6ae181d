"""Homes that several servers share, one after the other or at the same time."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .mcp_process import McpProcess
from .servers import GENERATED, PEER, start_ours


@dataclass(frozen=True, slots=True)
class Place:
    """A home, a folder in which each server gets one of its own, and the `li` that they drive."""

    home: Path
    folder: Path
    li: Path = PEER / "li"
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def made_in(cls, folder: Path, li: Path = PEER / "li", variables: Mapping[str, str] | None = None) -> Place:
        for name in ("home", "servers"):
            (folder / name).mkdir()
        return cls(folder / "home", folder / "servers", li, variables or {})

    @property
    def state(self) -> Path:
        """What the servers keep."""
        return self.home / ".local" / "state" / "lion-mcp"

    def server(self, more: Mapping[str, str] | None = None, program: Sequence[str] = ("-m", "lion_mcp")) -> McpProcess:
        """One more server."""
        cwd = Path(tempfile.mkdtemp(dir=self.folder))
        return start_ours(self.home, cwd, self.li, {**self.variables, **(more or {})}, program)

    def files(self) -> list[Path]:
        """All that the servers keep, files and folders."""
        return sorted(self.state.rglob("*"))


def package_with(folder: Path, **limits: float) -> Mapping[str, str]:
    """A copy of lion-mcp whose background runs have other limits, as variables for a server."""
    shutil.copytree(GENERATED / "lion_mcp", folder / "lion_mcp")
    path = folder / "lion_mcp" / "registry.json"
    registry = json.loads(path.read_text())
    (backend,) = (backend for backend in registry["backends"].values() if backend["kind"] == "jobs")
    assert limits.keys() <= backend["limits"].keys()
    backend["limits"].update(limits)
    path.write_text(json.dumps(registry))
    return {"PYTHONPATH": str(folder)}
