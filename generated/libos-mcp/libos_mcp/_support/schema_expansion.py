"""How much work one value can be for a schema: with references it may grow without end, or twofold with each step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

from .pointer import MISSING, look_up

_MOST: Final = 10_000  # schemas that one value is checked with
_STEPS: Final = 200  # from one of them to the next, in a row
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_NAMES: Final = ("$anchor", "$dynamicAnchor")
# What the same value is checked with.
_SAME: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"})
# What other values are checked with: members, items, names.
_OTHERS: Final = frozenset(
    {"properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames"}
    | {"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "contentSchema"}
    | {"$defs", "definitions"}
)
_MAPS: Final = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"}
)


def expansion_problem(schema: dict[str, Any]) -> str | None:
    """Why values cannot be checked in a bounded time, whatever else is wrong with the schema; None when they can."""
    try:
        _Expansion(schema).check()
    except _UnboundedError as error:
        return str(error)
    return None


class _UnboundedError(Exception):
    pass


class _Expansion:
    """The schemas within one, each with the number of those that a value is checked with because of it."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._root = schema
        self._found: dict[int, dict[str, Any]] = {}  # each once, however many references lead to it
        self._counts: dict[int, int] = {}
        self._named: dict[str, dict[str, Any]] = {}
        # A draft of long ago called it `id`, which others leave to those who write schemas.
        self._id = "id" if "draft-04" in str(schema.get("$schema")) else "$id"

    def check(self) -> None:
        waiting = [self._root]
        while waiting:
            schema = waiting.pop()
            if id(schema) in self._found:
                continue
            self._found[id(schema)] = schema
            self._name(schema)
            waiting.extend(_within(schema, _SAME | _OTHERS))
            waiting.extend(target for target in map(self._pointed, _references(schema)) if target is not None)
        for schema in self._found.values():
            self._count(schema, 0)

    def _name(self, schema: dict[str, Any]) -> None:
        names = [schema.get(keyword) for keyword in _NAMES]
        own_id = schema.get(self._id)
        if isinstance(own_id, str) and own_id.startswith("#"):
            names.append(own_id[1:])
        elif isinstance(own_id, str) and schema is not self._root:
            raise _UnboundedError("a schema within this one has an id of its own")
        for name in names:
            if isinstance(name, str) and self._named.setdefault(name, schema) is not schema:
                raise _UnboundedError("two schemas have the same name")

    def _pointed(self, reference: str) -> dict[str, Any] | None:
        """What a reference leads to by its place; what it leads to by a name is known once all schemas are."""
        if not reference.startswith("#"):
            raise _UnboundedError("a reference leads out of this schema")
        place = unquote(reference[1:])
        target = look_up(self._root, place) if place.startswith("/") or not place else MISSING
        return target if isinstance(target, dict) else None

    def _count(self, schema: dict[str, Any], steps: int) -> int:
        known = self._counts.get(id(schema))
        if known is not None:
            if known == 0:
                raise _UnboundedError("a reference leads back to where it stands")
            return known
        if steps > _STEPS:
            raise _UnboundedError(f"more than {_STEPS} references and schemas follow each other")
        self._counts[id(schema)] = 0  # as long as it is being counted
        count = 1
        for part in (*_within(schema, _SAME), *self._targets(schema)):
            count += self._count(part, steps + 1)
            if count > _MOST:
                raise _UnboundedError(f"one value would be checked with more than {_MOST} schemas")
        self._counts[id(schema)] = count
        return count

    def _targets(self, schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for reference in _references(schema):
            target = self._named.get(unquote(reference[1:]), self._pointed(reference))
            if target is not None:
                yield target


def _references(schema: dict[str, Any]) -> Iterator[str]:
    return (schema[keyword] for keyword in _REFERENCES if isinstance(schema.get(keyword), str))


def _within(schema: dict[str, Any], keywords: frozenset[str]) -> Iterator[dict[str, Any]]:
    for keyword in keywords & schema.keys():
        value = schema[keyword]
        parts = value.values() if keyword in _MAPS and isinstance(value, dict) else [value]
        for part in parts:
            yield from (item for item in (part if isinstance(part, list) else [part]) if isinstance(item, dict))
