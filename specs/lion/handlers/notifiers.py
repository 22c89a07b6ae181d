"""The user's own setting `notify.on_terminal`: which program it wants told of the end of a run."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeGuard

from lion_mcp.models import FlowSubmitParams, PlaySubmitParams

from .bounded_reading import UnreadableError
from .li_settings import settings_for
from .tasks import Params

MOST_WORDS = 1000
LONGEST_COMMAND = 1 << 16  # characters of all its words
KINDS: Final = frozenset({"invocation", "play", "schedule_run", "session"})  # whose ends a filter can name
# What is quoted is no matter; what is not, and means something to a shell, needs one.
SHELL = re.compile(r"""'[^']*'|"[^"]*"|(?P<shell>[|&;<>`]|\$[({A-Za-z_])""")


@dataclass(frozen=True, slots=True)
class Notifier:
    """A program that is wanted, or why there can be none, in one word."""

    command: list[str] | None = None
    failure: str | None = None


UNREADABLE: Final = Notifier(failure="settings_unreadable")
UNUSABLE: Final = Notifier(failure="setting_unusable")
NEEDS_SHELL: Final = Notifier(failure="needs_shell")
PYTHON: Final = Notifier(failure="python_adapter")


@dataclass(frozen=True, slots=True)
class Ending:
    """Whose end it is that li tells."""

    kind: str
    id: str | None  # None: li makes it when the run starts, so no filter can name it


def ending_of(params: Params) -> Ending:
    if isinstance(params, FlowSubmitParams | PlaySubmitParams) and params.invocation:
        return Ending("invocation", params.invocation)
    return Ending("session", None)


def notifier_set_for(folder: Path, ending: Ending) -> Notifier | None:
    """What is set for the runs of a folder; None where nothing is, or it is switched off or meant for other ends."""
    try:
        notify = settings_for(folder).get("notify")
    except UnreadableError:
        return UNREADABLE
    return _from_value(notify.get("on_terminal"), ending) if isinstance(notify, Mapping) else None


def _from_value(value: object, ending: Ending) -> Notifier | None:
    if value is None:
        return None
    if isinstance(value, str):
        return _from_text(value)
    return _from_mapping(value, ending) if isinstance(value, Mapping) else UNUSABLE


def _from_text(text: str) -> Notifier:
    if any(found["shell"] for found in SHELL.finditer(text)):
        return NEEDS_SHELL
    try:
        return _from_words(shlex.split(text))
    except ValueError:  # a quote that does not end
        return UNUSABLE


def _from_mapping(value: Mapping[object, object], ending: Ending) -> Notifier | None:
    if value.get("enabled") is False:
        return None
    if "filter" in value:
        wanted = value["filter"]
        if not _is_filter(wanted):
            return UNUSABLE
        if not _lets_through(wanted, ending):
            return None
    adapter = value.get("adapter")
    if not isinstance(adapter, Mapping):
        return UNUSABLE if value.get("enabled") else None
    if adapter.get("kind") == "python":  # it runs inside of li, where --notify has taken its place
        return PYTHON
    return _from_words(adapter.get("argv")) if adapter.get("kind") == "exec" else UNUSABLE


def _from_words(words: object) -> Notifier:
    if not isinstance(words, list) or len(words) > MOST_WORDS or not all(isinstance(word, str) for word in words):
        return UNUSABLE
    if not words or not words[0] or sum(map(len, words)) > LONGEST_COMMAND:
        return UNUSABLE
    return Notifier(words)


def _is_filter(wanted: object) -> TypeGuard[Mapping[str, list[str]]]:
    if not isinstance(wanted, Mapping) or not wanted or not wanted.keys() <= {"kinds", "ids"}:
        return False
    lists = all(isinstance(names, list) and names and all(map(_is_name, names)) for names in wanted.values())
    return lists and KINDS.issuperset(wanted.get("kinds", ()))


def _is_name(name: object) -> bool:
    return isinstance(name, str) and bool(name)


def _lets_through(wanted: Mapping[str, list[str]], ending: Ending) -> bool:
    return ending.kind in wanted.get("kinds", KINDS) and ("ids" not in wanted or ending.id in wanted["ids"])
