"""What verb functions build a command line from: each token is complete, so no value can become an option."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

from pydantic import BaseModel

Scalar: TypeAlias = str | bool | int | float
Value: TypeAlias = Scalar | Sequence[Scalar] | None

_PARAMETER_NAME = re.compile(r"[^\W_][\w.-]*")


def flag(name: str, value: Value) -> list[str]:
    """`--name=value` in one token, once for each item of a list; `true` is the bare flag, None and `false` are none."""
    if value is None or value is False:
        return []
    if value is True:
        return [name]
    if isinstance(value, list | tuple):
        return [token for item in value for token in flag(name, item)]
    return [f"{name}={_text(value)}"]


def switch(name: str, value: bool | None, *, default: bool = False) -> list[str]:
    """The bare flag, for a boolean that differs from what the command does without it."""
    return [] if value is None or value is default else [name]


def json_flag(name: str, value: Any) -> list[str]:
    """`--name=<JSON>` in one token, as `json.dumps` writes it; models by their wire names, with what was set only."""
    return [] if value is None else [f"{name}={json.dumps(value, default=_plain, allow_nan=False)}"]


def positionals(*values: Value) -> list[str]:
    """`--` and the values behind it, lists spread out, None left out; nothing when no value is left."""
    texts = [text for value in values for text in _texts(value)]
    return ["--", *texts] if texts else []


def extras(params: BaseModel) -> list[str]:
    """Flags for the parameters that a variant adds to a model: `max_ops` becomes `--max-ops=7`.

    Raises ValueError for a name that cannot be a flag.
    """
    added = params.model_extra or {}
    return [token for name, value in added.items() for token in flag(flag_name(name), value)]


def flag_name(parameter: str) -> str:
    """The flag of a parameter that a variant adds. Raises ValueError for a name that cannot be one."""
    if not _PARAMETER_NAME.fullmatch(parameter):
        raise ValueError("A parameter of this variant has a name that cannot be a flag.")
    return "--" + parameter.replace("_", "-")


def _texts(value: Value) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return [_text(item) for item in value]
    return [_text(value)]


def _text(value: object) -> str:
    """A text as it is, a number or boolean in its JSON form. Raises TypeError for what has no form on a command line."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value, allow_nan=False)
    raise TypeError(f"A value of type {type(value).__name__} has no form on a command line.")


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True, exclude_unset=True)
    raise TypeError(f"A value of type {type(value).__name__} has no JSON form.")
