"""The two kinds of typed views: of objects that list all their properties, and of objects that may have more.

A view never judges. What it sees has passed its JSON Schema, so it is strict and adds no rule: it gives names and types.
"""

from pydantic import BaseModel, ConfigDict


class Closed(BaseModel):
    """A view of an object with the listed properties only."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, protected_namespaces=())


class Open(BaseModel):
    """A view of an object that may have further properties; they stand in `model_extra`."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True, protected_namespaces=())
