"""What verb functions make an object from: the members that were given, as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel


class _Null:
    """The type of NULL."""

    __slots__ = ()


NULL: Final = _Null()


def nullable(params: BaseModel, name: str) -> Any:
    """The field `name` of a parameter that may be null: NULL where a null was given, None where nothing was."""
    value = getattr(params, name)
    return NULL if value is None and name in params.model_fields_set else value


def given(members: Mapping[str, Any]) -> dict[str, Any]:
    """The object of `members`, without those that are None: they were not given."""
    return {name: _plain(value) for name, value in members.items() if value is not None}


def _plain(value: Any) -> Any:
    match value:
        case _Null():
            return None
        case BaseModel():
            return value.model_dump(by_alias=True, exclude_unset=True)
        case list() | tuple():
            return [_plain(item) for item in value]
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case _:
            return value
