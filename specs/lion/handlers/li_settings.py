"""The settings files of lionagi: the one in the user's home, and over it that of the project a run works in."""

import os
import pwd
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml  # type: ignore[import-untyped,unused-ignore]

from .bounded_reading import MissingError, UnreadableError, text_of

FILE = Path(".lionagi", "settings.yaml")
LARGEST_FILE = 1 << 16  # bytes
DEEPEST = 4  # levels of settings that are read: `notify`, `on_terminal`, its parts, and theirs
# Only below these are two files joined: no more is read, and nothing grows that somebody repeats with YAML's aliases.
NAMES = frozenset({"adapter", "argv", "filter", "ids", "kinds", "notify", "on_terminal"})


def settings_for(folder: Path) -> Mapping[object, object]:
    """What is set for those who work in `folder`. Raises UnreadableError when a file is there and cannot be used."""
    settings: dict[object, object] = {}
    for path in files_for(folder):
        settings = joined(settings, settings_in(path))
    return settings


def files_for(folder: Path) -> list[Path]:
    """The files that count, the nearest project's last. A project is looked for from the folder upwards."""
    own = Path(os.path.expanduser("~"), FILE)
    projects = (place / FILE for place in (folder, *folder.parents))
    nearest = next((path for path in projects if os.path.isfile(path)), None)
    files = [own] if os.path.isfile(own) else []
    # That of a home folder is no project's; the search ends there all the same.
    return files if nearest is None or is_of_home(nearest) else [*files, nearest]


def is_of_home(path: Path) -> bool:
    """Whether the file is that of the user's home, as HOME says or as the system knows it."""
    return any(_are_same(path, Path(home, FILE)) for home in _homes())


def _homes() -> Iterator[str]:
    yield os.path.expanduser("~")
    try:
        known = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return
    if os.path.isabs(known):
        yield known


def _are_same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def settings_in(path: Path) -> dict[object, object]:
    """What one file says. Raises UnreadableError."""
    try:
        text = text_of(path, LARGEST_FILE)
    except MissingError:  # it was there a moment ago
        return {}
    try:
        settings: object = yaml.safe_load(text) or {}
    except Exception:  # all that YAML can stumble over
        raise UnreadableError("It is not YAML.") from None
    if not isinstance(settings, dict):
        raise UnreadableError("It holds no settings.")
    return settings


def joined(under: dict[object, object], over: dict[object, object], depth: int = DEEPEST) -> dict[object, object]:
    """Both together as li joins them: mappings by member, lists one behind the other, else what is nearer counts."""
    both = under.keys() & over.keys() & NAMES
    return {**under, **over, **{name: _one_of(under[name], over[name], depth - 1) for name in both}}


def _one_of(under: object, over: object, depth: int) -> object:
    if isinstance(under, dict) and isinstance(over, dict) and depth:
        return joined(under, over, depth)
    if isinstance(under, list) and isinstance(over, list):
        return [*under, *over]
    return over
