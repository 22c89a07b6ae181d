"""The descriptors of a stdio connection, moved to where nothing else in the process can read or write them."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass

_FIRST_FREE = 3


@dataclass(frozen=True, slots=True)
class Wire:
    """Descriptors to read messages from and write them to; no child process inherits them."""

    incoming: int
    outgoing: int


def claim() -> Wire:
    """Take standard input and output for the protocol.

    From then on descriptor 0 is empty and 1 is stderr, for this process and its children: a stray print cannot harm.
    """
    wire = Wire(_private(0, os.O_RDONLY), _private(1, os.O_WRONLY))
    _point(0, os.open(os.devnull, os.O_RDONLY))
    _point(1, _private(2, os.O_WRONLY))
    return wire


def _private(descriptor: int, flags: int) -> int:
    """A copy of a standard descriptor beyond the standard ones; of one that is closed, the null device."""
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
    except OSError:
        null = os.open(os.devnull, flags)
        copy = fcntl.fcntl(null, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
        if null != descriptor:
            os.close(null)
        return copy


def _point(descriptor: int, target: int) -> None:
    if target != descriptor:
        os.dup2(target, descriptor)
        os.close(target)
