"""Reads files that others write: regular ones only, whatever they are, and no more of them than is wanted."""

import json
import os
import stat
from pathlib import Path
from typing import NoReturn


class UnreadableError(Exception):
    """A file cannot be read, or is not what it should be; the text says why, in a sentence about "it"."""


class MissingError(UnreadableError):
    """There is no such file."""


def content_of(path: Path, most: int) -> bytes:
    """The whole of a file of at most `most` bytes. Raises UnreadableError, or MissingError when there is none."""
    content = start_of(path, most + 1)
    if len(content) > most:
        raise UnreadableError("It is too large.")
    return content


def start_of(path: Path, most: int) -> bytes:
    """The first `most` bytes of a file. Raises UnreadableError, or MissingError when there is none."""
    try:
        # A pipe would be waited for without this, perhaps for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise MissingError("It is not there.") from None
    except (OSError, ValueError):
        raise UnreadableError("It cannot be opened.") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnreadableError("It is no file.")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most)
    except OSError:
        raise UnreadableError("It cannot be read.") from None
    finally:
        os.close(descriptor)


def text_of(path: Path, most: int) -> str:
    """The whole of a UTF-8 file of at most `most` bytes. Raises UnreadableError."""
    try:
        return content_of(path, most).decode()
    except UnicodeDecodeError:
        raise UnreadableError("It is not UTF-8.") from None


def json_of(path: Path, most: int) -> object:
    """The JSON value in a file of at most `most` bytes. Raises UnreadableError."""
    try:
        value: object = json.loads(text_of(path, most), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise UnreadableError("It is not JSON.") from None
    return value


def object_of(path: Path, most: int) -> dict[str, object]:
    """The JSON object in a file of at most `most` bytes. Raises UnreadableError."""
    value = json_of(path, most)
    if not isinstance(value, dict):
        raise UnreadableError("It holds no JSON object.")
    return value


def leads_into(path: Path, folder: Path) -> bool:
    """Whether a path is below a folder once all links are followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _refuse_constant(name: str) -> NoReturn:
    """NaN and the infinities are not JSON, though Python reads them."""
    raise ValueError(name)
