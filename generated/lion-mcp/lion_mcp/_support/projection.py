"""Cuts the reply of a foreign program down to what a verb declares: members that the schema does not name are dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]


def projected(value: Any, schema: Schema) -> Any:
    """`value` without the members that objects of `schema` do not name; nothing else about it changes."""
    return _projected(value, schema, schema.get("$defs", {}))


def _projected(value: Any, schema: Schema, definitions: Mapping[str, Schema]) -> Any:
    if "$ref" in schema:
        return _projected(value, definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if isinstance(value, list) and "items" in schema:
        return [_projected(item, schema["items"], definitions) for item in value]
    if not isinstance(value, dict):
        return value
    if "properties" in schema:
        return _members(value, schema, definitions)
    objects = [branch for branch in _branches(schema) if "properties" in branch or "$ref" in branch]
    # Which of several objects this is meant to be cannot be told before it fits one.
    return _projected(value, objects[0], definitions) if len(objects) == 1 else value


def _members(value: dict[str, Any], schema: Schema, definitions: Mapping[str, Schema]) -> dict[str, Any]:
    named, further = schema["properties"], schema.get("additionalProperties", True)
    kept: dict[str, Any] = {}
    for name, member in value.items():
        if name in named:
            kept[name] = _projected(member, named[name], definitions)
        elif further is not False:
            kept[name] = member if further is True else _projected(member, further, definitions)
    return kept


def _branches(schema: Schema) -> list[Schema]:
    return [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
