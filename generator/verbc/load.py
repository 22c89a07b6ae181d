"""Reads what a spec consists of: its YAML, one file or the files of a folder, and the Python that lies beside it."""

import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from .compose import load
from .find import FOLDER_MARK
from .pinned import unwrapped
from .problems import Mark, Problem, Source, SpecError, quoted
from .source import Map, Seq, read

# Where the manifest of an upstream server can lie.
MANIFEST = re.compile(r"[A-Za-z0-9_-]+/[A-Za-z0-9][A-Za-z0-9_.@+-]*\.(yaml|json)")
# Sections whose items may be spread over the files of a folder.
SECTIONS = frozenset({"backends", "kinds", "shared", "synonyms", "types", "verbs"})


@dataclass(frozen=True, slots=True)
class Document:
    """A spec as it lies on the disk: where, its data, and the files it carries along by their path in the package."""

    name: str
    root: Map
    carried: dict[str, str]
    manifests: dict[str, Map]  # of upstream servers, by the name that backends have for them


def load_document(path: Path, name: str) -> Document:
    """The document of a spec; `name` is how its place is told, such as `specs/lion`.

    Raises:
        SpecError: a file is missing or not in order, or an item is defined twice.
    """
    if path.is_dir():
        if not (path / FOLDER_MARK).is_file():
            raise SpecError([Problem(Mark(Source(name, ""), 1, 1), f"this folder is no spec; it has no {FOLDER_MARK}")])
        root = _joined(_files(path, name))
        return Document(_place(path), root, _carried(root, path), _manifests(root, path, name))
    root = _file(path, name)
    return Document(
        _place(path), root, _carried(root, path.parent), _manifests(root, path.parent, name.rpartition("/")[0])
    )


def _place(path: Path) -> str:
    """Where a spec lies, as headers tell it: the same wherever one stands."""
    return "/".join(Path(os.path.abspath(path)).parts[-2:])


def _file(path: Path, name: str) -> Map:
    return load(read(path, name))


def _files(folder: Path, name: str) -> list[Map]:
    maps: list[Map] = []
    problems: list[Problem] = []
    for path in sorted(folder.glob("*.yaml")):
        try:
            maps.append(_file(path, f"{name}/{path.name}"))
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)
    return maps


def _joined(maps: list[Map]) -> Map:
    joined = Map(maps[0].mark)
    problems: list[Problem] = []
    for items in maps:
        for key in items:
            _put(joined, key, items, problems, spread=key in SECTIONS)
    if problems:
        raise SpecError(problems)
    return joined


def _put(target: Map, key: str, items: Map, problems: list[Problem], *, spread: bool) -> None:
    value = items[key]
    if key not in target:
        target.put(key, _copied(value) if spread else value, items.keys_at[key], items.values_at[key])
    elif spread and not isinstance(value, Map):
        problems.append(Problem(items.values_at[key], f"{quoted(key)} must be a map"))
    elif spread and isinstance(target[key], Map):
        for inner in value:
            _put(target[key], inner, value, problems, spread=key == "synonyms")
    else:
        first = target.keys_at[key]
        problems.append(
            Problem(items.keys_at[key], f"{quoted(key)} is already in {first.source.name}, on line {first.line}")
        )


def _copied(value: Any) -> Any:
    """A map that may take more items without changing the file it came from."""
    if not isinstance(value, Map):
        return value
    copy = Map(value.mark)
    for key, item in value.items():
        copy.put(key, _copied(item) if key == "verbs" else item, value.keys_at[key], value.values_at[key])
    return copy


def _carried(root: Map, folder: Path) -> dict[str, str]:
    backends = root.get("backends")
    carried: dict[str, str] = {}
    problems: list[Problem] = []
    for backend in backends.values() if isinstance(backends, Map) else ():
        written = backend.get("python") if isinstance(backend, Map) else None
        if not isinstance(written, str) or "/" in written:
            continue
        try:
            files = _python_files(folder, written)
        except UnicodeDecodeError:
            problems.append(Problem(backend.values_at["python"], f"{quoted(written)} is not UTF-8; save it as UTF-8"))
            continue
        carried.update(files)
        problems += [Problem(backend.values_at["python"], fault) for fault in _syntax_faults(files)]
        if (folder / written).is_dir() and f"{written}/__init__.py" not in files:
            problems.append(Problem(backend.values_at["python"], f"the folder {quoted(written)} has no __init__.py"))
        elif not files:
            problems.append(Problem(backend.values_at["python"], f"there is no {quoted(written)} beside the spec"))
    if problems:
        raise SpecError(problems)
    return dict(sorted(carried.items()))


def _manifests(root: Map, folder: Path, name: str) -> dict[str, Map]:
    """The manifests that backends name, which lie in folders beside the spec."""
    found: dict[str, Map] = {}
    problems: list[Problem] = []
    for written, mark in _named_manifests(root):
        if written in found:
            continue
        try:
            found[written] = _manifest(written, mark, folder, name)
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)
    return found


def _named_manifests(root: Map) -> Iterator[tuple[str, Mark]]:
    backends = root.get("backends")
    for backend in backends.values() if isinstance(backends, Map) else ():
        if not isinstance(backend, Map):
            continue
        if isinstance(one := backend.get("mcp"), str):
            yield one, backend.values_at["mcp"]
        if isinstance(several := backend.get("gateway"), Seq):
            for written, mark in zip(several, several.items_at, strict=True):
                if isinstance(written, str):
                    yield written, mark


def _manifest(written: str, mark: Mark, folder: Path, name: str) -> Map:
    if not MANIFEST.fullmatch(written):
        sentence = f"{quoted(written)} must be a file in a folder beside the spec, such as upstreams/time.yaml"
        raise SpecError([Problem(mark, sentence)])
    if not (folder / written).is_file():
        raise SpecError([Problem(mark, f"there is no {quoted(written)} beside the spec")])
    return unwrapped(_file(folder / written, f"{name}/{written}" if name else written))


def _python_files(folder: Path, written: str) -> dict[str, str]:
    place = folder / written
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place] if place.is_file() else []
    files = [file for file in files if not any(_is_hidden(part) for part in file.relative_to(folder).parts)]
    return {PurePosixPath(file.relative_to(folder)).as_posix(): file.read_bytes().decode("utf-8") for file in files}


def _is_hidden(part: str) -> bool:
    """Whether a file or folder is a tool's, such as a cache, and no source."""
    return part.startswith(".") or part == "__pycache__"


def _syntax_faults(files: dict[str, str]) -> Iterator[str]:
    for name, text in files.items():
        try:
            with warnings.catch_warnings(action="ignore"):
                compile(text, name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
            yield f"{quoted(name)} is no Python{line}: {getattr(error, 'msg', 'it cannot be read')}"
