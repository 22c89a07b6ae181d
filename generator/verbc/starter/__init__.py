"""The starter project that `verbc init` writes: a spec that compiles, serves and passes its tests at once."""

import re
from importlib.resources import files
from pathlib import Path

from ..problems import NothingWrittenError, quoted

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def starter(name: str) -> dict[str, str]:
    """The files of the project, by path.

    Raises:
        NothingWrittenError: a server cannot be called that.
    """
    if not NAME.fullmatch(name) or len(name) > 36:
        raise NothingWrittenError(
            f"{quoted(name)} is no name for a server; use at most 36 lower-case letters and digits, in parts joined by -"
        )
    folder = files("verbc") / "starter"
    return {
        f"specs/{name}.yaml": _named((folder / "spec.yaml").read_text(encoding="utf-8"), name),
        "Makefile": _named((folder / "Makefile").read_text(encoding="utf-8"), name),
        ".gitignore": (folder / "gitignore").read_text(encoding="utf-8"),
    }


def write_starter(name: str, folder: Path) -> list[Path]:
    """Write the project into a new or empty folder, and return the paths of its files.

    Raises:
        NothingWrittenError: the name does not do, or the folder holds something.
    """
    texts = starter(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise NothingWrittenError(f"{folder} is not empty; choose another name, or empty it")
    paths = [folder / path for path in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return paths


def _named(text: str, name: str) -> str:
    return text.replace("hello", name)
