"""A standard error that never waits for its reader: what it has no room for is dropped."""

from __future__ import annotations

import io
import os
import select
import threading
from typing import Final

# A pipe that has room takes this much at once.
PIECE: Final = select.PIPE_BUF


class _Dropping(io.RawIOBase):
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()  # between the look for room and the write, no other thread may take it
        self._torn = False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        """Write what there is room for, piece by piece; say that all of it was written."""
        with self._lock:
            # What follows a text that was cut begins a line of its own.
            whole = b"\n" * self._torn + bytes(data)
            for start in range(0, len(whole), PIECE):
                if not self._write(whole[start : start + PIECE]):
                    self._torn |= start > 0
                    break
                self._torn = False
        return len(data)

    def _write(self, piece: bytes) -> bool:
        try:
            if not select.select([], [self._descriptor], [], 0)[1]:
                return False
            os.write(self._descriptor, piece)
        except (OSError, ValueError):
            return False
        return True


def unhurried(descriptor: int = 2) -> io.TextIOWrapper:
    """Text for a descriptor; writing to it never blocks and never fails."""
    raw: io.RawIOBase = _Dropping(descriptor)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)  # type: ignore[arg-type]
