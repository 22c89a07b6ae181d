"""Where agent profiles are looked for, and which files have a profile's name."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lion_mcp.interface import Refusal

NAME = re.compile(r"[A-Za-z0-9_-]+")


def shown(path: Path) -> str:
    """A path as text that is valid Unicode, which the name of a folder need not be."""
    return os.fsencode(path).decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Root:
    """A folder of profiles: a project's, or the one in the home folder ("global")."""

    path: Path
    scope: str

    def as_json(self) -> dict[str, object]:
        return {"path": shown(self.path), "scope": self.scope, "exists": self.path.is_dir()}


@dataclass(frozen=True, slots=True)
class Place:
    """A file that has the name of a profile: exactly, or with the other separator."""

    path: Path
    scope: str
    match: str

    def as_json(self, *, with_match: bool = False) -> dict[str, object]:
        match: dict[str, object] = {"match": self.match} if with_match else {}
        return {"path": shown(self.path), "scope": self.scope, **match}


@dataclass(frozen=True, slots=True)
class Found:
    """The files that have a profile's name, the one that counts first; `ambiguous` are those with equal claims."""

    places: tuple[Place, ...]
    ambiguous: tuple[Place, ...]

    @property
    def source(self) -> Place | None:
        return self.places[0] if self.places else None

    def source_as_json(self, *, with_match: bool = False) -> dict[str, object] | None:
        return self.places[0].as_json(with_match=with_match) if self.places else None

    def shadowed_as_json(self, *, with_match: bool = False) -> list[dict[str, object]]:
        return [place.as_json(with_match=with_match) for place in self.places[1:]]


def folder_to_look_from(cwd: str | None) -> Path:
    """Raises Refusal when it is no folder."""
    try:
        folder = Path(cwd or ".").expanduser().resolve()
        if folder.is_dir():
            return folder
    except (OSError, RuntimeError, ValueError):  # no such user, a NUL, no permission to look
        pass
    raise Refusal("invalid_input", "cwd is not a folder.")


def roots_from(folder: Path) -> list[Root]:
    """Roots by precedence: the git repository's, the folder's and those above it, the home folder's."""
    home = str(Path.home())
    upwards = [str(folder), *map(str, folder.parents)]
    repository = next((base for base in upwards if is_repository(base)), None)
    bases = dict.fromkeys([*([repository] if repository else []), *upwards, home])
    return [
        Root(Path(base, ".lionagi", "agents"), "global" if base == home else "project")
        for base in bases
        if os.path.isdir(os.path.join(base, ".lionagi"))
    ]


def is_repository(folder: str) -> bool:
    git = os.path.join(folder, ".git")
    return os.path.isfile(git) or os.path.isfile(os.path.join(git, "HEAD"))


def names_in(roots: Sequence[Root]) -> list[str]:
    """Every name that some root has a file for; files whose names no caller could give are passed over."""
    return sorted({name for root in roots for name in names_below(root.path) if files_named(root.path, name)})


def names_below(folder: Path) -> Iterator[str]:
    try:
        entries = os.listdir(folder)
    except OSError:
        return
    yield from (name for name in (entry.removesuffix(".md") for entry in entries) if NAME.fullmatch(name))


def files_named(folder: Path, name: str) -> list[Path]:
    return [path for path in (folder / name / f"{name}.md", folder / f"{name}.md") if os.path.isfile(path)]


def find(name: str, roots: Sequence[Root]) -> Found:
    """In each root the exact name counts, else the name with one separator throughout, unless both such names exist."""
    places: list[Place] = []
    ambiguous: list[Place] = []
    other_spellings = [spelling for spelling in (name.replace("-", "_"), name.replace("_", "-")) if spelling != name]
    for root in roots:
        exact = files_named(root.path, name)
        others = [files for files in (files_named(root.path, spelling) for spelling in other_spellings) if files]
        if exact:
            places += (Place(path, root.scope, "exact") for path in exact)
        elif len(others) > 1:
            ambiguous += (Place(files[0], root.scope, "separator_fallback") for files in others)
            break
        else:
            places += (Place(path, root.scope, "separator_fallback") for files in others for path in files)
    return Found(tuple(places), tuple(ambiguous))
