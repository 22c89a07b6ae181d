"""Writes runs into the store of lion-mcp with its own code: `python -m benchmarks.lion_store ORDERS`, a file of JSON.

The orders are `["copy", run id, {id of a copy: how it ended}]` or `["add_dead", run id, [id of a dead run]]`.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .run_folders import LOG, RunFolder, copy_folders
from .seeding import TIMED_OUT

# The same modules: the package carries those of the generator as they are.
if TYPE_CHECKING:
    from verbc.support.process_identity import identity_of
    from verbc.support.run_place import Place, open_place
    from verbc.support.run_record import Identity, RunRecord
else:
    from lion_mcp._support.process_identity import identity_of
    from lion_mcp._support.run_place import Place, open_place
    from lion_mcp._support.run_record import Identity, RunRecord

_TIMED_OUT: Final = {"status": TIMED_OUT, "outcome": "failed", "reason_code": "run.timed_out.deadline"}


def main(orders: Path) -> None:
    work, run_id, runs = json.loads(orders.read_bytes())
    place = open_place("lion-mcp", "runs", None)
    original = place.runs.get(run_id)
    assert original is not None, "the run that is copied is on record"  # noqa: S101
    if work == "copy":
        _copy(place, original, runs)
    else:
        _add_dead(place, original, runs)
    place.store.close()


def _copy(place: Place, original: RunRecord, copies: Mapping[str, str]) -> None:
    place.runs.forget_ended_before(datetime.now(UTC))
    copy_folders(place.folders, original.run_id, copies)
    for run_id, status in copies.items():
        end: Any = original.end
        ended = replace(end, **_TIMED_OUT) if status == TIMED_OUT else end
        place.runs.reserve(replace(original, run_id=run_id, end=ended), None)


def _add_dead(place: Place, like: RunRecord, run_ids: Sequence[str]) -> None:
    for run_id in run_ids:
        RunFolder(like.run_id, {Path(LOG): b""}).write(place.folders / run_id)
        place.runs.reserve(_dead(like, run_id), None)


def _dead(like: RunRecord, run_id: str) -> RunRecord:
    """Started by a server that is gone, and gone without a word."""
    leader, now = _gone(), datetime.now(UTC)
    return replace(
        like,
        run_id=run_id,
        owner=_gone(),
        leader=leader,
        pgid=leader.pid,
        submitted_at=now,
        started_at=now,
        exit_code=None,
        exited_at=None,
        end=None,
        finished_at=None,
        precision=None,
    )


def _gone() -> Identity:
    """The identity of a process that there was."""
    process = subprocess.Popen(["true"])
    identity = identity_of(process.pid)
    process.wait()
    assert identity is not None, "a child stays until it is waited for"  # noqa: S101
    return identity


if __name__ == "__main__":
    main(Path(sys.argv[1]))
