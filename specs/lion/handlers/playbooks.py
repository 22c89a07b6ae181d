"""Saved playbooks: where the one of a name lies, and what it declares."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lion_mcp.interface import Refusal

from .bounded_reading import UnreadableError, content_of, leads_into
from .foreign_words import shown_line
from .places import roots_from
from .playbook_rules import declared_in, problem_of
from .plugins import files_in_plugins, named_in_plugins

SUFFIX = ".playbook.yaml"
LARGEST_PLAYBOOK = 1 << 20  # bytes
MOST_NAMES_TOLD = 50
LONGEST_NAME_TOLD = 100  # characters


@dataclass(frozen=True, slots=True)
class Playbook:
    """A playbook that li would take."""

    name: str
    path: Path
    fingerprint: str  # of the whole file: `sha256:` and 32 hex digits
    declared: Mapping[str, object]


def playbook_named(name: str, folder: Path) -> Playbook:
    """The playbook of that name for those who work in `folder`.

    Raises Refusal when there is none, or li would not take it.
    """
    path = place_of(name, folder)
    try:
        content = content_of(path, LARGEST_PLAYBOOK)
        declared = declared_in(content)
    except UnreadableError as error:
        raise Refusal("invalid_input", f"The playbook cannot be used. {error}") from None
    if problem := problem_of(declared):
        raise Refusal("invalid_input", f"The playbook cannot be used: {problem}")
    return Playbook(name, path, f"sha256:{hashlib.sha256(content).hexdigest()[:32]}", declared)


def place_of(name: str, folder: Path) -> Path:
    """The file of a playbook: the repository's, the folder's and those above it, the home folder's, then a plugin's.

    Raises Refusal when there is none.
    """
    plugin, _, own = name.rpartition("/")
    if not is_name(own) or (plugin and not is_name(plugin)):
        raise Refusal("invalid_input", "A playbook is named by one word, or as <plugin>/<name>.")
    for place in folders_from(folder):
        path = place / f"{name}{SUFFIX}"
        if not plugin and os.path.isfile(path):
            if leads_into(path, place):
                return path
            raise Refusal("invalid_input", "The playbook is a link that leads out of the folder of playbooks.")
    if path_in_plugin := named_in_plugins("playbooks", name, folder):
        return path_in_plugin
    available = [shown_line(known, LONGEST_NAME_TOLD) for known in names_from(folder)[:MOST_NAMES_TOLD]]
    raise Refusal("invalid_input", "There is no playbook of that name here.", {"available": available})


def is_name(name: str) -> bool:
    return bool(name) and not name.startswith(".") and not set(name) & {"/", "\\", "\0"}


def folders_from(folder: Path) -> list[Path]:
    """Where playbooks are looked for, those that win first."""
    return [root.path.parent / "playbooks" for root in roots_from(folder)]


def names_from(folder: Path) -> Sequence[str]:
    own = {name for place in folders_from(folder) for name in names_in(place)}
    return sorted(own | files_in_plugins("playbooks", folder).keys())


def names_in(place: Path) -> Iterator[str]:
    try:
        yield from (path.name.removesuffix(SUFFIX) for path in place.glob(f"*{SUFFIX}") if os.path.isfile(path))
    except OSError:
        return
