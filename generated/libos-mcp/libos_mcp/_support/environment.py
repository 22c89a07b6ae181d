"""What comes from the environment: values that a backend names, and the environment that a child process gets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class MissingVariableError(Exception):
    """A variable that is needed is not set, or empty; the text names it and never holds a value."""


def expand(text: str, environ: Mapping[str, str]) -> str:
    """Replace each `${NAME}` and `${NAME:-default}` in `text` by its value.

    A default stands in for a variable that is not set or empty; what a value holds is never expanded again.
    Raises MissingVariableError for a variable without a value and without a default.
    """
    return _REFERENCE.sub(lambda match: _value(match[1], match[2], environ), text)


def child_environment(allowed: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of `environ` that `allowed` lets through, and those that it sets.

    An entry is a name (`PATH`), a pattern (`LC_*`) or a setting (`NO_COLOR=1`), whose value may hold references.
    Settings win over what is let through. Raises MissingVariableError.
    """
    entries = tuple(allowed)
    settings = dict(entry.split("=", 1) for entry in entries if "=" in entry)
    patterns = tuple(entry for entry in entries if "=" not in entry)
    passed = {name: value for name, value in environ.items() if _matches(name, patterns)}
    return passed | {name: expand(value, environ) for name, value in settings.items()}


def _value(name: str, default: str | None, environ: Mapping[str, str]) -> str:
    value = environ.get(name) or default
    if value is None:
        state = "empty" if name in environ else "not set"
        raise MissingVariableError(f"The environment variable `{name}` is {state}.")
    return value


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
