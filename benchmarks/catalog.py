"""A made-up catalog of 1,000 verbs with six parameters each: as a spec for verbc, and as JSON Schema for its peer."""

import json
from pathlib import Path
from typing import Any, Final

import yaml

GROUPS: Final = 50
VERBS_PER_GROUP: Final = 20
VERBS: Final = GROUPS * VERBS_PER_GROUP

_NOUNS: Final = ("account", "batch", "device", "invoice", "order", "policy", "report", "session", "task", "volume")
_ACTIONS: Final = ("list", "show", "create", "update", "archive", "assign", "check", "export", "merge", "restore")


def write_spec(path: Path) -> None:
    """Write the catalog as a spec with one command backend."""
    spec = {
        "verbc": 1,
        "server": {"name": "catalog", "summary": "A made-up catalog of a thousand verbs."},
        "backends": {"tool": {"cli": "tool"}},
        "verbs": {name: _verb(name, number) for number, name in enumerate(_names())},
    }
    path.write_text(yaml.safe_dump(spec, sort_keys=False, width=120), encoding="utf-8")


def write_definitions(path: Path) -> None:
    """Write the schemas of the same parameters as one JSON Schema document."""
    definitions = {_class_name(name): _schema(number) for number, name in enumerate(_names())}
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}
    path.write_text(json.dumps(document), encoding="utf-8")


def _names() -> list[str]:
    """`order3.create_1` and so on: twenty verbs under each of fifty prefixes."""
    groups = [f"{noun}{number}" for number in range(GROUPS // len(_NOUNS)) for noun in _NOUNS]
    actions = [f"{action}_{number}" for number in range(VERBS_PER_GROUP // len(_ACTIONS)) for action in _ACTIONS]
    return [f"{group}.{action}" for group in groups for action in actions]


def _class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.replace(".", "_").split("_")) + "Params"


def _verb(name: str, number: int) -> dict[str, Any]:
    group, action = name.split(".")
    schema = _schema(number)
    return {
        "summary": f"Verb {number}: {action.replace('_', ' ')} of {group}.",
        "effect": "read" if action.startswith(("list", "show")) else "write",
        "params": schema["properties"],
        "required": schema["required"],
        "run": {"tool": f"{group} {action}"},
    }


def _schema(number: int) -> dict[str, Any]:
    """Six parameters of different types. The bounds and sentences differ, so that no two schemas are equal."""
    return {
        "type": "object",
        "properties": {
            "id": {
                "type": "string",
                "minLength": 1,
                "maxLength": 40 + number,
                "description": f"Which one of {number}.",
            },
            "limit": {"type": "integer", "minimum": 1, "maximum": 100 + number, "description": "How many at most."},
            "state": {
                "type": "string",
                "enum": ["open", "closed", f"held_{number}"],
                "description": "Only those in this state.",
            },
            "force": {"type": "boolean", "default": False, "description": "Go on although something objects."},
            "labels": {"type": "array", "items": {"type": "string"}, "description": f"Labels of number {number}."},
            "ratio": {"type": "number", "minimum": 0, "maximum": 1 + number, "description": "Share that is taken."},
        },
        "required": ["id", "state"],
        "additionalProperties": False,
    }
