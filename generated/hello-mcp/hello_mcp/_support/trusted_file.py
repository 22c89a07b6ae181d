"""Files that decide who may do what: who may keep one, how it is read, and how it is told that it has changed."""

from __future__ import annotations

import os
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from .quoting import shown_path

_ROOT: Final = 0
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_OPEN_TO_OTHERS: Final = stat.S_IWGRP | stat.S_IRWXO

# Differs from an earlier one when the file has changed, or who may do what with it.
Stamp: TypeAlias = tuple[int, ...]


class TrustedFileError(Exception):
    """A file cannot be used; the text says why, and holds nothing of what is in it."""


class MissingFileError(TrustedFileError):
    """The file is not there."""


def stamp(path: Path) -> Stamp:
    """What tells whether the file is still the one that was read; it costs no more than a few microseconds."""
    try:
        found = path.stat()
    except OSError as error:
        return (error.errno or 0,)
    times = (found.st_mtime_ns, found.st_ctime_ns)
    return (*times, found.st_size, found.st_dev, found.st_ino, found.st_mode, found.st_uid)


@dataclass(frozen=True, slots=True)
class TrustedFile:
    """A file that only this user, or root, can change. `what` is what messages call it, as "keys file"."""

    path: Path
    what: str
    most_bytes: int
    private: bool  # nobody but this user and his group may read it either

    def read(self) -> bytes:
        """What is in it. Raises TrustedFileError, also when others may change it."""
        self.check_folder()
        try:
            content = self._read()
        except FileNotFoundError:
            raise MissingFileError(f"{self._name} is not there.") from None
        except OSError as error:
            raise TrustedFileError(f"{self._name} cannot be read: {error.strerror}.") from None
        if len(content) > self.most_bytes:
            raise TrustedFileError(f"{self._name} is too large.")
        return content

    def check_folder(self) -> None:
        """Whoever can put another file in its place decides what is in it. Raises TrustedFileError."""
        for folder in {self.path.absolute().parent, Path(os.path.realpath(self.path)).parent}:
            name = f"The folder {shown_path(folder)} of the {self.what}"
            try:
                found = folder.stat()
            except OSError as error:
                raise TrustedFileError(f"{name} cannot be used: {error.strerror}.") from None
            _check_owner(name, found)
            if found.st_mode & _WRITABLE_BY_OTHERS and not found.st_mode & stat.S_ISVTX:
                command = f"chmod go-w {shown_path(shlex.quote(str(folder)))}"
                raise TrustedFileError(f"{name} can be changed by others. Try: {command}")

    @property
    def _name(self) -> str:
        return f"The {self.what} {shown_path(self.path)}"

    def _read(self) -> bytes:
        # Without waiting for anybody, as a pipe in its place would.
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            self._check(os.fstat(descriptor))
            with open(descriptor, "rb", closefd=False) as file:
                return file.read(self.most_bytes + 1)
        finally:
            os.close(descriptor)

    def _check(self, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode):
            raise TrustedFileError(f"{self._name} is not a file.")
        _check_owner(self._name, found)
        path = shown_path(shlex.quote(str(self.path)))
        if self.private and found.st_mode & _OPEN_TO_OTHERS:
            raise TrustedFileError(f"{self._name} can be read or changed by others. Try: chmod 600 {path}")
        if found.st_mode & _WRITABLE_BY_OTHERS:
            raise TrustedFileError(f"{self._name} can be changed by others. Try: chmod go-w {path}")


def _check_owner(name: str, found: os.stat_result) -> None:
    if found.st_uid not in (os.geteuid(), _ROOT):
        raise TrustedFileError(f"{name} belongs to another user.")
