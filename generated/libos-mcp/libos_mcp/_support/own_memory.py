"""The memory of this process, with the variables that it was started with, kept from other programs of its user."""

from __future__ import annotations

import sys
from typing import Final

_SET_DUMPABLE: Final = 4  # PR_SET_DUMPABLE


def keep_to_itself() -> None:
    """Let no other process of this user look into this one, and write no image of it; those it forks are the same.

    What it starts with exec is open again. Elsewhere than on Linux, and where the system will not, nothing changes.
    """
    if sys.platform != "linux":
        return
    import ctypes

    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return
    prctl(_SET_DUMPABLE, 0, 0, 0, 0)
