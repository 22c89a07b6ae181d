"""The one place where names of a spec become names of Python.

Wire names never change: where a name cannot be a Python name, the field gets another one and keeps the wire name as its
alias. Identifiers are bounded, so that no line of generated code outgrows the line length; a name that had to be cut
ends in a piece of its digest.
"""

import builtins
import keyword
import re
import sys
import unicodedata
from functools import cache
from hashlib import sha256

from pydantic import BaseModel

from .literals import Code

FIELD_LENGTH = 40
CLASS_LENGTH = 50
FUNCTION_LENGTH = 64

# What a field may not be called, beside what a model has of its own: what annotations beside it mean.
_TAKEN_BY_ANNOTATIONS = frozenset({"str", "int", "float", "bool", "list", "dict"})
_WORD = re.compile(r"[A-Za-z0-9]+")
_BUILTINS = frozenset(dir(builtins))
_TAKEN_BY_FUNCTIONS = _BUILTINS | {"extras", "flag", "json_flag", "positionals", "switch"}  # what they are built from
_TAKEN_BY_MODULES = frozenset(sys.stdlib_module_names) | {"handlers", "models", "verbs", "mcp", "pydantic"}


@cache
def field_name(name: str) -> Code:
    """The attribute that holds a parameter or property."""
    plain = _snake(name)
    if plain[:1] == "_" or plain[:1].isdigit():
        plain = f"field{plain}" if plain[:1] == "_" else f"field_{plain}"
    plain = _cut(plain or "field", FIELD_LENGTH - 1)
    # `l` is hard to tell from 1.
    taken = plain in _TAKEN_BY_ANNOTATIONS or plain == "l" or hasattr(BaseModel, plain) or keyword.iskeyword(plain)
    return Code(f"{plain}_" if taken else plain)


@cache
def function_name(verb: str) -> Code:
    """The function that runs a verb, and the method of a protocol: `schedule.create` → `schedule_create`."""
    return _free(_cut(_snake(verb), FUNCTION_LENGTH - 1), _TAKEN_BY_FUNCTIONS)


@cache
def module_name(verb: str) -> Code:
    """The module of a verb: its name up to the first dot; verbs without one share `root`."""
    prefix, dot, _ = verb.partition(".")
    return _free(_cut(_snake(prefix) if dot else "root", FIELD_LENGTH - 1), _TAKEN_BY_MODULES)


@cache
def class_name(*parts: str) -> Code:
    """A class named by parts: `schedule.create`, `Params` → `ScheduleCreateParams`."""
    words = [word for part in parts for word in _WORD.findall(part)]
    joined = "".join(word[:1].upper() + word[1:] for word in words)
    if not joined[:1].isalpha():
        joined = f"Model{joined}"
    if len(joined) > CLASS_LENGTH:
        joined = f"{joined[: CLASS_LENGTH - 8]}{_mark(joined)}"
    return _free(joined, _BUILTINS)


@cache
def protocol_name(backend: str) -> Code:
    """The protocol of a python backend: `local` → `LocalHandlers`."""
    return class_name(backend, "Handlers")


@cache
def argument_name(parameter: str) -> Code:
    """A parameter as the argument of a method: `type` → `type_`."""
    return _free(field_name(parameter), _BUILTINS)


def _snake(name: str) -> str:
    """`maxOps`, `max-ops` and `Max Ops` → `max_ops`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", unicodedata.normalize("NFC", name))
    return re.sub(r"[^A-Za-z0-9_]", "_", words).lower()


def _free(name: str, taken: frozenset[str]) -> Code:
    return Code(f"{name}_" if keyword.iskeyword(name) or name in taken else name)


def _cut(name: str, length: int) -> str:
    if len(name) <= length:
        return name
    return f"{name[: length - 9]}_{_mark(name)}"


def _mark(name: str) -> str:
    """Tells cut names apart."""
    return sha256(name.encode()).hexdigest()[:8]
