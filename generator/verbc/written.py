"""What every map of a spec is, as a model."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Tag

# Tags stand among the keys of a path when a problem is told, and no key can begin like this.
TAG = "\0"


class Written(BaseModel):
    """A map of a spec, as it is written."""

    # Only the model of the whole spec is ever asked to validate, so the others need no validators of their own.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def tagged(name: str) -> Tag:
    """The tag of one way to write something."""
    return Tag(f"{TAG}{name}")


def shape(value: Any) -> str:
    """Which of the ways to write something this is: text, list or map."""
    return f"{TAG}{'text' if isinstance(value, str) else 'a list' if isinstance(value, list | tuple) else 'a map'}"


def as_text(value: Any) -> Any:
    """A scalar as the text that was written."""
    return str(value) if isinstance(value, str) else value
