"""The schema that a manifest pins for the arguments of a tool: what is taken for one, and when two are the same."""

from __future__ import annotations

from typing import Any

from .fingerprint import canonical_json
from .manifest_fields import ManifestProblem, Path
from .schema_expansion import expansion_problem
from .strict_json import Unacceptable, limited


def schema_problems(schema: dict[str, Any], path: Path) -> list[ManifestProblem]:
    """Why an object is no schema that stands by itself. Its `$schema` says of which draft it is; by default 2020-12."""
    if (text := expansion_problem(schema)) is not None:
        return [ManifestProblem(path, text)]
    from jsonschema_rs import ValidationError, ValidationErrorKind, validator_for  # it costs more than most calls

    try:
        validator_for(schema, validate_formats=True, offline=True)
    except ValidationError as error:
        # Its text is a library's, and may hold anything that the schema holds.
        if isinstance(error.kind, ValidationErrorKind.Referencing):
            return [ManifestProblem(path, "a reference or `$schema` leads out of this schema, or to nothing in it")]
        return [ManifestProblem((*path, *error.instance_path), "this is no valid JSON Schema")]
    except ValueError:
        return [ManifestProblem(path, "this is no valid JSON Schema")]
    return []


def same_schema(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: `1` is `1.0`, and never `true`; the order of keys does not count."""
    try:
        return canonical_json(limited(one)) == canonical_json(limited(other))
    except Unacceptable:
        return False
