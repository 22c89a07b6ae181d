"""What the service logs: lines without keys, bodies, results or anything else that was sent."""

import logging
import traceback

_LOGGER = logging.getLogger("compute_core")


def start_logging() -> None:
    """Write the lines of this process to its standard error."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")


def log_reply(method: str, route: str, status: int) -> None:
    """One line for a reply; `route` is the pattern of the path, not the path."""
    _LOGGER.info("%s %s %d", method, route, status)


def log_fault(where: str, error: Exception) -> None:
    """One line for a mistake of ours: what kind and from which line, without its text, which could hold anything."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames[-4:]))
    _LOGGER.error("%s: %s at %s", where, type(error).__name__, lines)
