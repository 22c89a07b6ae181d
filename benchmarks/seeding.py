"""Runs on record that never were: copies of one that really ran, and runs whose process is gone without a word."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol

from .places import OWN, environment
from .processes import run
from .run_folders import LOG, RunFolder, copy_folders

COMPLETED: Final = "completed"
TIMED_OUT: Final = "timed_out"

# What li says of a run that timed out, over what it says of one that has completed.
_TIMED_OUT: Final = {"status": TIMED_OUT, "cli_status": TIMED_OUT, "reason_code": "run.timed_out.deadline"}
# What li writes only when it learns of the end.
_OF_THE_END: Final = frozenset(
    "notify_delivery cli_status outcome reason_code reason_detail finished_at_precision terminal_source terminal_evidence".split()
)


class Records(Protocol):
    """What one server has on record."""

    def copy(self, run_id: str, copies: Mapping[str, str]) -> None:
        """Put copies in the place of a finished run, its only one; by their ids, how they ended."""

    def add_dead(self, like: str, run_ids: Sequence[str]) -> None:
        """Add runs that were started as the finished run `like`, and whose processes are gone."""


def finished_runs(count: int, every: int) -> dict[str, str]:
    """How runs ended, by their ids, newest first: one in `every` timed out."""
    now = datetime.now(UTC)
    return {
        _id_at(now - timedelta(seconds=number + 1), number): COMPLETED if (number + 1) % every else TIMED_OUT
        for number in range(count)
    }


def dead_runs(count: int) -> list[str]:
    """Ids of new runs, newest first; other ones in each second."""
    now = datetime.now(UTC)
    return [_id_at(now, number) for number in reversed(range(count))]


def _id_at(moment: datetime, number: int) -> str:
    return f"{moment:%Y%m%dT%H%M%S}-{number:06x}"


@dataclass(frozen=True, slots=True)
class TheirRecords:
    """The folders in which `li mcp` keeps its jobs, and `li` its runs, below the home folder."""

    home: Path

    @property
    def _jobs(self) -> Path:
        return self.home / ".lionagi" / "mcp" / "jobs"

    def copy(self, run_id: str, copies: Mapping[str, str]) -> None:
        copy_folders(self._jobs, run_id, copies)
        copy_folders(_runs_of_li(self.home), run_id, copies)
        for copy, status in copies.items():
            if status == TIMED_OUT:
                self._change(copy, _TIMED_OUT)

    def add_dead(self, like: str, run_ids: Sequence[str]) -> None:
        record = json.loads((self._jobs / like / "job.json").read_bytes())
        started = {name: value for name, value in record.items() if name not in _OF_THE_END}
        now = datetime.now(UTC).isoformat()
        for run_id in run_ids:
            # Its log and its record alone: it was gone before anybody wrote more.
            folder = RunFolder(
                like, {Path(LOG): b"", Path("job.lock"): b"", Path("job.json"): json.dumps(started).encode()}
            )
            folder.write(self._jobs / run_id)
            pid = _gone_process()
            self._change(
                run_id, {"status": "running", "finished_at": None, "submitted_at": now, "pid": pid, "pgid": pid}
            )

    def _change(self, run_id: str, values: Mapping[str, Any]) -> None:
        path = self._jobs / run_id / "job.json"
        path.write_text(json.dumps({**json.loads(path.read_bytes()), **values}, indent=2))


@dataclass(frozen=True, slots=True)
class OurRecords:
    """The store of lion-mcp, written by its own code in a process of its own, so that this one stays small."""

    home: Path

    def copy(self, run_id: str, copies: Mapping[str, str]) -> None:
        self._write("copy", run_id, copies)
        copy_folders(_runs_of_li(self.home), run_id, copies)

    def add_dead(self, like: str, run_ids: Sequence[str]) -> None:
        self._write("add_dead", like, run_ids)

    def _write(self, *what: object) -> None:
        orders = self.home / "orders.json"
        orders.write_text(json.dumps(what))
        run((OWN / "bin" / "python", "-m", "benchmarks.lion_store", orders), environment(self.home), self.home)


def _runs_of_li(home: Path) -> Path:
    """Where `li` keeps its side of runs, whoever started them."""
    return home / ".lionagi" / "runs"


def _gone_process() -> int:
    """The id of a process that there was."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid
