"""Cuts the reply of a foreign program down to what a verb declares: members that the schema does not name are dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

Schema = Mapping[str, Any]

_ANYTHING: Final[Schema] = {}
# What a schema says about the inside of an object or an array; without any of it, all that is inside stays.
_ABOUT_MEMBERS: Final = ("properties", "additionalProperties")
_ABOUT_ITEMS: Final = ("items",)


def projected(value: Any, schema: Schema) -> Any:
    """`value` without the members that no object of `schema` names; nothing else about it changes.

    Which of several alternatives a value is meant to be cannot be told before it fits one: what any of them names stays.
    """
    definitions: Mapping[str, Schema] = schema.get("$defs", {})
    return _projected(value, [schema], definitions)


def _projected(value: Any, schemas: Iterable[Schema | bool], definitions: Mapping[str, Schema]) -> Any:
    """`value` cut down to what all of `schemas` together name."""
    if isinstance(value, dict):
        forms = _meant("object", _ABOUT_MEMBERS, _forms(schemas, definitions))
        return _members(value, forms, definitions) if forms else value
    if isinstance(value, list):
        items = [form["items"] for form in _meant("array", _ABOUT_ITEMS, _forms(schemas, definitions))]
        return [_projected(item, items, definitions) for item in value] if items else value
    return value


def _members(value: dict[str, Any], forms: Sequence[Schema], definitions: Mapping[str, Schema]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, member in value.items():
        allowed = [schema for form in forms if (schema := _member_schema(form, name)) is not False]
        if allowed:
            kept[name] = _projected(member, allowed, definitions)
    return kept


def _member_schema(form: Schema, name: str) -> Schema | bool:
    """What an object of this form may have under a name; false for nothing."""
    schema: Schema | bool = form.get("properties", {}).get(name, form.get("additionalProperties", True))
    return schema


def _meant(kind: str, keywords: Sequence[str], forms: Iterable[Schema]) -> list[Schema]:
    """The forms that a value of this type may have; none when one of them says nothing about its inside."""
    meant = [form for form in forms if kind in _types(form, kind)]
    return meant if all(any(keyword in form for keyword in keywords) for form in meant) else []


def _types(form: Schema, otherwise: str) -> Sequence[str]:
    types: str | Sequence[str] = form.get("type", otherwise)
    return (types,) if isinstance(types, str) else types


def _forms(schemas: Iterable[Schema | bool], definitions: Mapping[str, Schema]) -> Iterable[Schema]:
    """Schemas and their alternatives, references followed, each one once; true stands for anything."""
    forms: dict[int, Schema] = {}
    waiting, seen = list(schemas), set()
    while waiting:
        schema = waiting.pop()
        if id(schema) in seen:
            continue
        seen.add(id(schema))
        if isinstance(schema, bool):
            forms[id(_ANYTHING)] = _ANYTHING
        elif "$ref" in schema:
            waiting.append(definitions[schema["$ref"].rpartition("/")[2]])
        elif "properties" not in schema and (branches := [*schema.get("anyOf", ()), *schema.get("oneOf", ())]):
            waiting += branches
        else:
            forms[id(schema)] = schema
    return forms.values()
