"""Where the specs of a project lie."""

from pathlib import Path

from .problems import Mark, Problem, Source, SpecError

FOLDER_MARK = "server.yaml"  # a folder that has one is a spec


def find(folder: Path) -> list[Path]:
    """The specs in a folder, by name: YAML files, and folders with a server.yaml.

    Raises:
        SpecError: there is no such folder, or no spec in it.
    """
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    found = [entry for entry in entries if entry.suffix == ".yaml" or (entry / FOLDER_MARK).is_file()]
    if not found:
        source = Source(folder.as_posix(), "")
        raise SpecError([Problem(Mark(source, 1, 1), "there is no spec in this folder; `verbc init NAME` writes one")])
    return found
