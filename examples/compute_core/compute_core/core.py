"""What every operation works with: the file, the signer, the clock, the settings; and what operations take and give."""

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from .accounts import Caller
from .clock import Clock, system_clock
from .store import Store
from .terms import Signer, signer_of

Shape_co = TypeVar("Shape_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Settings:
    """`quote_seconds`: how long a quote can be run; `job_seconds`: how long a job takes at least, so that it is seen."""

    database: Path
    quote_seconds: int = 900
    job_seconds: float = 0.0

    def as_environment(self) -> dict[str, str]:
        """The variables from which the processes of one service read their settings."""
        return {
            "COMPUTE_CORE_DB": str(self.database),
            "COMPUTE_CORE_QUOTE_SECONDS": str(self.quote_seconds),
            "COMPUTE_CORE_JOB_SECONDS": str(self.job_seconds),
        }

    @classmethod
    def from_environment(cls) -> "Settings":
        """Raises KeyError, ValueError when the variables are not all there."""
        return cls(
            Path(os.environ["COMPUTE_CORE_DB"]),
            int(os.environ["COMPUTE_CORE_QUOTE_SECONDS"]),
            float(os.environ["COMPUTE_CORE_JOB_SECONDS"]),
        )


@dataclass(frozen=True, slots=True)
class Core:
    """The parts of a running service. `job_started` wakes the worker of this process."""

    settings: Settings
    store: Store
    signer: Signer
    now: Clock
    job_started: threading.Event = field(default_factory=threading.Event)


def open_core(settings: Settings, clock: Clock = system_clock) -> Core:
    """Raises StoreError, OSError or sqlite3.Error when there is no using the file."""
    store = Store(settings.database)
    return Core(settings, store, signer_of(store), clock)


@dataclass(frozen=True, slots=True)
class Asked(Generic[Shape_co]):
    """A request to an operation, after all checks that need no look at the file. `key` is its Idempotency-Key."""

    caller: Caller
    body: Shape_co
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What an operation answers: an object, or bytes of JSON that go out as they are."""

    content: dict[str, Any] | bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def created(content: dict[str, Any], path: str, *, new: bool = True) -> Reply:
    """The reply about what was made at `path`: 201, or 200 when it had been made before."""
    return Reply(content, 201 if new else 200, {"Location": path})
