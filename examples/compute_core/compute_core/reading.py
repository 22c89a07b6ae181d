"""From the bytes of a body to its shape, and words for what does not fit that hold nothing of what was sent."""

import json
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from .refusal import Refusal
from .shapes import Strict

_MOST_PROBLEMS = 8
_EXPECTED = {
    "missing": "a value",
    "null": "a value",
    "model_type": "an object",
    "dict_type": "an object",
    "list_type": "a list",
    "string_type": "text",
    "string_pattern_mismatch": "text that matches {pattern}",
    "string_too_long": "at most {max_length} characters",
    "too_long": "at most {max_length} items",
    "too_short": "at least {min_length} items",
    "not_unique": "items that are all different",
}

Shape = TypeVar("Shape", bound=Strict)


def parsed(body: bytes) -> Any:
    """The JSON value that `body` stands for. Raises Refusal 400 for what is no JSON, or is read in two ways."""
    try:
        value = json.loads(body.decode("utf-8"), object_pairs_hook=_object, parse_constant=_no_constant)
        # What cannot be encoded holds half a surrogate pair, which is no text.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        raise Refusal(400, "invalid_input") from None
    return value


def shaped(shape: type[Shape], value: Any) -> Shape:
    """`value` as `shape`. Raises Refusal 422 with a path and an expectation for each problem, at most 8."""
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        problems = _problems(shape, error)
    raise unfit(problems)


def unfit(problems: list[dict[str, str]]) -> Refusal:
    """The refusal of a request with these problems, each a `path` of declared names and what is `expected` there."""
    return Refusal(422, "invalid_input", detail={"problems": problems})


def _problems(shape: type[Strict], error: ValidationError) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for details in error.errors(include_url=False, include_input=False):
        path, expected = _problem(shape, details)
        problem = {"path": path, "expected": expected}
        if problem not in found:
            found.append(problem)
        if len(found) == _MOST_PROBLEMS:
            break
    return found


def _problem(shape: type[Strict], details: ErrorDetails) -> tuple[str, str]:
    if details["type"] == "extra_forbidden":
        path, inside = _path(shape, details["loc"][:-1])
        return path, f"no members but {', '.join(inside.model_fields if inside else ())}"
    path, _ = _path(shape, details["loc"])
    return path, _EXPECTED.get(details["type"], "another value").format(**details.get("ctx", {}))


def _path(shape: type[Strict], location: tuple[int | str, ...]) -> tuple[str, type[Strict] | None]:
    """A location with declared names and positions alone, and the shape that stands there if it is one."""
    steps = ["body"]
    inside: type[Strict] | None = shape
    for step in location:
        declared = inside.model_fields.get(step) if inside and isinstance(step, str) else None
        if declared is None and isinstance(step, str):
            return ".".join([*steps, "*"]), None  # a key of a map is the caller's own
        steps.append(str(step))
        inside = _shape_of(declared.annotation) if declared else None
    return ".".join(steps), inside


def _shape_of(annotation: object) -> type[Strict] | None:
    return annotation if isinstance(annotation, type) and issubclass(annotation, Strict) else None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError
    return value


def _no_constant(_name: str) -> Any:
    raise ValueError
