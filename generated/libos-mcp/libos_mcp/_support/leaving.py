"""The end of a server's process, which nothing that is still running may put off."""

from __future__ import annotations

import asyncio
import os
import threading


async def end_tasks(seconds: float, code: int = 0) -> None:
    """Cancel all other tasks, and end the process at once when one of them does not end within `seconds`."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left and (await asyncio.wait(left, timeout=seconds))[1]:
        os._exit(code)


def leave(code: int = 0) -> None:
    """End the process at once if threads are left: a handler's thread cannot be cancelled, and the clients are gone."""
    if any(thread is not threading.current_thread() and not thread.daemon for thread in threading.enumerate()):
        os._exit(code)
