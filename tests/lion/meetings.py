"""Where a test meets a process that a run has started: an event when it lives, one that lets it go, one when it has gone."""

from __future__ import annotations

import os
import select
from pathlib import Path
from types import TracebackType
from typing import Self

PATIENCE = 60.0  # seconds until a test fails instead of waiting on
ENOUGH = b"\n" * 64  # a line for everyone who may wait


class Meeting:
    """Two named pipes in a folder: `NAME.up`, held open by every process that came, and `NAME.go`, which they wait for."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._paths = [folder / f"{name}.up", folder / f"{name}.go"]
        for path in self._paths:
            os.mkfifo(path)
        self._closed = False
        self._up = os.open(self._paths[0], os.O_RDONLY | os.O_NONBLOCK)
        self._go = os.open(self._paths[1], os.O_RDWR)
        self._events = select.poll()
        self._events.register(self._up, select.POLLIN)

    @property
    def path_up(self) -> Path:
        """The pipe that whoever comes holds open."""
        return self._paths[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets everybody go, and takes the pipes away: whoever comes later finds nothing to wait for."""
        if self._closed:
            return
        self._closed = True
        self.let_go()
        for path in self._paths:
            path.unlink()
        os.close(self._up)
        os.close(self._go)

    def _next(self, patience: float) -> int:
        """What is to be seen of those who hold the pipe: 0 when nothing is, within this time."""
        events = self._events.poll(patience * 1000)
        return events[0][1] if events else 0

    def begun(self) -> int:
        """Waits for somebody to come and gives the process id."""
        assert self._next(PATIENCE) & select.POLLIN, f"nobody came to {self.name}"
        return int(os.read(self._up, 64).split()[0])

    def let_go(self) -> None:
        """Lets everybody go, those who come later too."""
        os.write(self._go, ENOUGH)

    def has_ended(self) -> bool:
        """Waits until nobody who came is left; false when somebody stays."""
        while (seen := self._next(PATIENCE)) & select.POLLIN:
            os.read(self._up, 64)
        return bool(seen & select.POLLHUP)

    def lasts(self) -> bool:
        """Whether somebody who came is left at this moment."""
        while (seen := self._next(0)) & select.POLLIN:
            os.read(self._up, 64)
        return not seen & select.POLLHUP
