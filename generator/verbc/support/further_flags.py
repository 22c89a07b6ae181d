"""Whether the parameters that a variant adds to a verb can be flags of its command, beside those that it has already."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from .argv import flag_name
from .binding import Binding

_TOKENS = frozenset({"boolean", "integer", "number", "string"})
# A boolean in a list would be a flag or none, and not say which item it is.
_LIST_TOKENS = _TOKENS - {"boolean"}


def objection(further: Mapping[str, Any], definitions: Mapping[str, Any], taken: Collection[str]) -> str | None:
    """Why `further` (names and their schemas) cannot be flags, when `taken` are; None when they can."""
    known = set(taken)
    for name, schema in further.items():
        try:
            flag = flag_name(name)
        except ValueError as error:
            return str(error)
        if flag in known:
            return "A parameter of this variant has a flag that is taken."
        known.add(flag)
        if not _can_be_said(schema, definitions, _TOKENS):
            return "A parameter of this variant has values that no flag can say."
    return None


def flags_among(words: Iterable[str]) -> Iterator[str]:
    """The flags in a command line, without their values, up to `--`."""
    for word in words:
        if word == "--":
            return
        if word.startswith("-"):
            yield word.partition("=")[0]


def declared_flags(binding: Binding) -> set[str]:
    """The flags that a verb's function can write, its command's own included."""
    if binding.params is None:
        return set(flags_among(binding.function()))
    # A text is no switch's default, so that each parameter is written, whatever its type.
    names: dict[str, Any] = {field.alias or name: "x" for name, field in binding.params.model_fields.items()}
    return set(flags_among(binding.function(binding.params.model_construct(**names))))


def _can_be_said(schema: Any, definitions: Mapping[str, Any], tokens: Collection[str], depth: int = 16) -> bool:
    if not isinstance(schema, dict) or depth == 0:
        return False
    if isinstance(reference := schema.get("$ref"), str):
        return _can_be_said(definitions.get(reference.removeprefix("#/$defs/")), definitions, tokens, depth - 1)
    if isinstance(values := schema.get("enum", [schema["const"]] if "const" in schema else None), list):
        return all(_is_sayable_value(value, tokens) for value in values)
    if types := schema.get("type"):
        return all(_is_sayable_type(name, schema, definitions, tokens, depth) for name in _listed(types))
    branches = schema.get("anyOf") or schema.get("oneOf")
    if not isinstance(branches, list):
        return False
    return all(_can_be_said(branch, definitions, tokens, depth - 1) for branch in branches)


def _is_sayable_type(
    name: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any], tokens: Collection[str], depth: int
) -> bool:
    if name == "array" and tokens is _TOKENS:
        return _can_be_said(schema.get("items"), definitions, _LIST_TOKENS, depth - 1)
    return name in tokens or (name == "null" and tokens is _TOKENS)


def _is_sayable_value(value: Any, tokens: Collection[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in tokens
    if isinstance(value, list) and tokens is _TOKENS:
        return all(_is_sayable_value(item, _LIST_TOKENS) for item in value)
    return isinstance(value, str | int | float) or (value is None and tokens is _TOKENS)


def _listed(types: Any) -> list[Any]:
    return types if isinstance(types, list) else [types]
