"""The folder of a run, written again under the names of other runs."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOG: Final = "console.log"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """What the files below the folder of a run hold, by their paths in it."""

    run_id: str
    files: dict[Path, bytes]

    @classmethod
    def read(cls, folder: Path) -> "RunFolder":
        """The folder is named by the run."""
        paths = (path for path in folder.rglob("*") if path.is_file())
        return cls(folder.name, {path.relative_to(folder): path.read_bytes() for path in paths})

    def write(self, folder: Path) -> None:
        """Make `folder`, named by another run, with all of these files telling of that one."""
        folder.mkdir(mode=0o700)
        for path, content in self.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content.replace(self.run_id.encode(), folder.name.encode()))


def copy_folders(folder: Path, run_id: str, copies: Iterable[str]) -> None:
    """Put folders of copies in the place of the one that a run has in `folder`."""
    original = RunFolder.read(folder / run_id)
    shutil.rmtree(folder / run_id)
    for copy in copies:
        original.write(folder / copy)
