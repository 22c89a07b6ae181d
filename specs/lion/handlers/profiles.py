"""The answers about agent profiles."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lion_mcp.interface import Refusal

from .places import NAME, Found, Root, find, folder_to_look_from, names_in, roots_from, shown
from .settings import SETTINGS, UnreadableProfileError, declared_in, extra_keys, resolved

FIELDS = ("name", "source", "shadowed", "ambiguous", "resolved", *(f"resolved.{setting}" for setting in SETTINGS))
NAME_IN_PLUGIN = re.compile(r"[A-Za-z0-9_-]+/[A-Za-z0-9_-]+")  # a form that li knows; plugins are not looked into
MOST_NAMES_TOLD = 200


def checked_fields(fields: Sequence[str] | None) -> tuple[str, ...] | None:
    """Raises Refusal for a field that no profile has."""
    if fields is None:
        return None
    if any(field not in FIELDS for field in fields):
        raise Refusal("invalid_input", "fields names a field that profiles do not have.", {"known": list(FIELDS)})
    return tuple(fields)


def list_profiles(cwd: str | None, names: Sequence[str] | None, fields: tuple[str, ...] | None) -> dict[str, object]:
    folder = folder_to_look_from(cwd)
    roots = roots_from(folder)
    wanted = [name for name in names_in(roots) if names is None or name in names]
    profiles = [summary_of(name, find(name, roots), fields) for name in wanted]
    return {
        "cwd": shown(folder),
        "roots": [root.as_json() for root in roots],
        "profiles": profiles,
        "count": len(profiles),
    }


def summary_of(name: str, found: Found, fields: tuple[str, ...] | None) -> dict[str, object]:
    """One profile of the list. What is wrong with it stands under `problem`, so that the others are still listed."""
    contents = contents_of(found)
    summary: dict[str, object] = {"name": name}
    if fields is None:
        summary |= {
            "source": found.source_as_json(),
            "shadowed": found.shadowed_as_json(),
            "resolved": contents.settings,
        }
    else:
        places = {
            "source": found.source_as_json(with_match=True),
            "shadowed": found.shadowed_as_json(with_match=True),
            "ambiguous": [place.as_json() for place in found.ambiguous],
        }
        summary |= {field: value for field, value in places.items() if field in fields}
        summary |= chosen_settings(contents.settings, fields)
    return summary | ({"problem": contents.problem} if contents.problem else {})


def chosen_settings(settings: Mapping[str, object] | None, fields: tuple[str, ...]) -> dict[str, object]:
    chosen = [field.removeprefix("resolved.") for field in fields if field.startswith("resolved.")]
    if "resolved" in fields or (chosen and settings is None):
        return {"resolved": settings}
    return {"resolved": {setting: (settings or {}).get(setting) for setting in chosen}} if chosen else {}


@dataclass(frozen=True, slots=True)
class Contents:
    """What a profile's file says, or why that cannot be told."""

    settings: dict[str, object] | None = None
    extra: tuple[str, ...] = ()
    problem: str | None = None


def contents_of(found: Found) -> Contents:
    if found.source is None:
        return Contents(problem="Two files have this name, one with - and one with _; one of them must go.")
    try:
        declared = declared_in(found.source.path)
        return Contents(resolved(declared), extra_keys(declared))
    except UnreadableProfileError as error:
        return Contents(problem=str(error))


def show_profile(name: str, cwd: str | None) -> dict[str, object]:
    """Raises Refusal when there is no such profile, or it cannot be told which one is meant, or what it says."""
    folder = folder_to_look_from(cwd)
    found = find_one(name, roots_from(folder))
    contents = contents_of(found)
    if contents.problem:
        files = [shown(place.path) for place in (found.places[:1] or found.ambiguous)]
        raise Refusal("invalid_input", f"The profile cannot be used. {contents.problem}", {"files": files})
    return {
        "cwd": shown(folder),
        "name": name,
        "source": found.source_as_json(),
        "shadowed": found.shadowed_as_json(),
        "resolved": contents.settings,
        "declared_extra_keys": list(contents.extra),
    }


def find_one(name: str, roots: Sequence[Root]) -> Found:
    """Raises Refusal when no file has the name, or none could."""
    if NAME.fullmatch(name):
        found = find(name, roots)
        if found.places or found.ambiguous:
            return found
    elif not NAME_IN_PLUGIN.fullmatch(name):
        raise Refusal("invalid_input", "A profile's name has only letters, digits, - and _.")
    available = names_in(roots)[:MOST_NAMES_TOLD]
    raise Refusal("not_found", "There is no profile of that name here.", {"available": available})
