"""Server-sent events as they come in: the messages in them, each of at most so many bytes."""

from __future__ import annotations

import re

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventTooLargeError(Exception):
    """An event has more bytes than it may have."""


class Events:
    """Takes bytes, and gives back what events hold; those without data are none."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._buffer = bytearray()
        self._searched = 0
        self._data: list[bytes] = []
        self._size = 0
        self._skip_newline = False  # the last byte was a carriage return, which may be the first half of a line end
        self._first = True

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that end in `chunk`. Raises EventTooLargeError."""
        found = []
        self._buffer += chunk
        start = 0
        if self._skip_newline and self._buffer:
            start = int(self._buffer.startswith(b"\n"))
            self._skip_newline = False
        position = max(start, self._searched)
        while (end := _LINE_END.search(self._buffer, position)) is not None:
            line = bytes(self._buffer[start : end.start()])
            start = position = end.end()
            if (event := self._line(line)) is not None:
                found.append(event)
        self._skip_newline = start == len(self._buffer) and self._buffer.endswith(b"\r")
        del self._buffer[:start]
        self._searched = len(self._buffer)
        if self._size + len(self._buffer) > self._most:
            raise EventTooLargeError
        return found

    def _line(self, line: bytes) -> bytes | None:
        if self._first:
            self._first = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            data, self._data, self._size = self._data, [], 0
            return b"\n".join(data) or None
        name, _, value = line.partition(b":")
        self._size += len(line)
        if self._size > self._most:
            raise EventTooLargeError
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        return None
