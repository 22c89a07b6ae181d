"""Several processes that serve the same sockets: each builds a server of its own, and is replaced when it ends."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Final, NoReturn, TypeAlias

from . import log

# What a process does: it is given a descriptor that is at its end when the parent is, and what to call once it serves.
# It returns its exit code.
Work: TypeAlias = Callable[[int, Callable[[], None]], int]

STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_READY: Final = b"+"


class _Signals:
    """Those that come while this process waits. One that comes right before is not lost: it has left a byte in a pipe."""

    def __init__(self) -> None:
        self.descriptors = os.pipe()
        for descriptor in self.descriptors:
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self.descriptors[1], warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # one that nobody handles leaves none

    def wait(self, *others: int) -> None:
        """Wait until one has come, and been handled, or one of these descriptors can be read."""
        select.select([self.descriptors[0], *others], [], [])
        with suppress(BlockingIOError):
            os.read(self.descriptors[0], 4096)

    def leave(self) -> None:
        """In a new process: wait for none of them any more."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor in self.descriptors:
            os.close(descriptor)


@dataclass(slots=True)
class _Worker:
    ready: int  # a descriptor that gives a byte once the process serves, and then nothing more
    serves: bool = False

    def has_served(self, signals: _Signals) -> bool:
        """Whether it serves or, once it has ended, ever did; waits until one or the other is certain."""
        while not self.serves:
            try:
                self.serves = os.read(self.ready, 1) == _READY
                break
            except BlockingIOError:
                signals.wait(self.ready)
        return self.serves


class Workers:
    """Processes that do the same work, as many of them at all times."""

    def __init__(self, count: int, work: Work, release: Callable[[], None], seconds: int) -> None:
        """`seconds` is how long they may take to end once they are told to; `release` is called when there will be no more."""
        self._count = count
        self._work = work
        self._release = release
        self._seconds = seconds
        self._workers: dict[int, _Worker] = {}
        self._stopping = False
        self._failed = False
        # Nothing is ever written into it: that its other end is closed is what the workers wait for.
        self._lifeline, self._held = os.pipe()
        self._signals: _Signals  # once they run

    def run(self, started: Callable[[], None]) -> int:
        """Run them until this process is told to stop, and return the exit code. `started` is called once all serve.

        Takes the signals of the process, and all of its children.
        """
        self._signals = _Signals()
        for number in _handled():
            signal.signal(number, self._stop)
        for _ in range(self._count):
            self._start()
        if all(worker.has_served(self._signals) for worker in self._workers.values()):
            started()
        while self._workers:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process:
                self._ended(process, os.waitstatus_to_exitcode(status))
            else:
                self._signals.wait()
        return 1 if self._failed else 0

    def _start(self) -> None:
        """Start one more, unless all are to stop."""
        # A signal finds the process either not yet there or fully known, on both sides of the fork.
        signal.pthread_sigmask(signal.SIG_BLOCK, _handled())
        if not self._stopping:
            ready, serving = os.pipe()
            os.set_blocking(ready, False)
            if (process := os.fork()) == 0:
                self._signals.leave()
                for descriptor in (ready, self._held, *(worker.ready for worker in self._workers.values())):
                    os.close(descriptor)
                self._be_worker(serving)
            self._workers[process] = _Worker(ready)
            os.close(serving)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _handled())

    def _be_worker(self, serving: int) -> NoReturn:
        """What a new process does instead of going on with the life of its parent."""
        code = 1
        try:
            handled = _handled()
            for number in handled:
                # A terminal tells all of its processes to end; these are told by their parent.
                signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, handled)
            code = self._work(self._lifeline, lambda: _tell(serving))
        except BaseException as error:
            log.failure("a worker failed", error)
        finally:
            os._exit(code)

    def _ended(self, process: int, code: int) -> None:
        worker = self._workers.pop(process, None)
        if worker is None:
            return
        served = worker.has_served(self._signals)
        os.close(worker.ready)
        if self._stopping:
            return
        log.event("warning", "a worker ended", code=code, served=served)
        if served:
            self._start()
        else:  # and so would the next one
            self._failed = True
            self._stop()

    def _stop(self, _number: int | None = None, _frame: FrameType | None = None) -> None:
        """Tell all to stop. When this comes again, or they have had their time, they are ended at once."""
        told = signal.SIGKILL if self._stopping else signal.SIGTERM
        self._stopping = True
        self._release()
        for process in tuple(self._workers):
            with suppress(ProcessLookupError):  # it has ended, and is about to be noted
                os.kill(process, told)
        signal.alarm(self._seconds)


def _handled() -> set[signal.Signals]:
    """The signals that end the server, without those that whoever started it has switched off, as `nohup` does."""
    return {signal.SIGALRM, *(number for number in STOPPING if signal.getsignal(number) != signal.SIG_IGN)}


def _tell(descriptor: int) -> None:
    with suppress(BrokenPipeError):  # nobody is left to be told, which the lifeline says as well
        os.write(descriptor, _READY)
    os.close(descriptor)
