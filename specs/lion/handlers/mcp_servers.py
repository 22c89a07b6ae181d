"""The MCP servers of a run: its configuration is found from its own folder upwards, and kept as it was when it started."""

import json
import os
import pwd
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from lion_mcp.interface import Refusal

from .bounded_reading import UnreadableError, object_of
from .foreign_words import shown_line, shown_path

FILE = ".mcp.json"
SERVERS = "mcpServers"
LARGEST_FILE = 1 << 20  # bytes
LONGEST_NAME_TOLD = 200  # characters
MOST_NAMES_TOLD = 100
# Where li reads that a configuration is a copy, and of what; it then does not take it for one that the caller named.
COPY_OF = "lionagiSnapshotOf"
SEARCHED_FROM = "lionagiSnapshotSearchedFrom"


@dataclass(frozen=True, slots=True)
class Wish:
    """What the caller says of the servers."""

    config: str | None  # a file that it names
    none_at_all: bool
    excluded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Servers:
    """What a run gets, and why; `copy` is the text of a configuration that is made for it."""

    source: Path | None
    names: tuple[str, ...] | None  # None: nobody but li knows
    excluded: tuple[str, ...]
    reason: str | None
    copy: str | None = None

    def as_json(self, config: str | None) -> dict[str, object]:
        """For the details of the run; `config` is the path of the file that li is given."""
        return {
            "config": config,
            "source": shown_path(self.source) if self.source else None,
            "servers": None if self.names is None else _told(self.names),
            "excluded": _told(self.excluded),
            "reason": self.reason,
        }


def servers_for(wish: Wish, folder: Path) -> Servers:
    """The servers of a run that works in `folder`. Raises Refusal when they cannot be told, or not be left out."""
    if wish.excluded and (wish.config is not None or wish.none_at_all):
        sentence = "exclude_mcp_servers goes with neither mcp_config nor no_mcp_config: there is nothing to leave out."
        raise Refusal("invalid_input", sentence)
    if wish.none_at_all:
        return Servers(None, (), (), "mcp_disabled_by_caller")
    if wish.config is not None:
        path = _named(wish.config, folder)
        return Servers(path, tuple(sorted(_declared(path))), (), "mcp_config_named_by_caller")
    found = nearest(folder)
    declared = {} if found is None else _declared(found)
    if unknown := sorted(set(wish.excluded) - declared.keys()):
        sentence = "exclude_mcp_servers names servers that are not configured for the folder of the run."
        raise Refusal("invalid_input", sentence, {"unknown": _told(unknown), "configured": _told(sorted(declared))})
    if found is None:
        return Servers(None, None, (), "no_mcp_config_found")
    if not declared:
        return Servers(found, (), (), "mcp_config_declares_no_servers")
    kept = {name: server for name, server in declared.items() if name not in wish.excluded}
    copy = json.dumps({SERVERS: kept, COPY_OF: str(found), SEARCHED_FROM: os.path.realpath(folder)}, indent=2)
    return Servers(found, tuple(sorted(kept)), tuple(sorted(wish.excluded)), None, copy)


def nearest(folder: Path) -> Path | None:
    """The configuration in the folder or the first one above it that has one; that of the user's home is not a project's."""
    start = Path(os.path.realpath(folder))
    for place in (start, *start.parents):
        path = place / FILE
        if os.path.isfile(path) and not _is_account_home(place):
            return path
    return None


def _is_account_home(folder: Path) -> bool:
    """Whether the folder is the home of this user as the system knows it, whatever HOME says."""
    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
        return os.path.isabs(home) and os.path.samefile(home, folder)
    except (KeyError, OSError):
        return False


def _named(config: str, folder: Path) -> Path:
    """The file that a caller names; li takes a relative path from the folder of the run."""
    try:
        return folder / Path(config).expanduser()
    except RuntimeError:  # the home of a user that is not there
        raise Refusal("invalid_input", "mcp_config cannot be used. It is not there.") from None


def _declared(path: Path) -> Mapping[str, object]:
    """The servers in a configuration. Raises Refusal when it has none that li could read."""
    try:
        declared = object_of(path, LARGEST_FILE).get(SERVERS)
    except UnreadableError as error:
        raise _unusable(path, str(error)) from None
    if not isinstance(declared, dict):
        raise _unusable(path, f"{SERVERS} is no object.")
    return declared


def _unusable(path: Path, problem: str) -> Refusal:
    return Refusal("invalid_input", f"The MCP configuration cannot be used. {problem}", {"file": shown_path(path)})


def _told(names: Collection[str]) -> list[str]:
    return [shown_line(name, LONGEST_NAME_TOLD) for name in list(names)[:MOST_NAMES_TOLD]]
