"""A run on its way to its start: what hooks may still shape, whether the system can take it, and the start itself."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

_FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LOG: Final = "console.log"
_PAGE_SIZE: Final = os.sysconf("SC_PAGE_SIZE")
# Linux takes no single argument of more pages than this; other systems bound the sum alone.
_PAGES_OF_ONE = 32
# What the system puts beside the arguments and the environment.
_SYSTEM_BYTES = 8192
_POINTER_BYTES = 8


class StartError(Exception):
    """A run could not be started; the text is a sentence that says why."""


@dataclass(slots=True)
class Launch:
    """How a run will be started. Hooks change it as they need; nothing of it exists outside yet.

    `argv` is the command line without the program; `environment` holds what comes on top of what every command gets;
    `cwd` is the server's own folder when it is None; `details` are kept with the record of the run, as JSON.
    """

    run_id: str
    folder: Path  # what belongs to the run alone; it is made when the run starts
    argv: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    label: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    def flag(self, name: str, value: str | None = None) -> None:
        """Add `--name=value` in one token, or the bare flag, before `--`."""
        end = self.argv.index("--") if "--" in self.argv else len(self.argv)
        self.argv.insert(end, name if value is None else f"{name}={value}")

    def positional(self, value: str) -> None:
        """Add a value behind `--`, after those that stand there."""
        if "--" not in self.argv:
            self.argv.append("--")
        self.argv.append(value)

    def file(self, name: str, text: str) -> str:
        """The path of a file of the run, which is written when it starts, for nobody but this user.

        Raises ValueError for a name that is not a plain one, or is taken.
        """
        if not _FILE_NAME.fullmatch(name) or name == _LOG or name in self.files:
            raise ValueError("A file of a run needs a plain name of its own.")
        self.files[name] = text
        return str(self.folder / name)


def is_too_long(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether arguments and environment together are more than the system passes to a program."""
    tokens = [*command, *(f"{name}={value}" for name, value in environment.items())]
    sizes = [len(_encoded(token)) + 1 for token in tokens]
    if os.uname().sysname == "Linux" and max(sizes) > _PAGES_OF_ONE * _PAGE_SIZE:
        return True
    most = os.sysconf("SC_ARG_MAX")
    return 0 < most < sum(sizes) + _POINTER_BYTES * len(sizes) + _SYSTEM_BYTES


def start(launch: Launch, program: Sequence[str], environment: Mapping[str, str], cwd: str) -> subprocess.Popen[bytes]:
    """Write the files of a run, and start its program in a session of its own, its output going to the log.

    The log is made last: where there is none, nothing was started. Raises StartError.
    """
    try:
        launch.folder.mkdir(mode=0o700)
        for name, text in launch.files.items():
            with os.fdopen(_new_file(launch.folder / name), "wb") as file:
                file.write(_encoded(text))
        log = _new_file(launch.folder / _LOG, os.O_APPEND)
    except OSError as error:
        raise StartError(f"Its files could not be written: {_reason(error)}.") from None
    try:
        return _started([*program, *launch.argv], environment, cwd, log)
    finally:
        os.close(log)


def _started(command: Sequence[str], environment: Mapping[str, str], cwd: str, log: int) -> subprocess.Popen[bytes]:
    try:
        with _signals_let_through():
            return subprocess.Popen(
                [_encoded(token) for token in command],
                executable=_located(command[0], environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=cwd,
                env=environment,
                start_new_session=True,
            )
    except (OSError, ValueError) as error:
        raise StartError(f"It could not be started: {_reason(error)}.") from None


@contextmanager
def _signals_let_through() -> Iterator[None]:
    """What is started here gets the signals that this process may have been started without, such as SIGTERM."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    # What waits for this process stays where it is.
    signal.pthread_sigmask(signal.SIG_SETMASK, before & signal.sigpending())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _located(program: str, environment: Mapping[str, str]) -> str:
    """Where the program is, seen from the server's folder and not from the one that the run works in."""
    found = shutil.which(program, path=environment.get("PATH", os.defpath))
    return program if found is None else os.path.abspath(found)


def _new_file(path: Path, further: int = 0) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | further, 0o600)


def _encoded(token: str) -> bytes:
    """UTF-8, whatever the locale of the server; what the environment held that is no text stays as it is."""
    return token.encode("utf-8", "surrogateescape")


def _reason(error: Exception) -> str:
    """The system's own words, without the path that it adds."""
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number else "unknown reason"
