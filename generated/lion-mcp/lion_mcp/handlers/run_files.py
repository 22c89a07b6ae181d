"""What li keeps of its runs: a folder for each, with a summary, the conversations, and the artifacts."""

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lion_mcp.interface import RunRecord

from .bounded_reading import UnreadableError, object_of
from .foreign_words import shown_path, shown_value
from .reported_ends import report_of

RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{6}")
LARGEST_SUMMARY = 1 << 16  # bytes
MOST_ARTIFACTS = 500
LONGEST_PATH_TOLD = 1000  # characters
MOST_SECONDS = 1.0  # for the list of artifacts
DEEPEST = 32  # levels of folders


def runs_folder() -> Path:
    """Where li has the folders of its runs."""
    home = os.environ.get("LIONAGI_HOME")
    try:
        root = Path.home() / ".lionagi" if home is None else Path(home).expanduser()
    except RuntimeError:  # the home of a user that is not there
        root = Path(home or os.sep)
    return root / "runs"


def folder_of(record: RunRecord) -> Path:
    """The folder that li has for a run, which need not be there.

    A run that went on after its time was up did so under another id of li's own, which only the report tells.
    """
    own, report = runs_folder() / record.run_id, report_of(record)
    told = report.artifacts if report else None
    if told is None or "\0" in told or not os.path.isabs(told):
        return own
    folder = Path(told).parent
    is_one = Path(told).name == "artifacts" and RUN_ID.fullmatch(folder.name) and folder.parent == own.parent
    return folder if is_one else own


def summary_in(folder: Path) -> dict[str, object] | None:
    """What li says of a run, as it wrote it; None when there is nothing, or nothing that could be read."""
    try:
        return object_of(folder / "run.json", LARGEST_SUMMARY)
    except UnreadableError:
        return None


@dataclass(frozen=True, slots=True)
class Artifacts:
    """The files that a run left, as paths from `folder`; `cut`: there are more than are told."""

    folder: Path
    paths: tuple[str, ...]
    state: Literal["ok", "cut", "unreadable"]


def artifacts_in(place: Path) -> Artifacts:
    """The files below a folder; links to folders are not followed. A folder that is not there holds none."""
    problems: list[OSError] = []
    found: list[str] = []
    end = time.monotonic() + MOST_SECONDS
    cut = False
    for base, folders, names in os.walk(place, onerror=problems.append):
        below = Path(base).relative_to(place)
        few = names[: MOST_ARTIFACTS + 1 - len(found)]
        found += [
            shown_path(below / name, LONGEST_PATH_TOLD) for name in few if os.path.isfile(os.path.join(base, name))
        ]
        if len(below.parts) == DEEPEST:
            folders.clear()
        if len(found) > MOST_ARTIFACTS or time.monotonic() > end:
            cut = True
            break
    unreadable = any(not isinstance(problem, FileNotFoundError) for problem in problems)
    return Artifacts(
        place, tuple(sorted(found)[:MOST_ARTIFACTS]), "unreadable" if unreadable else "cut" if cut else "ok"
    )


def files_of_run(record: RunRecord) -> dict[str, object]:
    """What li has of a run, for the details of its status and its output."""
    folder = folder_of(record)
    summary = summary_in(folder)
    root = (summary or {}).get("artifact_root")
    own = isinstance(root, str) and os.path.isabs(root) and "\0" not in root  # elsewhere, where the caller said so
    artifacts = artifacts_in(Path(str(root)) if own else folder / "artifacts")
    return {
        "run_dir": shown_path(folder),
        "run": shown_value(summary),
        "artifacts_dir": shown_path(artifacts.folder),
        "artifacts": list(artifacts.paths),
        "artifacts_state": artifacts.state,
    }
