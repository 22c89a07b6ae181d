"""Cuts the reply of a foreign program down to what a verb declares: members that the schema does not name are dropped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]
# What a schema says about the inside of an object or an array; without any of it, all that is inside may stay.
_INSIDES = {"object": ("properties", "additionalProperties"), "array": ("items",)}


def projected(value: Any, schema: Schema) -> Any:
    """`value` without the members that no object of `schema` names; nothing else about it changes.

    Which of several alternatives a value is meant to be cannot be told before it fits one: what any of them names stays.
    """
    definitions: Mapping[str, Schema] = schema.get("$defs", {})
    return _projected(value, list(_forms(schema, definitions)), definitions)


def _projected(value: Any, forms: Sequence[Schema], definitions: Mapping[str, Schema]) -> Any:
    kind = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else None
    meant = [form for form in forms if kind is not None and kind in _types(form)]
    if kind is None or not all(any(keyword in form for keyword in _INSIDES[kind]) for form in meant):
        return value
    if not meant:
        return value
    if kind == "array":
        items = [inner for form in meant for inner in _forms(form["items"], definitions)]
        return [_projected(item, items, definitions) for item in value]
    kept: dict[str, Any] = {}
    for name, member in value.items():
        allowed = [schema for form in meant if (schema := _member_schema(form, name)) is not False]
        if allowed:
            inner = [form for schema in allowed for form in _forms(schema, definitions)]
            kept[name] = _projected(member, inner, definitions)
    return kept


def _member_schema(form: Schema, name: str) -> Schema | bool:
    """What an object of this form may have under a name; false for nothing."""
    schema: Schema | bool = form.get("properties", {}).get(name, form.get("additionalProperties", True))
    return schema


def _forms(schema: Schema | bool, definitions: Mapping[str, Schema]) -> Iterator[Schema]:
    """The alternatives of a schema, references followed; true stands for anything."""
    if isinstance(schema, bool):
        yield {}
    elif "$ref" in schema:
        yield from _forms(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    elif "properties" not in schema and (branches := [*schema.get("anyOf", ()), *schema.get("oneOf", ())]):
        for branch in branches:
            yield from _forms(branch, definitions)
    else:
        yield schema


def _types(form: Schema) -> Sequence[str]:
    types: str | Sequence[str] = form.get("type", tuple(_INSIDES))
    return (types,) if isinstance(types, str) else types
