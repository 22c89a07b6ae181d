"""What is wrong with arguments, in JSON terms: built from the place, the keyword and the schema, never from a value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .quoting import quoted, shown

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

MOST_PROBLEMS = 8
PROBLEM_CHARACTERS = 120

_PATH_CHARACTERS = 70
_ANY_NAME = "*"

_TYPES = {
    "array": "an array",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
_BOUNDS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
}
_SIZES = {
    "minLength": ("at least", "character"),
    "maxLength": ("at most", "character"),
    "minItems": ("at least", "item"),
    "maxItems": ("at most", "item"),
    "minProperties": ("at least", "member"),
    "maxProperties": ("at most", "member"),
}
_FIXED = {
    "uniqueItems": "must not have equal items",
    "contains": "lacks an item that it must have",
    "not": "has a form that is not allowed",
    "propertyNames": "has a name that is not allowed",
    "falseSchema": "is not allowed",
}
_UNNAMED = frozenset({"additionalProperties", "unevaluatedProperties"})
_ITEMS = frozenset({"items", "unevaluatedItems"})
# Keywords whose next step in a path is an index or a name of the schema's own.
_STEPPING = frozenset({"anyOf", "oneOf", "allOf", "dependentSchemas", "$defs"})
_DECIDING = frozenset({"type", "const", "enum"})
# Errors that say something about the checking, not about the value; their texts are the library's own.
_UNCHECKED = frozenset({"BacktrackLimitExceeded", "RegexEngineFailure", "Referencing", "FromUtf8"})
ARGUMENTS = "the arguments object"


@dataclass(frozen=True, slots=True)
class Feedback:
    """Words the problems that values have with one schema. `names` allows names that the schema does not declare."""

    schema: dict[str, Any]
    names: bool = True
    refused: Mapping[str, str] = field(default_factory=dict)
    subject: str = ARGUMENTS
    verb: str | None = None  # whose arguments they are

    def problems(self, errors: Iterable[ValidationError], value: Any) -> list[str]:
        """At most eight texts of at most 120 characters: in the order of the members of `value`, then what is missing."""
        leaves = [leaf for error in errors for leaf in _leaves(error)]
        mistyped = {tuple(error.instance_path) for error in leaves if error.kind.name == "type"}
        told = [error for error in leaves if error.kind.name == "type" or tuple(error.instance_path) not in mistyped]
        order = {name: index for index, name in enumerate(value)} if isinstance(value, dict) else {}
        found = [item for error in told for item in self._found(error)]
        found += [(name, self._refusal(name)) for name in order if name in self.refused]
        found.sort(key=lambda item: order.get(item[0], len(order)))
        return bounded([text for _, text in found])

    def _found(self, error: ValidationError) -> Iterator[tuple[Any, str]]:
        """Pairs of a top-level member (None: one that is missing) and a text."""
        path = list(error.instance_path)
        place = self._place(error)
        kind = error.kind
        if kind.name in _UNNAMED and (unexpected := kind.as_dict().get("unexpected")) is not None:
            known = list(_at(self.schema, error.schema_path[:-1]).get("properties", ()))
            for name in unexpected:
                yield (path[0] if path else name), self._unknown(place, name, known)
        elif kind.name == "required":
            name = kind.as_dict()["property"]
            yield (path[0] if path else None), f"{_joined([*place, shown(name)])} is missing"
        else:
            yield (path[0] if path else None), f"{_joined(place) or self.subject} {self._demand(error)}"

    def _unknown(self, place: list[str | int], name: str, known: list[str]) -> str:
        if not place and name in self.refused:
            return self._refusal(name)
        what = "is not a parameter" if self.subject == ARGUMENTS and not place else "is not a known member"
        text = f"{_joined([*place, shown(name) if self.names else _ANY_NAME])} {what}"
        if not self.names:
            return text
        if self.verb and not (place or known):
            return f"{text} of {quoted(self.verb)}, which has none"
        nearest = _nearest(name, known)
        return f"{text}; did you mean {quoted(nearest)}?" if nearest else text

    def _refusal(self, name: str) -> str:
        return f"{quoted(name)} is not accepted: {self.refused[name]}"

    def _place(self, error: ValidationError) -> list[str | int]:
        """Where the error is: names that the schema declares as they are, others only where names may be told."""
        place: list[str | int] = []
        for step, declared in zip(error.instance_path, _declared(error), strict=False):
            if isinstance(step, int):
                place.append(step)
            else:
                place.append(shown(step) if declared or self.names else _ANY_NAME)
        return place

    def _demand(self, error: ValidationError) -> str:
        if type(error.kind).__name__ in _UNCHECKED:
            return "could not be checked"
        keyword, value = error.kind.name, error.kind.value
        if keyword == "type":
            types = _either(_TYPES[name] for name in sorted(value, key="null".__eq__))
            return "must not be null" if error.instance is None else f"must be {types}"
        if keyword in _BOUNDS:
            return f"must be {_BOUNDS[keyword]} {json.dumps(value)}"
        if keyword in _SIZES:
            limit, unit = _SIZES[keyword]
            return f"must have {limit} {value} {unit}{'' if value == 1 else 's'}"
        if keyword in ("const", "enum", "anyOf", "oneOf"):
            return self._choice(error)
        if keyword in ("pattern", "format"):
            return f"must match the {keyword} {shown(str(value), PROBLEM_CHARACTERS)}"
        return _FIXED.get(keyword, "does not fit the schema")

    def _choice(self, error: ValidationError) -> str:
        if type(error.kind).__name__ == "OneOfMultipleValid":
            return "fits more than one of the forms it may have"
        schema = _at(self.schema, error.schema_path[:-1])
        forms = list(dict.fromkeys(self._forms(schema)))
        if None in forms or forms == ["an object"]:
            return "must have one of the forms in the schema"
        one_of = "one of " if "enum" in schema and len(forms) > 1 else ""
        return f"must be {one_of}" + (", ".join(map(str, forms)) if one_of else _either(map(str, forms)))

    def _forms(self, schema: Any, depth: int = 8) -> Iterator[str | None]:
        """What a schema allows, in words; None where there are none."""
        if not isinstance(schema, dict) or depth == 0:
            yield None
        elif "$ref" in schema:
            yield from self._forms(_referred(self.schema, schema["$ref"]), depth - 1)
        elif "const" in schema:
            yield json.dumps(schema["const"], ensure_ascii=False)
        elif "enum" in schema:
            yield from (json.dumps(value, ensure_ascii=False) for value in schema["enum"])
        elif branches := schema.get("anyOf") or schema.get("oneOf"):
            for branch in branches:
                yield from self._forms(branch, depth - 1)
        elif types := schema.get("type"):
            yield from (_TYPES[name] for name in ([types] if isinstance(types, str) else types))
        else:
            yield None


def bounded(problems: list[str]) -> list[str]:
    """The texts without repetitions, each cut to its limit, and those beyond the eighth counted."""
    texts = [_cut(text) for text in dict.fromkeys(problems)]
    if len(texts) <= MOST_PROBLEMS:
        return texts
    return [*texts[: MOST_PROBLEMS - 1], f"{len(texts) - MOST_PROBLEMS + 1} more problems"]


def _cut(text: str) -> str:
    return text if len(text) <= PROBLEM_CHARACTERS else text[: PROBLEM_CHARACTERS - 1] + "…"


def _leaves(error: ValidationError) -> list[ValidationError]:
    """The errors of the one alternative that was meant, where that can be told; otherwise the error itself."""
    branches = getattr(error.kind, "context", None)
    if not branches:
        return [error]
    ranked = sorted((_rank(branch), index) for index, branch in enumerate(branches) if _may_be_meant(branch, error))
    if not ranked or (len(ranked) > 1 and ranked[0][0] == ranked[1][0]):
        return [error]
    return [leaf for inner in branches[ranked[0][1]] for leaf in _leaves(inner)]


def _may_be_meant(branch: list[ValidationError], error: ValidationError) -> bool:
    """Whether the value itself, apart from what is in it, fits an alternative."""
    own = [inner for inner in branch if inner.instance_path == error.instance_path]
    return not any(inner.kind.name in _DECIDING or inner.kind.name in ("anyOf", "oneOf") for inner in own)


def _rank(branch: list[ValidationError]) -> tuple[int, int]:
    """A member that tells the alternatives apart, by a constant, weighs more than any number of other problems."""
    return sum(inner.kind.name in ("const", "enum") for inner in branch), len(branch)


def _declared(error: ValidationError) -> Iterator[bool]:
    """For each step of the instance's path, whether it stands in the schema."""
    steps = iter(error.evaluation_path)
    for step in steps:
        if step == "properties":
            next(steps, None)
            yield True
        elif step == "patternProperties":
            next(steps, None)
            yield False
        elif step == "prefixItems":
            next(steps, None)
            yield True
        elif step in _UNNAMED:
            yield False
        elif step in _ITEMS:
            yield True
        elif step in _STEPPING:
            next(steps, None)


def _at(schema: Any, path: list[str | int]) -> dict[str, Any]:
    """The schema at a path; an empty one where the path does not lead to one."""
    try:
        for step in path:
            schema = schema[step]
    except (IndexError, KeyError, TypeError):
        return {}
    return schema if isinstance(schema, dict) else {}


def _referred(schema: dict[str, Any], reference: str) -> Any:
    """What a reference within the schema points to; None for any other."""
    if not reference.startswith("#"):
        return None
    found: Any = schema
    for token in reference.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _joined(place: list[str | int]) -> str:
    """`rows[0].name` in backticks; an empty text for the value as a whole."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).removeprefix(".")
    if not path:
        return ""
    return quoted(path) if len(path) <= _PATH_CHARACTERS else f"`…{path[1 - _PATH_CHARACTERS :]}`"


def _either(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def _nearest(name: str, known: list[str]) -> str | None:
    from difflib import get_close_matches  # only for a name that is wrong

    return next(iter(get_close_matches(name[:64], known, n=1)), None)
