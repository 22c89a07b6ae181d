"""The file with the keys that are good: who may keep it, how it is read, and how it is changed by one at a time."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from .key_entries import EntriesError, KeyEntry, read_entries, written_entries
from .quoting import shown_path
from .trusted_file import MissingFileError, TrustedFile, TrustedFileError

_MOST_BYTES = 16 << 20


class KeysFileError(Exception):
    """A keys file cannot be used; the text says why, and holds nothing of what is in it."""


def read_keys(path: Path) -> list[KeyEntry]:
    """The keys in the file. Raises KeysFileError: also when others may read or change it."""
    try:
        return read_entries(_trusted(path).read())
    except MissingFileError as error:
        raise KeysFileError(f"{error} The command `keys add` makes it.") from None
    except TrustedFileError as error:
        raise KeysFileError(str(error)) from None
    except EntriesError as error:
        raise KeysFileError(f"The keys file {shown_path(path)} {error}.") from None


def change_keys(path: Path, change: Callable[[list[KeyEntry]], Sequence[KeyEntry]]) -> None:
    """Put what `change` makes of the keys in their place. A file that is not there has none, and is made.

    Whoever reads sees all of the change or nothing of it. Raises KeysFileError, and whatever `change` raises.
    """
    path = Path(os.path.realpath(path))
    try:
        _trusted(path).check_folder()
        with _turn(path):
            _replace(path, written_entries(change(read_keys(path) if path.exists() else [])))
    except TrustedFileError as error:
        raise KeysFileError(str(error)) from None
    except OSError as error:
        raise KeysFileError(f"The keys file {shown_path(path)} cannot be written: {error.strerror}.") from None


def _trusted(path: Path) -> TrustedFile:
    return TrustedFile(path, "keys file", _MOST_BYTES, private=True)


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
