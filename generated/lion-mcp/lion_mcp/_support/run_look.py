"""Looking at runs: their records, and beside those without an end what is seen of their processes at that moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from .process_identity import Sighting, own_identity, sight
from .run_classification import Reading, reading
from .run_record import RUN_ID, Identity, RunRecord
from .run_rows import Unreadable, UnreadableError

if TYPE_CHECKING:
    from .run_store import RunStore


@dataclass(frozen=True, slots=True)
class Seen:
    """A run at the moment of the look."""

    record: RunRecord
    sighting: Sighting | None = None  # of its leader; None for a run that has ended, which nobody looks for
    due: bool = False  # its leader is gone, or its start was given up, and its end is not on record

    @property
    def reading(self) -> Reading:
        """What readers are told of it."""
        return reading(self.record, self.sighting)


# Runs that this process is about to start, whoever in it does.
STARTING: Final[set[str]] = set()

Look: TypeAlias = Seen | Unreadable | None  # None: there is no such run


class RunLook:
    """Looks at the runs of one store; blocks, so it belongs into a thread. `variable` marks what a run starts."""

    def __init__(self, runs: RunStore, variable: str) -> None:
        self._runs = runs
        self._variable = variable

    def marker(self, run_id: str) -> tuple[str, str]:
        """The variable, and its value for a run."""
        return self._variable, run_id

    def at(self, record: RunRecord) -> Seen:
        """A run, its record given."""
        if record.end is not None:
            return Seen(record)
        sighting = sight(record.leader, record.owner)
        due = sighting.alive is False if record.spawn_state == "started" else self._is_given_up(record)
        return Seen(record, sighting, due)

    def of(self, run_id: str) -> Look:
        """The run with this id."""
        if not RUN_ID.fullmatch(run_id):
            return None
        try:
            record = self._runs.get(run_id)
        except UnreadableError:
            return Unreadable(run_id)
        return None if record is None else self.at(record)

    def several(self, run_ids: Iterable[str]) -> dict[str, Look]:
        """The runs with these ids."""
        found = self._runs.several(run_id for run_id in run_ids if RUN_ID.fullmatch(run_id))
        return {run_id: run if isinstance(run, Unreadable) else self.at(run) for run_id, run in found.items()}

    def page(self, limit: int, status: str | None) -> tuple[list[Seen | Unreadable], bool]:
        """The newest runs, newest first, only those in this state if there is one given; and whether there are more."""
        page = self._runs.page(limit + 1, status)
        found = [run if isinstance(run, Unreadable) else self.at(run) for run in page]
        fitting = [run for run in found if status is None or (isinstance(run, Seen) and run.reading.status == status)]
        return fitting[:limit], len(fitting) > limit

    def unended(self) -> list[Seen]:
        """All runs without an end."""
        return [self.at(record) for record in self._runs.unended()]

    def _is_given_up(self, record: RunRecord) -> bool:
        """Whether nobody is about to start a run that has not been started."""
        if record.owner == own_identity():
            return record.run_id not in STARTING
        return lives(record.owner) is False


def lives(server: Identity) -> bool | None:
    """Whether a server lives; None: it cannot be told."""
    return sight(server, server).alive
