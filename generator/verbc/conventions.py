"""How the parameters of a verb become words of a command line."""

import re
from dataclasses import dataclass
from typing import Literal

from .operations import KEY
from .schemas import Node, Types
from .spec import Run, Schema, Verb

FLAG = re.compile(r"--[A-Za-z0-9][A-Za-z0-9_.-]*")
LABEL = "label"  # the held parameter that names a run
_DERIVABLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Argument:
    """One parameter on a command line."""

    parameter: str
    form: Literal["flag", "switch", "json", "positional"]
    flag: str = ""
    default: bool = False  # of a switch: the value that needs no flag


def flag_of(parameter: str, run: Run) -> str | None:
    """The flag of a parameter: its `as`, else made from its name, else None."""
    return run.as_[parameter] if parameter in run.as_ else made_flag(parameter)


def made_flag(parameter: str) -> str | None:
    """The flag that is made from a parameter's name: `max_ops` → `--max-ops`; None where none can be."""
    return f"--{parameter.replace('_', '-')}" if _DERIVABLE.fullmatch(parameter) else None


def arguments(verb: Verb, run: Run, types: Types) -> list[Argument]:
    """The parameters in the order of the command line: flags as declared, then positionals in their own order."""
    flags = [
        _flag(name, node, run, types)
        for name, node in verb.params.items()
        if name not in (*run.positional, *run.held, KEY)
    ]
    return [*flags, *(Argument(name, "positional") for name in run.positional)]


def _flag(name: str, node: Node, run: Run, types: Types) -> Argument:
    flag = flag_of(name, run) or ""
    if name in run.json_:
        return Argument(name, "json", flag)
    if types.admitted(node) <= {"boolean", "null"}:
        return Argument(name, "switch", flag, _default_is_true(node, types))
    return Argument(name, "flag", flag)


def _default_is_true(node: Node, types: Types) -> bool:
    return isinstance(node, Schema) and node.default is not None and types.form(node).get("default") is True


def needs_json(node: Node, types: Types) -> bool:
    """Whether a value can hold an object, or a list of anything but texts and numbers: no flag can say that."""
    admitted = types.admitted(node)
    if "object" in admitted:
        return True
    if "array" not in admitted:
        return False
    items = _items(node, types)
    return items is None or bool(types.admitted(items) & {"object", "array", "boolean", "null"})


def _items(node: Node, types: Types) -> Node | None:
    resolved = types.resolved(node)
    return resolved.items if isinstance(resolved, Schema) else None
