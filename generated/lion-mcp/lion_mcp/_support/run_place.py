"""Where the runs of one backend are kept: their records in a store, and a folder for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .job_refusals import refusals
from .run_store import COMPONENT, RunStore
from .sqlite_file import SqliteFile
from .state_folder import StateFolderError, state_folder
from .store import Store


@dataclass(frozen=True, slots=True)
class Place:
    """Where the runs of one backend are kept."""

    store: Store
    runs: RunStore
    folders: Path


def open_place(distribution: str, backend: str, chosen: Path | None) -> Place:
    """The records and the folders of a backend, both named after it, in the state folder. Blocks. Raises Refusal."""
    with refusals():
        folder = state_folder(distribution, chosen)
        folders = folder / backend
        try:
            folders.mkdir(mode=0o700, exist_ok=True)
        except OSError:
            raise StateFolderError(f"The folder {folders} cannot be made.") from None
        store = Store(SqliteFile(folder / f"{backend}.db"), [COMPONENT])
        return Place(store, RunStore(store, folders), folders)
