"""What commands print: what was asked for on stdout, all else on stderr, and an exit code that tells whether it got there."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import Any, Final

# What a shell gives for a program that SIGPIPE has ended.
_BROKEN_PIPE: Final = 128 + 13


def prepare_stdout() -> None:
    """Let every character be printed: a terminal may not know all of them. What is closed takes nothing."""
    for descriptor in range(3):
        # Otherwise the next file that is opened would be stdin, stdout or stderr.
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def printed(lines: Iterable[str], program: str) -> int:
    """Print lines, and return the exit code: that of a broken pipe where the reader has gone, 1 where nothing fits."""
    if sys.stdout is None:
        return failed(program, "Cannot print: stdout is closed.")
    try:
        for line in lines:
            print(line)  # noqa: T201
        sys.stdout.flush()
    except OSError as error:
        # What is left in the buffer would fail once more at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):
            return _BROKEN_PIPE
        return failed(program, f"Cannot print: {error.strerror}.")
    return 0


def failed(program: str, sentence: str) -> int:
    """Say why `program` could not do what it was asked for, and return the exit code."""
    tell(program, sentence)
    return 1


def tell(program: str, sentence: str) -> None:
    """Say something that is no result, where anybody listens."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"{program}: {sentence}", file=sys.stderr, flush=True)  # noqa: T201


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of as many cells as lines, their columns below one another."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def json_lines(value: Any) -> list[str]:
    """A JSON value over several lines, with sorted keys, and with all that is not plain ASCII as escapes."""
    return json.dumps(value, indent=2, sort_keys=True).splitlines()


def json_line(value: Any) -> str:
    """A JSON value on one line, with all that is not plain ASCII as escapes; keys stay in their order."""
    return json.dumps(value)
