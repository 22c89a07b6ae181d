"""What a playbook says, and what li demands of that before it runs it, as far as the file alone can tell."""

import re
from collections.abc import Callable, Mapping
from typing import Final

import yaml  # type: ignore[import-untyped,unused-ignore]

from .bounded_reading import UnreadableError
from .foreign_words import shown_line

LONGEST_PROMPT = 262_144  # characters
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra")
ARGUMENT_TYPES = ("bool", "float", "int", "str")
KEPT_AS_WRITTEN = "argument-hint"  # the one key that li does not read with `_` in place of `-`

Rule = Callable[[object], str | None]  # what is wrong with a value, as the end of a sentence


def _text(value: object) -> str | None:
    return None if isinstance(value, str) else "has to be a text"


def _prompt(value: object) -> str | None:
    if isinstance(value, str) and len(value) > LONGEST_PROMPT:
        return f"is longer than {LONGEST_PROMPT} characters"
    return _text(value)


def _effort(value: object) -> str | None:
    return None if value is None or value in EFFORTS else f"has to be one of {', '.join(EFFORTS)}"


def _switch(value: object) -> str | None:
    return None if isinstance(value, bool) else "has to be true or false"


def _switch_or_text(value: object) -> str | None:
    return None if isinstance(value, bool | str) else "has to be true, false or a text"


def _artifacts(value: object) -> str | None:
    """What a path may be li looks at once it knows where it leads."""
    expected = value.get("expected") if isinstance(value, Mapping) else None
    if not isinstance(expected, list):
        return 'has to be a mapping with a list "expected"'
    ids = [item.get("id") if isinstance(item, Mapping) else None for item in expected]
    if not all(isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in ids):
        return "has one without an id of letters, digits, _ and -"
    if len(set(ids)) < len(ids):
        return "has two of one id"
    if not all(isinstance(item.get("path"), str) and item["path"] for item in expected):
        return "has one without a path"
    return None


def _number(least: int, most: int) -> Rule:
    def rule(value: object) -> str | None:
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return None if fits else f"has to be a whole number from {least} to {most}"

    return rule


def _arguments(value: object) -> str | None:
    if not isinstance(value, Mapping):
        return "has to be a mapping"
    for name, argument in value.items():
        if not isinstance(name, str) or not re.fullmatch(r"\w*[^\W_]\w*", name):
            return "has a name that is not made of letters, digits and _"
        shown = shown_line(name, 64)
        if not isinstance(argument, Mapping):
            return f'has "{shown}", which has to be a mapping'
        if argument.get("type", "str") not in ARGUMENT_TYPES:
            return f'has "{shown}", whose type has to be one of {", ".join(ARGUMENT_TYPES)}'
    return None


_ANYTHING: Final = ("name", "description", "bypass", "links", "pack", "permission_mode", "steps", "use", "yolo")

RULES: Final[Mapping[str, Rule | None]] = {
    **dict.fromkeys((*_ANYTHING, KEPT_AS_WRITTEN)),
    **dict.fromkeys(("agent", "model", "reactive", "save", "team_attach", "team_mode"), _text),
    **dict.fromkeys(("bare", "dry_run", "show_graph"), _switch),
    **dict.fromkeys(("max_agents", "max_ops"), _number(0, 50)),
    "args": _arguments,
    "artifacts": _artifacts,
    "effort": _effort,
    "prompt": _prompt,
    "with_synthesis": _switch_or_text,
    "workers": _number(1, 32),
}


def declared_in(content: bytes) -> Mapping[str, object]:
    """What a playbook says, its keys as li reads them. Raises UnreadableError."""
    try:
        declared: object = yaml.safe_load(content.decode()) or {}
    except UnicodeDecodeError:
        raise UnreadableError("It is not UTF-8.") from None
    except Exception:  # all that YAML can stumble over
        raise UnreadableError("It is not YAML.") from None
    if not isinstance(declared, dict) or not all(isinstance(key, str) for key in declared):
        raise UnreadableError("It is no mapping with texts as keys.")
    return {key if key == KEPT_AS_WRITTEN else key.replace("-", "_"): value for key, value in declared.items()}


def problem_of(declared: Mapping[str, object]) -> str | None:
    """Why li would not run a playbook that says this, in a sentence; None when nothing speaks against it."""
    for key, value in declared.items():
        if key not in RULES:
            return f'"{shown_line(key, 64)}" is nothing that a playbook has.'
        rule = RULES[key]
        if rule and (problem := rule(value)):
            return f"{key} {problem}."
    return None
