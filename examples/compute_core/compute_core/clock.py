"""Time as the service counts it: whole seconds since 1970, from a clock that tests can set."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], int]


def system_clock() -> int:
    """The seconds since 1970 by the clock of the machine."""
    return int(time.time())


def written(seconds: int) -> str:
    """A time as replies and terms show it, such as 2026-03-01T12:00:00Z."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
