"""Lets go of what is over: records of runs that ended long ago, then the folders that no record stands for."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from .run_record import RUN_ID
from .run_store import RunStore


class RunRetention:
    """Blocks, so it belongs into a thread. `folders` holds a folder for each run; `keep` is in seconds."""

    def __init__(self, runs: RunStore, folders: Path, keep: float) -> None:
        self._runs = runs
        self._folders = folders
        self._keep = keep

    def tidy(self, now: datetime | None = None) -> None:
        """Forget the runs that ended too long ago, and remove every folder without a run. Runs without an end stay."""
        self._runs.forget_ended_before((now or datetime.now(UTC)) - timedelta(seconds=self._keep))
        # A run is on record before it has a folder: what is listed first, and has no record then, has none any more.
        names = [entry.name for entry in self._folders.iterdir() if _is_of_a_run(entry)]
        for name in set(names) - self._runs.known(names):
            shutil.rmtree(self._folders / name, ignore_errors=True)


def _is_of_a_run(entry: Path) -> bool:
    return RUN_ID.fullmatch(entry.name) is not None and entry.is_dir() and not entry.is_symlink()
