"""Generated packages on the disk: comparing them with what they should be, and making them so.

A package's folder has a manifest that lists each file with its SHA-256. Whatever it does not list is somebody else's, and
is never touched. The manifest is written before the files it lists and once more when all are there, so a run that was
killed leaves whole files, old or new, and the next run knows them as its own.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from .problems import NothingWrittenError

MANIFEST = ".verbc.json"
UNFINISHED = ".verbc.tmp"  # the one file a killed run may leave behind
# What tools leave in a package's folder; `compare` does not see it.
CACHES = frozenset(
    {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".venv", "build", "dist"}
)


@dataclass(frozen=True, slots=True)
class Drift:
    """How a package on the disk differs from what it should be, as sorted paths below its folder."""

    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    orphaned: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.missing or self.orphaned)


@dataclass(frozen=True, slots=True)
class Written:
    """What a run did to one package, as sorted paths below its folder."""

    written: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    overwritten: tuple[str, ...] = ()  # listed files that somebody had edited; part of `written`


def digests_of(texts: Mapping[str, str]) -> dict[str, str]:
    """The digest of each file, as manifests list them."""
    return {path: _digest(text.encode()) for path, text in texts.items()}


def compare(digests: Mapping[str, str], folder: Path) -> Drift:
    """How a package on the disk differs from files with these digests; with none, all that is there is orphaned."""
    wanted = {**digests, MANIFEST: _digest(_manifest(digests).encode())} if digests else {}
    found = set(_files(folder))
    changed = [path for path, digest in wanted.items() if path in found and _disk_digest(folder / path) != digest]
    return Drift(tuple(sorted(changed)), tuple(sorted(set(wanted) - found)), tuple(sorted(found - set(wanted))))


def write(texts: Mapping[str, str], folder: Path) -> Written:
    """Make a package's folder hold `texts`; with no texts, remove what its manifest lists.

    Raises:
        NothingWrittenError: a file that the manifest does not list, or a link, stands where one has to be written.
        OSError: the disk does not let us.
    """
    listed = _listed(folder)
    new = digests_of(texts)
    old = {path: _disk_digest(folder / path) for path in {*listed, *new}}
    _refuse_foreign(folder, [path for path in new if old[path] not in (None, new[path]) and path not in listed])
    _refuse_links(folder, {*listed, *new, MANIFEST})
    changing = sorted(path for path in new if old[path] != new[path])
    leaving = sorted(path for path in listed if path not in new and old[path] == listed[path])
    if changing or leaving or _read(folder / MANIFEST) != _manifest(new).encode():
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder, MANIFEST, _manifest({**{path: listed[path] for path in leaving}, **new}))
        for path in changing:
            _replace(folder, path, texts[path])
        for path in leaving:
            _remove(folder, path)
        if texts:
            _replace(folder, MANIFEST, _manifest(new))
        else:
            _remove(folder, MANIFEST)
    edited = [path for path in changing if old[path] is not None and path in listed and old[path] != listed[path]]
    return Written(tuple(changing), tuple(sorted(set(new) - set(changing))), tuple(leaving), tuple(edited))


def packages(folder: Path) -> list[str]:
    """The names of the generated packages in a folder."""
    return sorted(path.parent.name for path in folder.glob(f"*/{MANIFEST}"))


def _manifest(digests: Mapping[str, str]) -> str:
    return json.dumps({"verbc": 1, "files": dict(sorted(digests.items()))}, indent=2) + "\n"


def _listed(folder: Path) -> dict[str, str]:
    data = _read(folder / MANIFEST)
    if data is None:
        return {}
    try:
        files = json.loads(data)["files"]
        return {str(path): str(digest) for path, digest in files.items() if _inside(str(path))}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NothingWrittenError(
            f"{folder / MANIFEST} is not a manifest of verbc; restore it or remove the folder"
        ) from None


def _inside(path: str) -> bool:
    """Whether a path stays in its folder. A manifest is a file that anybody can edit."""
    parts = path.split("/")
    return not path.startswith("/") and not {"", ".", ".."} & set(parts)


def _refuse_foreign(folder: Path, paths: Iterable[str]) -> None:
    if found := sorted(paths):
        names = ", ".join(str(folder / path) for path in found)
        raise NothingWrittenError(f"not written by verbc, and in the way: {names}; move it away or remove it")


def _refuse_links(folder: Path, paths: Iterable[str]) -> None:
    places = {folder / part for path in paths for part in (Path(path), *Path(path).parents)}
    if links := sorted(str(place) for place in places if place.is_symlink()):
        raise NothingWrittenError(f"links are not followed: {', '.join(links)}; put a real file or folder there")


def _files(folder: Path) -> Iterable[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in CACHES and not name.endswith(".egg-info")]
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        for name in (*names, *links):
            if name != UNFINISHED:
                yield (Path(place) / name).relative_to(folder).as_posix()


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _disk_digest(path: Path) -> str | None:
    data = _read(path)
    return None if data is None else _digest(data)


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def _replace(folder: Path, path: str, text: str) -> None:
    """Put a whole file in place of whatever is there, in one step."""
    unfinished, target = folder / UNFINISHED, folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished.unlink(missing_ok=True)
    with unfinished.open("xb") as file:
        file.write(text.encode())
    os.replace(unfinished, target)


def _remove(folder: Path, path: str) -> None:
    """Remove a file, and the folders that it leaves empty."""
    place = folder / path
    place.unlink(missing_ok=True)
    for parent in place.parents:
        if not parent.is_relative_to(folder) or any(parent.iterdir()):
            break
        parent.rmdir()
