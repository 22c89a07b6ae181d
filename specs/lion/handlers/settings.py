"""What an agent profile sets: the front matter of its file, as li understands it."""

import codecs
import math
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import yaml  # type: ignore[import-untyped,unused-ignore]

SETTINGS = (
    "model",
    "effort",
    "role",
    "pack",
    "yolo",
    "bypass",
    "fast_mode",
    "lion_system",
    "khive_injection",
    "timeout",
    "resume_on_timeout",
    "contain_account_integrations",
    "account_connectors",
    "contain_user_settings",
    "idle_timeout",
    "workload",
)
SWITCHES = {"yolo": False, "bypass": False, "fast_mode": False, "lion_system": True}
SECONDS = ("timeout", "idle_timeout")
CONTAINMENT = ("contain_account_integrations", "contain_user_settings")
ALWAYS_TOLD = SETTINGS[: SETTINGS.index("resume_on_timeout") + 1]
# li obeys these two, and still counts them among the keys that a profile adds of its own.
EXTRA_ALL_THE_SAME = frozenset({"role", "pack"})

FRONT_MATTER = re.compile(r"\A\ufeff?\s*---[ \t]*\n(?P<yaml>.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
LARGEST_FILE = 1 << 20  # bytes that are read of a profile; its settings stand at the start
LARGEST_FRONT_MATTER = 1 << 16  # characters
MOST_NODES = 200  # of a setting's value, counted after YAML's aliases are written out
DEEPEST = 32  # levels of a setting's value; an answer may have 64, with those around it
LARGEST_INTEGER = (1 << 53) - 1  # that every reader of JSON takes as it is


class UnreadableProfileError(Exception):
    """A profile's file says nothing that could be used; the text says why."""


def declared_in(path: Path) -> Mapping[object, object]:
    """The front matter of a profile; empty when there is none or it is no YAML mapping. Raises UnreadableProfileError."""
    front_matter = FRONT_MATTER.match(text_of(path))
    if front_matter is None:
        return {}
    written = front_matter["yaml"]
    if len(written) > LARGEST_FRONT_MATTER:
        raise UnreadableProfileError("Its front matter is too long.")
    try:
        declared: object = yaml.safe_load(written)
    except yaml.YAMLError:
        return {}
    except Exception as error:  # an impossible date, brackets without end, tags on what they do not fit: all sorts
        raise UnreadableProfileError("Its front matter holds a value that cannot be read.") from error
    return declared if isinstance(declared, dict) else {}


def text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE)
        decoder = codecs.getincrementaldecoder("utf-8")()  # a character may be cut where reading stopped
        return decoder.decode(content, final=len(content) < LARGEST_FILE).replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise UnreadableProfileError("Its file cannot be read.") from error
    except UnicodeDecodeError as error:
        raise UnreadableProfileError("Its bytes are not UTF-8.") from error


def resolved(declared: Mapping[object, object]) -> dict[str, object]:
    """Every setting in the order of SETTINGS; those that are seldom used only when they are set."""
    settings = {setting: effective(setting, declared) for setting in SETTINGS}
    return {setting: value for setting, value in settings.items() if setting in ALWAYS_TOLD or value is not None}


def effective(setting: str, declared: Mapping[object, object]) -> object:
    value = declared.get(setting)
    if setting in SWITCHES:
        return bool(declared.get(setting, SWITCHES[setting]))
    if setting in SECONDS:
        return value if isinstance(value, int) and value is not True and 0 < value <= LARGEST_INTEGER else None
    if setting == "resume_on_timeout":
        return isinstance(value, str) and value.strip().lower() == "once"
    if setting == "workload":
        return value if value == "light" else None
    if setting == "account_connectors":
        return as_json(connectors(value), [MOST_NODES])
    if setting in CONTAINMENT:
        given = setting in declared if setting == "contain_user_settings" else value is not None
        return True if given and value is not False else None
    return as_json(value, [MOST_NODES])


def connectors(value: object) -> list[str] | None:
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        return None
    return [item.strip() for item in value] or None


def as_json(value: object, left: list[int], depth: int = 0) -> object:
    """The value in JSON's terms; `left` counts down the nodes that may still come. Raises UnreadableProfileError."""
    left[0] -= 1
    if left[0] < 0 or depth > DEEPEST:
        raise UnreadableProfileError("One of its settings is too large.")
    if value is None or isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, int):
        return bounded(value)
    if isinstance(value, Mapping):
        return {as_text(key): as_json(item, left, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [as_json(item, left, depth + 1) for item in value]
    if isinstance(value, date):
        return value.isoformat()
    return as_text(value)


def bounded(number: int) -> int:
    """Raises UnreadableProfileError for a number that could not be sent."""
    if abs(number) > LARGEST_INTEGER:
        raise UnreadableProfileError("Its front matter holds a number that is too large.")
    return number


def as_text(value: object) -> str:
    """Any value as text that is valid Unicode, which an escape in YAML need not be. Raises UnreadableProfileError."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(bounded(value) if isinstance(value, int) else value).encode(errors="replace").decode()


def extra_keys(declared: Mapping[object, object]) -> tuple[str, ...]:
    """The keys that are no settings, as text and sorted. Raises UnreadableProfileError."""
    return tuple(sorted(as_text(key) for key in declared if key not in SETTINGS or key in EXTRA_ALL_THE_SAME))
