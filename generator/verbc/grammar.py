"""The JSON Schema of the spec language, for editors."""

from typing import Any

from .spec import Spec

URI = "https://json-schema.org/draft/2020-12/schema"


def grammar() -> dict[str, Any]:
    """The schema of one spec file. Files of a folder hold parts of a spec, so only the whole must have everything."""
    schema = Spec.model_json_schema(by_alias=True)
    return {"$schema": URI, **_cleaned(schema), "title": "A verbc spec"}


def _cleaned(value: Any) -> Any:
    """Without the titles that pydantic makes of names."""
    if isinstance(value, dict):
        return {key: _cleaned(item) for key, item in value.items() if not (key == "title" and isinstance(item, str))}
    return [_cleaned(item) for item in value] if isinstance(value, list) else value
