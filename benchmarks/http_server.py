"""A server over HTTP as a child process."""

import json
import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self
from urllib.parse import urlsplit

from .client import AnswerError

_PATIENCE_SECONDS: Final = 300.0
# Where the line of `/proc/…/stat` has the ticks of user and system time, counted from the state, behind the name.
_TICKS: Final = slice(11, 13)


class HttpServer:
    """Ended with the `with` block. It has to write a line with `urls` to stderr once it listens, and little before."""

    def __init__(self, argv: Sequence[str | Path], environment: Mapping[str, str], folder: Path) -> None:
        """Raises AnswerError if it does not come to listen."""
        self._process = subprocess.Popen(argv, env=environment, cwd=folder, stderr=subprocess.PIPE)
        self._watchdog = threading.Timer(_PATIENCE_SECONDS, self._process.kill)
        self._watchdog.start()
        try:
            self.port = _port(self._stderr)
        except BaseException:
            self._end()
            raise
        # Whatever else it says is taken, so that it never has to wait.
        self._reader = threading.Thread(target=self._stderr.read)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._reader.join()
        self._end()

    @property
    def processor(self) -> float | None:
        """The seconds of processor time that it has taken up to now; None where the system does not tell it of others."""
        try:
            text = Path(f"/proc/{self._process.pid}/stat").read_text()
        except OSError:
            return None
        return sum(map(int, text.rpartition(")")[2].split()[_TICKS])) / os.sysconf("SC_CLK_TCK")

    @property
    def _stderr(self) -> IO[bytes]:
        assert self._process.stderr is not None  # noqa: S101
        return self._process.stderr

    def _end(self) -> None:
        self._watchdog.cancel()
        with self._process:
            self._process.kill()


def _port(stderr: IO[bytes]) -> int:
    said = b""
    for line in stderr:
        if b'"urls"' in line:
            port: int = urlsplit(json.loads(line)["urls"][0]).port
            return port
        said += line
    raise AnswerError(f"a server ended before it served:\n{said[-2000:].decode(errors='replace')}")
