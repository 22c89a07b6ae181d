"""Waits for the end of our own children: the exit code is put on record first, only then is the child let go."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from . import log
from .exit_codes import keep_exit_codes

# Waits between the tries to put an exit code on record.
RETRY_SECONDS: Final = (0.1, 1.0, 5.0)

_THREAD_NAME: Final = "exit-watch"


class ExitWatch:
    """Watches children, each from a thread of its own, which never keeps the server from ending.

    `record(run_id, code, at)` puts an exit code on record, minus the number of a signal; it may raise, and is tried
    again a few times. Until then the child stays for others to see as one that has ended and is not reaped.
    `on_gone(run_id)` is called when it is reaped. Both run in the threads. To be made in the main thread.
    """

    def __init__(
        self, record: Callable[[str, int, datetime], None], on_gone: Callable[[str], None] | None = None
    ) -> None:
        keep_exit_codes()
        self._record = record
        self._on_gone = on_gone
        self._lock = threading.Lock()
        self._gone: dict[str, threading.Event] = {}  # of the children that are watched
        self._hurry = threading.Event()

    def watch(self, run_id: str, child: subprocess.Popen[bytes]) -> None:
        """Watch a child that nobody else waits for. Raises RuntimeError: there is no thread to be had."""
        gone = threading.Event()
        with self._lock:
            self._gone[run_id] = gone
        try:
            threading.Thread(target=self._follow, args=(run_id, child, gone), name=_THREAD_NAME, daemon=True).start()
        except RuntimeError:
            self._forget(run_id)
            raise

    def wait_gone(self, run_id: str, seconds: float) -> bool:
        """Wait until the child of a run is reaped, at most `seconds`; also true if it is not watched."""
        with self._lock:
            gone = self._gone.get(run_id)
        return gone is None or gone.wait(seconds)

    def hurry(self) -> None:
        """From now on, do not wait between tries: the server ends."""
        self._hurry.set()

    def _follow(self, run_id: str, child: subprocess.Popen[bytes], gone: threading.Event) -> None:
        try:
            code, at = _end_of(child)
            if code is not None:
                self._put_on_record(run_id, code, at)
            child.wait()  # this reaps it
        except Exception as error:
            log.failure("child not watched to its end", error, run_id=run_id)
        self._forget(run_id)
        gone.set()
        self._tell(run_id)

    def _forget(self, run_id: str) -> None:
        with self._lock:
            self._gone.pop(run_id, None)

    def _put_on_record(self, run_id: str, code: int, at: datetime) -> None:
        for pause in (*RETRY_SECONDS, None):
            try:
                return self._record(run_id, code, at)
            except Exception as error:
                if pause is None:
                    log.failure("exit code not recorded", error, run_id=run_id)
                    return None
                self._hurry.wait(pause)
        return None

    def _tell(self, run_id: str) -> None:
        if self._on_gone is None:
            return
        try:
            self._on_gone(run_id)
        except Exception as error:
            log.failure("end of a child not told", error, run_id=run_id)


def _end_of(child: subprocess.Popen[bytes]) -> tuple[int | None, datetime]:
    """Wait for the end of a child; its exit code, and the moment. No code: the system kept none."""
    code = _ended(child) if hasattr(os, "waitid") else child.wait()
    return code, datetime.now(UTC)


def _ended(child: subprocess.Popen[bytes]) -> int | None:
    if child.returncode is not None:
        return child.returncode  # somebody has waited for it after all
    try:
        ended = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:
        return None
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
