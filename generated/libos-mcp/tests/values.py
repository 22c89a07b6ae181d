"""Values that a schema accepts, for property tests: hypothesis strategies over the keywords of the spec language."""

import json
import math
from collections.abc import Mapping
from typing import Any

import jsonschema_rs
from hypothesis import strategies as st

Schema = Mapping[str, Any]
Values = st.SearchStrategy[Any]

FORMATS = {
    "date": ["2024-02-29", "1999-12-31"],
    "date-time": ["2024-02-29T12:30:45Z", "1999-12-31T23:59:59.5+02:00"],
    "time": ["12:30:45Z", "23:59:59+02:00"],
    "duration": ["P1DT12H", "PT5M"],
    "email": ["someone@example.com"],
    "idn-email": ["someone@example.com"],
    "hostname": ["example.com", "a-b.example"],
    "idn-hostname": ["example.com"],
    "ipv4": ["192.0.2.1"],
    "ipv6": ["2001:db8::1"],
    "uri": ["https://example.com/a?b#c"],
    "iri": ["https://example.com/a?b#c"],
    "uri-reference": ["/a/b", "#c"],
    "iri-reference": ["/a/b", "#c"],
    "uri-template": ["/a/{b}"],
    "uuid": ["2eb8aa08-aa98-11ea-b4aa-73b441d16380"],
    "json-pointer": ["", "/a/0"],
    "relative-json-pointer": ["0", "1/a"],
    "regex": ["^a+$"],
}
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
)


def accepted(schema: Schema) -> Values:
    """Values that a whole schema accepts, as a server checks it."""
    validator = jsonschema_rs.Draft202012Validator(dict(schema), validate_formats=True)
    return _Strategies(schema.get("$defs", {})).values(schema).filter(validator.is_valid)


class _Strategies:
    """Makes strategies of schemas; a definition has one strategy, which may lead back to itself."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions
        self._defined: dict[str, Values] = {}

    def values(self, schema: Schema) -> Values:
        if "$ref" in schema:
            return self._reference(schema["$ref"].rpartition("/")[2])
        if "const" in schema:
            return st.just(schema["const"])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        named = schema.get("type")
        branches = schema.get("anyOf", schema.get("oneOf"))
        if branches and named is None:
            return st.one_of([self.values(branch) for branch in branches])
        if named is None:
            return ANYTHING
        names = [named] if isinstance(named, str) else named
        return st.one_of([self._of_type(name, schema) for name in names])

    def _reference(self, name: str) -> Values:
        if name not in self._defined:
            self._defined[name] = st.deferred(lambda: self.values(self._definitions[name]))
        return self._defined[name]

    def _of_type(self, name: str, schema: Schema) -> Values:
        match name:
            case "string":
                return _strings(schema)
            case "integer":
                return _integers(schema)
            case "number":
                return _integers(schema) | _floats(schema)
            case "boolean":
                return st.booleans()
            case "null":
                return st.none()
            case "array":
                return self._arrays(schema)
            case _:
                return self._objects(schema)

    def _arrays(self, schema: Schema) -> Values:
        items = self.values(schema["items"]) if "items" in schema else SCALARS
        least = schema.get("minItems", 0)
        most = min(schema.get("maxItems", least + 3), least + 3)
        unique = json.dumps if schema.get("uniqueItems") else None
        return st.lists(items, min_size=least, max_size=most, unique_by=unique)

    def _objects(self, schema: Schema) -> Values:
        properties = {name: self.values(inner) for name, inner in schema.get("properties", {}).items()}
        required = set(schema.get("required", ()))
        fixed = {name: values for name, values in properties.items() if name in required}
        fixed |= {name: SCALARS for name in sorted(required) if name not in properties}
        optional = {name: values for name, values in properties.items() if name not in required}
        listed = st.fixed_dictionaries(fixed, optional=optional)
        further = schema.get("additionalProperties", True)
        if further is False:
            return listed
        values = SCALARS if further is True else self.values(further)
        least = max(0, schema.get("minProperties", 0) - len(fixed))
        most = max(least, min(schema.get("maxProperties", least + 2), least + 2))
        names = st.text(max_size=8).filter(lambda name: name not in properties)
        extra = st.dictionaries(names, values, min_size=least, max_size=most)
        return st.builds(lambda one, other: {**other, **one}, listed, extra)


def _strings(schema: Schema) -> Values:
    if "format" in schema:
        return st.sampled_from(FORMATS[schema["format"]])
    if "pattern" in schema:
        return st.from_regex(schema["pattern"])
    least = schema.get("minLength", 0)
    return st.text(min_size=least, max_size=min(schema.get("maxLength", least + 10), least + 10))


def _integers(schema: Schema) -> Values:
    least, most = _whole_bounds(schema)
    step = schema.get("multipleOf", 1)
    step = step if isinstance(step, int) else 1
    low = None if least is None else -(-least // step)
    high = None if most is None else most // step
    if low is not None and high is not None and low > high:
        return st.nothing()
    return st.integers(min_value=low, max_value=high).map(lambda number: number * step)


def _whole_bounds(schema: Schema) -> tuple[int | None, int | None]:
    """The least and the greatest integer that the bounds let through."""
    lows = [math.ceil(schema["minimum"])] if "minimum" in schema else []
    lows += [math.floor(schema["exclusiveMinimum"]) + 1] if "exclusiveMinimum" in schema else []
    highs = [math.floor(schema["maximum"])] if "maximum" in schema else []
    highs += [math.ceil(schema["exclusiveMaximum"]) - 1] if "exclusiveMaximum" in schema else []
    return max(lows, default=None), min(highs, default=None)


def _floats(schema: Schema) -> Values:
    lows = [schema[key] for key in ("minimum", "exclusiveMinimum") if key in schema]
    highs = [schema[key] for key in ("maximum", "exclusiveMaximum") if key in schema]
    if "multipleOf" in schema or any(abs(bound) > 2**53 for bound in (*lows, *highs)):
        return st.nothing()
    return st.floats(
        min_value=max(lows, default=None), max_value=min(highs, default=None), allow_nan=False, allow_infinity=False
    )
