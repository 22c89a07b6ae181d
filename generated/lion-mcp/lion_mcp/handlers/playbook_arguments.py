"""The arguments that a playbook declares, as parameters of the verbs that run it."""

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from lion_mcp.interface import Call, Refusal

from .foreign_words import is_plain, shown_line

MOST_ARGUMENTS = 100
LONGEST_DEFAULT = 2000  # characters
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]{0,63}")  # of an argument that can be a parameter and a flag
HINT = re.compile(r"\[--(?P<name>[A-Za-z][\w-]*)(?P<value> +[A-Z_][A-Z0-9_]*)?\]", re.ASCII)
# li reads these as flags of its own wherever they stand.
FLAGS_OF_LI: Final = ("help", "max_agents")
TYPES: Final[Mapping[str, str]] = {"bool": "boolean", "float": "number", "int": "integer", "str": "string"}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a playbook."""

    name: str
    type: str  # a key of TYPES
    default: object = None
    required: bool = False


def arguments_of(declared: Mapping[str, object]) -> list[Argument]:
    """The arguments of a playbook that fits the rules: those of `args`, else those that its hint for people names."""
    written, hint = declared.get("args"), declared.get("argument-hint")
    if isinstance(written, Mapping):
        return [_declared(str(name), argument) for name, argument in written.items() if isinstance(argument, Mapping)]
    return list(_hinted(hint)) if isinstance(hint, str) else []


def names_taken(call: Call) -> set[str]:
    """The names that a verb has itself, those it refuses among them: for li most of them are flags."""
    return {*call.verb.params.get("properties", {}), *call.verb.refused}


def further_parameters(arguments: Collection[Argument], taken: Collection[str]) -> dict[str, object]:
    """`{"properties": ..., "required": [...]}` for those arguments whose names are not `taken`.

    Raises Refusal when too many are declared, or one that is needed cannot be given.
    """
    if len(arguments) > MOST_ARGUMENTS:
        raise Refusal("invalid_input", f"The playbook declares more than {MOST_ARGUMENTS} arguments.")
    without = {argument.name for argument in arguments if not _can_be_given(argument, taken)}
    if lost := next((item.name for item in arguments if item.name in without and item.required), None):
        sentence = f'The playbook needs "{shown_line(lost, 64)}", a name that cannot be given here. Rename it there.'
        raise Refusal("invalid_input", sentence)
    given = [argument for argument in arguments if argument.name not in without]
    return {
        "properties": {argument.name: _schema(argument) for argument in given},
        "required": [argument.name for argument in given if argument.required],
    }


def left_out(arguments: Collection[Argument], taken: Collection[str]) -> list[str]:
    """The names of arguments that nobody can give, because li or the verb has something else under that name."""
    return [shown_line(item.name, 64) for item in arguments if not _can_be_given(item, taken)][:MOST_ARGUMENTS]


def _can_be_given(argument: Argument, taken: Collection[str]) -> bool:
    return argument.name not in taken and argument.name not in FLAGS_OF_LI and bool(NAME.fullmatch(argument.name))


def _declared(name: str, written: Mapping[object, object]) -> Argument:
    default = written.get("default")
    return Argument(name, str(written.get("type", "str")), default, written.get("required") is True and default is None)


def _hinted(hint: str) -> Iterator[Argument]:
    found = {match[1].replace("-", "_"): match[2] for match in HINT.finditer(hint)}
    yield from (Argument(name, "str" if placeholder else "bool") for name, placeholder in found.items())


def _schema(argument: Argument) -> dict[str, object]:
    schema: dict[str, object] = {"type": TYPES[argument.type]}
    if argument.type == "bool" and argument.default not in (None, False):
        # li has a flag that switches it on, and none that switches it off.
        schema |= {"const": True, "description": "The playbook has set it, and nothing here can switch it off."}
    if _fits(argument.default, argument.type):
        schema["default"] = argument.default
    return schema


def _fits(default: object, kind: str) -> bool:
    """Whether a default is of the argument's own type; li takes any, and writes it out as text."""
    if isinstance(default, bool) or kind == "bool":
        return isinstance(default, bool) and kind == "bool"
    if isinstance(default, str):
        return kind == "str" and len(default) <= LONGEST_DEFAULT and is_plain(default)
    if isinstance(default, int):
        return kind in ("int", "float")
    return isinstance(default, float) and math.isfinite(default) and kind == "float"
