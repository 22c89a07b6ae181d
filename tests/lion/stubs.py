"""The stand-ins for `li` and for `claude`, each in a folder of its own."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .meetings import Meeting
from .servers import ROOT

DATA = ROOT / "tests" / "data"


@dataclass(frozen=True, slots=True)
class StubLi:
    """A `li` that tests tell what to do: tests/data/stub_runs.py in a folder."""

    folder: Path

    @classmethod
    def made_in(cls, folder: Path) -> StubLi:
        stub = cls(folder)
        (folder / "settings").touch()
        words = shlex.join((sys.executable, "-I", str(DATA / "stub_runs.py")))
        stub.program.write_text(
            f"#!/bin/sh\nset -a\nLIONAGI_STUB_FOLDER={shlex.quote(str(folder))}\n"
            f'. {shlex.quote(str(folder / "settings"))}\nexec {words} "$@"\n'
        )
        stub.program.chmod(0o755)
        return stub

    @property
    def program(self) -> Path:
        return self.folder / "li"

    def tell(self, **values: object) -> None:
        """Settings of stub_li.py, from its next start on."""
        lines = [f"LIONAGI_STUB_{name.upper()}={shlex.quote(str(value))}\n" for name, value in values.items()]
        (self.folder / "settings").write_text("".join(lines))

    def lifecycle_says(self, status: str) -> None:
        (self.folder / "lifecycle").write_text(status)

    def meeting(self, name: str) -> Meeting:
        return Meeting(self.folder, name)

    def starts(self) -> list[dict[str, Any]]:
        """The runs that were started, in order."""
        path = self.folder / "starts"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@dataclass(frozen=True, slots=True)
class FakeClaude:
    """A `claude` that tests tell what to do by the prompt: the script fake_claude in a folder."""

    folder: Path

    @classmethod
    def made_in(cls, folder: Path) -> FakeClaude:
        program = folder / "claude"
        shutil.copyfile(Path(__file__).with_name("fake_claude"), program)
        program.chmod(0o755)
        return cls(folder)

    @property
    def variables(self) -> Mapping[str, str]:
        """What a server needs so that its runs find it."""
        return {"PATH": f"{self.folder}:/usr/bin:/bin"}

    def meeting(self, name: str) -> Meeting:
        return Meeting(self.folder, name)

    def prompts(self) -> list[str]:
        """All that it was asked, in no order."""
        return [path.read_text() for path in (self.folder / "prompts").glob("*")]
