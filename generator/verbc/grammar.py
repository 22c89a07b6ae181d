"""The JSON Schema of the spec language, for editors."""

from typing import Any

from .spec import Spec

NULL = {"type": "null"}
URI = "https://json-schema.org/draft/2020-12/schema"


def grammar() -> dict[str, Any]:
    """The schema of one spec file. Files of a folder hold parts of a spec, so only the whole must have everything."""
    schema = Spec.model_json_schema(by_alias=True)
    return {"$schema": URI, **_cleaned(schema), "title": "A verbc spec"}


def _cleaned(value: Any) -> Any:
    """Without what only pydantic's own models mean: titles made of names, null for a key that is not there."""
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: item for key, item in value.items() if not (key == "title" and isinstance(item, str))}
    # Ways to write something may overlap for a validator, which sees values and not how they were written.
    cleaned = {
        "anyOf" if key == "oneOf" and isinstance(item, list) else key: _cleaned(item)
        for key, item in kept.items()
        if key != "discriminator"
    }
    if isinstance(cleaned.get("anyOf"), list) and NULL in cleaned["anyOf"]:
        alternatives = [item for item in cleaned.pop("anyOf") if item != NULL]
        cleaned.pop("default", None)
        cleaned |= alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives}
    return cleaned
