"""What a process must do so that the exit codes of its children can be learnt."""

from __future__ import annotations

import signal
import threading


def keep_exit_codes() -> None:
    """Undo an inherited "ignore" of SIGCHLD, under which the system throws exit codes away.

    Works in the main thread only, as signals do; elsewhere it does nothing.
    """
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
