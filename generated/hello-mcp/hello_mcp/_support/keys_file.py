"""The file with the keys that are good: who may keep it, how it is read, and how it is changed by one at a time."""

from __future__ import annotations

import fcntl
import os
import secrets
import shlex
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from .key_entries import EntriesError, KeyEntry, read_entries, written_entries

_MOST_BYTES = 16 << 20
_ROOT = 0
_FOR_OTHERS = stat.S_IWGRP | stat.S_IRWXO
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH

# Differs from an earlier one when the file has changed, or who may do what with it.
Stamp: TypeAlias = tuple[int, ...]


class KeysFileError(Exception):
    """A keys file cannot be used; the text says why, and holds nothing of what is in it."""


def stamp(path: Path) -> Stamp:
    """What tells whether the file is still the one that was read; it costs no more than a few microseconds."""
    try:
        found = path.stat()
    except OSError as error:
        return (error.errno or 0,)
    times = (found.st_mtime_ns, found.st_ctime_ns)
    return (*times, found.st_size, found.st_dev, found.st_ino, found.st_mode, found.st_uid)


def read_keys(path: Path) -> list[KeyEntry]:
    """The keys in the file. Raises KeysFileError: also when others may read or change it."""
    _check_folder(path)
    try:
        text = _read(path)
    except FileNotFoundError:
        raise KeysFileError(f"The keys file {path} is not there. The command `keys add` makes it.") from None
    except OSError as error:
        raise KeysFileError(f"The keys file {path} cannot be read: {error.strerror}.") from None
    if len(text) > _MOST_BYTES:
        raise KeysFileError(f"The keys file {path} is too large.")
    try:
        return read_entries(text)
    except EntriesError as error:
        raise KeysFileError(f"The keys file {path} {error}.") from None


def change_keys(path: Path, change: Callable[[list[KeyEntry]], Sequence[KeyEntry]]) -> None:
    """Put what `change` makes of the keys in their place. A file that is not there has none, and is made.

    Whoever reads sees all of the change or nothing of it. Raises KeysFileError, and whatever `change` raises.
    """
    path = Path(os.path.realpath(path))
    _check_folder(path)
    try:
        with _turn(path):
            _replace(path, written_entries(change(read_keys(path) if path.exists() else [])))
    except OSError as error:
        raise KeysFileError(f"The keys file {path} cannot be written: {error.strerror}.") from None


def _check_folder(path: Path) -> None:
    """Whoever can put another file in its place decides whose keys are good."""
    for folder in {path.absolute().parent, Path(os.path.realpath(path)).parent}:
        try:
            found = folder.stat()
        except OSError as error:
            raise KeysFileError(f"The folder {folder} of the keys file cannot be used: {error.strerror}.") from None
        _check_owner(f"The folder {folder} of the keys file", found)
        if found.st_mode & _WRITABLE_BY_OTHERS and not found.st_mode & stat.S_ISVTX:
            command = f"chmod go-w {shlex.quote(str(folder))}"
            raise KeysFileError(f"The folder {folder} of the keys file can be changed by others. Try: {command}")


def _read(path: Path) -> bytes:
    # Without waiting for anybody, as a pipe in its place would.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _check_file(path, os.fstat(descriptor))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(_MOST_BYTES + 1)
    finally:
        os.close(descriptor)


def _check_file(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise KeysFileError(f"The keys file {path} is not a file.")
    _check_owner(f"The keys file {path}", found)
    if found.st_mode & _FOR_OTHERS:
        command = f"chmod 600 {shlex.quote(str(path))}"
        raise KeysFileError(f"The keys file {path} can be read or changed by others. Try: {command}")


def _check_owner(what: str, found: os.stat_result) -> None:
    if found.st_uid not in (os.geteuid(), _ROOT):
        raise KeysFileError(f"{what} belongs to another user.")


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    """Wait until nobody else changes the file, and keep others waiting. The lock lies beside it, as the file is replaced."""
    flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path.with_name(f"{path.name}.lock"), flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(path: Path, text: bytes) -> None:
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
    _settle(path.parent)


def _settle(folder: Path) -> None:
    """See that the new name is on the disk as well."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
