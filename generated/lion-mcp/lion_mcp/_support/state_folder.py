"""Where a server keeps what must outlive it: one folder that belongs to one user alone."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from .quoting import shown_path


class StateFolderError(Exception):
    """There is no folder to keep state in; the text says why, and what to do."""


def state_folder(distribution: str, chosen: Path | None = None) -> Path:
    """The folder for the state of `distribution`, as an absolute path: `chosen`, else one below the user's state home.

    It is made, for nobody but this user, if it is not there. Raises StateFolderError if it cannot be made, is no
    folder, belongs to somebody else, or lets others in.
    """
    folder = (chosen if chosen is not None else _state_home() / distribution).absolute()
    try:
        _make(folder)
        found = folder.stat()
    except OSError as error:
        raise StateFolderError(
            f"The state folder {shown_path(folder)} cannot be made: {error.strerror}.{_OTHER}"
        ) from error
    _check(folder, found)
    return folder


_OTHER = " Choose another one with --state."


def _state_home() -> Path:
    told = Path(os.environ.get("XDG_STATE_HOME") or "")
    if told.is_absolute():  # a relative one would be another folder in every working directory, so it does not count
        return told
    try:
        return Path.home() / ".local" / "state"
    except RuntimeError:
        raise StateFolderError("There is no home folder to keep state in. Choose a folder with --state.") from None


def _make(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return  # what it is and whose it is shows next


def _check(folder: Path, found: os.stat_result) -> None:
    if not stat.S_ISDIR(found.st_mode):
        raise StateFolderError(f"The state folder {shown_path(folder)} is not a folder.{_OTHER}")
    if found.st_uid != os.geteuid():
        raise StateFolderError(f"The state folder {shown_path(folder)} belongs to another user.{_OTHER}")
    if stat.S_IMODE(found.st_mode) & 0o777 != 0o700:
        command = f"chmod 700 {shown_path(shlex.quote(str(folder)))}"
        raise StateFolderError(f"The state folder {shown_path(folder)} must be open to its owner alone. Try: {command}")
