"""Lets go of what is over: runs that ended long ago, with their folders, and folders that no record stands for."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from math import inf
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
        """Forget the runs that ended too long ago, and remove their folders, and old ones of no run. The rest stays."""
        moment = (now or datetime.now(UTC)) - timedelta(seconds=self._keep)
        # The folders go first: whoever is killed in between leaves the records, and with them the rest of the work.
        for run_id in self._runs.ended_before(moment):
            shutil.rmtree(self._folders / run_id, ignore_errors=True)
        self._runs.forget_ended_before(moment)
        # A folder may have lost its record with its database; what was written into it lately may still be in use.
        names = {entry.name for entry in self._folders.iterdir() if _is_of_a_run(entry)}
        for name in names - self._runs.known(names):
            if _last_change(self._folders / name) < moment.timestamp():
                shutil.rmtree(self._folders / name, ignore_errors=True)


def _last_change(folder: Path) -> float:
    """When something in it was written last; never, where that cannot be told, so that it is left alone."""
    try:
        return max(path.stat(follow_symlinks=False).st_mtime for path in (folder, *folder.iterdir()))
    except OSError:
        return inf


def _is_of_a_run(entry: Path) -> bool:
    return RUN_ID.fullmatch(entry.name) is not None and entry.is_dir() and not entry.is_symlink()
