"""What every map of a spec is, as a model."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class Written(BaseModel):
    """A map of a spec, as it is written."""

    # Only the model of the whole spec is ever asked to validate, so the others need no validators of their own.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def shape(value: Any) -> str:
    """Which of the ways to write something this is: text, list or map."""
    return "text" if isinstance(value, str) else "list" if isinstance(value, list | tuple) else "map"


def as_text(value: Any) -> Any:
    """A scalar as the text that was written."""
    return str(value) if isinstance(value, str) else value
