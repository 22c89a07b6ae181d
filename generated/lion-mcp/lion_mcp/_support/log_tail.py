"""The end of a log, read backwards in bounded pieces, whatever was written into it and however long it is."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .foreign_text import escaped

PIECE_BYTES: Final = 64 * 1024
_LEAST_BYTES: Final = 512  # fewer are not worth a look
_CHARACTER_BYTES: Final = 4  # the most that one takes in UTF-8
_FIRST_BYTES: Final = bytes(byte for byte in range(256) if byte & 0xC0 != 0x80)  # every other one continues a character
# A link is not followed, and a pipe not waited for: a log is a plain file that the run was given.
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_NO_LOG: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EISDIR})

_REMOVED: Final = " (deleted)"

Read = Callable[[int, int, int], bytes]


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a log."""

    text: str  # control and bidi characters escaped, except for line breaks and tabs
    log_bytes: int  # how long the whole log is
    truncated: bool  # it holds more before this


def tail(path: Path, characters: int, read: Read = os.pread) -> Tail | None:
    """The last `characters` of a log, counted after escaping; None: there is no log, or no plain file in its place.

    Reads about as many bytes as these take, 4 * characters + 4 at most, and as many once more if the log is cut short
    meanwhile; what is no UTF-8 is replaced. Raises OSError when the log cannot be read.
    """
    try:
        log = os.open(path, _FLAGS)
    except OSError as error:
        if error.errno in _NO_LOG:
            return None
        raise
    try:
        if not stat.S_ISREG(os.fstat(log).st_mode):
            return None
        return _tail(log, max(0, characters), read)
    finally:
        os.close(log)


def length(path: Path, leader: int) -> int:
    """How many bytes were written to a log, also where the process that leads the run has removed it; 0: not known.

    What lies in its place, such as a link to another file, is no log.
    """
    lengths = [0]
    with suppress(OSError):
        found = path.stat(follow_symlinks=False)
        lengths += [found.st_size] if stat.S_ISREG(found.st_mode) else []
    for descriptor in (1, 2):
        with suppress(OSError):  # only Linux tells what a process has open
            opened = f"/proc/{leader}/fd/{descriptor}"
            if os.readlink(opened) == f"{path}{_REMOVED}":
                lengths.append(os.stat(opened).st_size)
    return max(lengths)


def _tail(log: int, characters: int, read: Read) -> Tail:
    size = os.fstat(log).st_size
    data, start, whole = _end(log, size, characters, read)
    if not whole:
        size = os.fstat(log).st_size
        data, start, _ = _end(log, size, characters, read)
    # What is torn at the front is more than was asked for, and is cut off with that.
    text, cut = _fitting(data.decode(errors="replace"), characters)
    return Tail(text, size, start > 0 or cut)


def _end(log: int, size: int, characters: int, read: Read) -> tuple[bytes, int, bool]:
    """The last bytes of a log of `size`, enough for `characters`, and where they start; false: it has become shorter."""
    least = max(0, size - _CHARACTER_BYTES * (characters + 1))
    start = size
    data = b""
    while characters > 0 and start > least:
        count = min(PIECE_BYTES, start - least, max(characters, _LEAST_BYTES))
        start -= count
        piece = _piece(log, count, start, read)
        if len(piece) < count:
            return piece, start, False
        data = piece + data
        characters -= _beginning_in(piece)
    return data, start, True


def _piece(log: int, count: int, offset: int, read: Read) -> bytes:
    data = b""
    while len(data) < count and (more := read(log, count - len(data), offset + len(data))):
        data += more
    return data


def _beginning_in(data: bytes) -> int:
    """At least how many characters begin in these bytes."""
    return len(data) - len(data.translate(None, _FIRST_BYTES))


def _fitting(text: str, characters: int) -> tuple[str, bool]:
    """The end of a text, escaped, that has at most so many characters; and whether something was left out."""
    kept = text[max(0, len(text) - characters) :]
    shown = escaped(kept)
    left_out = 0
    for character in kept:
        if len(shown) - left_out <= characters:
            break
        left_out += len(escaped(character))
    return shown[left_out:], left_out > 0 or len(kept) < len(text)
