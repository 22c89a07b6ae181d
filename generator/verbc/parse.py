"""Document → Parsed: the language as written, checked key by key."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from . import spec as language
from .merge import expand
from .problems import Mark, Problem, SpecError, nearest, quoted
from .source import Map, Seq
from .spec import RUN_OPTIONS, Spec


@dataclass(frozen=True, slots=True)
class Parsed:
    """A spec as written, with the document that knows where each part of it stands."""

    spec: Spec
    document: Map

    def at(self, *path: int | str) -> Mark:
        """Where the value of a path stands."""
        return place(self.document, path)

    def key_at(self, *path: int | str) -> Mark:
        """Where the last key of a path stands."""
        return place(self.document, path, key=True)


def parse(document: Map) -> Parsed:
    """The spec of a document, its verbs put together.

    Raises:
        SpecError: with every key and value that the language does not have.
    """
    whole = expand(document)
    try:
        return Parsed(Spec.model_validate(whole), whole)
    except ValidationError as error:
        raise SpecError(_problem(whole, fault) for fault in error.errors(include_url=False)) from None


def place(document: Map, path: tuple[int | str, ...], *, key: bool = False) -> Mark:
    """Where a path of keys and indices stands; for a missing end, its nearest parent.

    `key` asks for the place of the last key instead of its value.
    """
    return _walk(document, path, key)[0]


def _walk(document: Map, path: tuple[int | str, ...], key: bool) -> tuple[Mark, str]:
    """The place of a path, and the last key on it that is really there."""
    here: Any = document
    mark, name = document.mark, "the spec"
    for part in path:
        if isinstance(here, Map) and part in here:
            name = str(part)
            mark = here.keys_at[name] if key or isinstance(here[name], Map) else here.values_at[name]
            here = here[name]
        elif isinstance(here, Seq) and isinstance(part, int) and part < len(here):
            mark, here = here.items_at[part], here[part]
    return mark, name


def _problem(document: Map, fault: Any) -> Problem:
    path, kind = fault["loc"], fault["type"]
    on_key = kind == "extra_forbidden" or path[-1:] == ("[key]",)
    mark, name = _walk(document, path, on_key)
    return Problem(mark, _sentence(quoted(name), path, kind, fault))


def _sentence(name: str, path: tuple[int | str, ...], kind: str, fault: Any) -> str:
    context = fault.get("ctx", {})
    match kind:
        case "extra_forbidden":
            return f"unknown key {name}{nearest(str(path[-1]), _known_keys())}"
        case "missing":
            return f"{quoted(str(path[-1]))} is missing"
        case "verbc":
            return f"{name} {context.get('message') or fault['msg']}"
        case "literal_error":
            return f"{name} must be {str(context['expected']).replace(chr(39), chr(34))}"
        case "string_type":
            return f"{name} must be text"
        case "tuple_type" | "list_type":
            return f"{name} must be a list"
        case "too_short":
            return f"{name} must not be empty"
        case "greater_than_equal":
            return f"{name} must be at least {context['ge']}"
        case "dict_type" | "model_type" | "model_attributes_type":
            return f"{name} must be a map"
        case _:
            return f"{name} does not fit: {fault['msg']}"


@cache
def _known_keys() -> tuple[str, ...]:
    models = [model for model in vars(language).values() if isinstance(model, type) and issubclass(model, BaseModel)]
    keys = {field.alias or name for model in models for name, field in model.model_fields.items()}
    return tuple(sorted(keys | RUN_OPTIONS))
