"""Generated packages on the disk: comparing them with what they should be, and making them so.

A package's folder has a manifest that lists each file with its SHA-256. Whatever it does not list is somebody else's, and
is never touched. While files are written the manifest lists them with their new digests and their old ones, so a run that
was killed leaves whole files, old or new, and the next run knows them as its own.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from .problems import NothingWrittenError

MANIFEST = ".verbc.json"
UNFINISHED = ".verbc.tmp"  # the one file a killed run may leave behind
# What tools leave in a package's folder; `compare` does not see it.
CACHES = frozenset({"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis"})
BESIDE = frozenset({".venv", "build", "dist"})  # at the top of the folder only


@dataclass(frozen=True, slots=True)
class Drift:
    """How a package on the disk differs from what it should be, as sorted paths below its folder."""

    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    orphaned: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.missing or self.orphaned)


@dataclass(frozen=True, slots=True)
class Change:
    """What has to be done to one package, as sorted paths below its folder."""

    folder: Path
    texts: Mapping[str, str]
    written: tuple[str, ...]
    removed: tuple[str, ...]
    overwritten: tuple[str, ...]  # listed files that somebody had edited; part of `written`
    kept: tuple[str, ...]  # files that are no longer generated, and that somebody had edited
    replaced: Mapping[str, str]  # the digests that files to be written have now

    @property
    def unchanged(self) -> tuple[str, ...]:
        return tuple(sorted(self.texts.keys() - set(self.written)))


def digests_of(texts: Mapping[str, str]) -> dict[str, str]:
    """The digest of each file, as manifests list them."""
    return {path: _digest(text.encode()) for path, text in texts.items()}


def compare(digests: Mapping[str, str], folder: Path) -> Drift:
    """How a package on the disk differs from files with these digests; with none, all that is there is orphaned."""
    wanted = {**digests, MANIFEST: _digest(_manifest(digests).encode())} if digests else {}
    found = set(_files(folder))
    changed = [path for path, digest in wanted.items() if path in found and _disk_digest(folder / path) != digest]
    return Drift(tuple(sorted(changed)), tuple(sorted(set(wanted) - found)), tuple(sorted(found - set(wanted))))


def plan(texts: Mapping[str, str], folder: Path) -> Change:
    """How to make a package's folder hold `texts`; with no texts, how to remove what its manifest lists.

    Raises:
        NothingWrittenError: a file that the manifest does not list, or a link, is in the way.
    """
    listed, new = _listed(folder), digests_of(texts)
    _refuse_links(folder, {*listed, *new, MANIFEST})
    disk = {path: _disk_digest(folder / path) for path in {*listed, *new}}
    leaving = {path for path in listed if path not in new and disk[path] is not None}
    removed = {path for path in leaving if disk[path] in listed[path]}
    _refuse_foreign(folder, [path for path in new if disk[path] not in (None, new[path]) and path not in listed])
    _refuse_foreign(folder, _blockers(folder, new, removed))
    written = sorted(path for path in new if disk[path] != new[path])
    return Change(
        folder,
        texts,
        tuple(written),
        tuple(sorted(removed)),
        tuple(path for path in written if disk[path] is not None and disk[path] not in listed.get(path, ())),
        tuple(sorted(leaving - removed)),
        {path: digest for path in (*written, *removed) if (digest := disk[path]) is not None},
    )


def apply(change: Change) -> None:
    """Do it.

    Raises:
        OSError: the disk does not let us.
    """
    folder, new = change.folder, digests_of(change.texts)
    (folder / UNFINISHED).unlink(missing_ok=True)
    manifest = _manifest(new)
    if not change.written and not change.removed and _read(folder / MANIFEST) == manifest.encode():
        return
    if change.texts or folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder, MANIFEST, _manifest(new, change.replaced))
    for path in change.removed:
        _remove(folder, path)
    for path in change.written:
        _replace(folder, path, change.texts[path])
    if change.texts:
        _replace(folder, MANIFEST, manifest)
    else:
        _remove(folder, MANIFEST)


def write(texts: Mapping[str, str], folder: Path) -> Change:
    """Plan and apply at once. Raises what these raise."""
    change = plan(texts, folder)
    apply(change)
    return change


def packages(folder: Path) -> list[str]:
    """The names of the generated packages in a folder."""
    return sorted(path.parent.name for path in folder.glob(f"*/{MANIFEST}"))


def _manifest(digests: Mapping[str, str], replaced: Mapping[str, str] | None = None) -> str:
    """The manifest; while files are being written, with the digests that they had before."""
    data: dict[str, Any] = {"verbc": 1, "files": dict(sorted(digests.items()))}
    if replaced:
        data["replaced"] = dict(sorted(replaced.items()))
    return json.dumps(data, indent=2) + "\n"


def _listed(folder: Path) -> dict[str, set[str]]:
    """The files that are ours, with every digest that we gave them: two where a run was killed."""
    data = _read(folder / MANIFEST)
    if data is None:
        return {}
    listed: dict[str, set[str]] = {}
    try:
        manifest = json.loads(data)
        for files in (manifest["files"], manifest.get("replaced", {})):
            for path, digest in files.items():
                if _inside(path):
                    listed.setdefault(path, set()).add(str(digest))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        sentence = f"{folder / MANIFEST} is not a manifest of verbc; restore it or remove the folder"
        raise NothingWrittenError(sentence) from None
    return listed


def _inside(path: str) -> bool:
    """Whether a path stays in its folder. A manifest is a file that anybody can edit."""
    return path.isprintable() and not {"", ".", ".."} & set(path.split("/"))


def _refuse_foreign(folder: Path, paths: Iterable[str]) -> None:
    if found := sorted(paths):
        names = ", ".join(str(folder / path) for path in found)
        raise NothingWrittenError(f"not written by verbc, and in the way: {names}; move it away or remove it")


def _blockers(folder: Path, paths: Iterable[str], removed: set[str]) -> list[str]:
    """Files that stand where a folder has to be, and folders that stand where a file has to be."""
    parents = {parent.as_posix() for path in paths for parent in Path(path).parents if parent != Path()}
    files = [parent for parent in parents - removed if (folder / parent).exists() and not (folder / parent).is_dir()]
    return [*files, *(path for path in (*paths, MANIFEST) if (folder / path).is_dir())]


def _refuse_links(folder: Path, paths: Iterable[str]) -> None:
    places = {folder / part for path in paths for part in (Path(path), *Path(path).parents)}
    if links := sorted(str(place) for place in places if place.is_symlink()):
        raise NothingWrittenError(f"links are not followed: {', '.join(links)}; put a real file or folder there")


def _files(folder: Path) -> Iterable[str]:
    for place, folders, names in os.walk(folder):
        top = Path(place) == folder
        folders[:] = [name for name in folders if name not in CACHES and not (top and _is_beside(name))]
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        for name in (*names, *links):
            if name != UNFINISHED:
                yield (Path(place) / name).relative_to(folder).as_posix()


def _is_beside(name: str) -> bool:
    return name in BESIDE or name.endswith(".egg-info")


def _read(path: Path) -> bytes | None:
    if path.exists() and not path.is_file():
        return None
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _disk_digest(path: Path) -> str | None:
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return "no file of its own"
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
        if not parent.is_relative_to(folder) or not parent.is_dir() or any(parent.iterdir()):
            break
        parent.rmdir()
