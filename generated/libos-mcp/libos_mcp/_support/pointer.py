"""JSON pointers (RFC 6901) into parsed JSON."""

from __future__ import annotations

import re
from typing import Any, Final

_INDEX = re.compile(r"0|[1-9][0-9]*")


class Missing:
    """The type of MISSING, which stands for a place that a document does not have."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False


MISSING: Final = Missing()


def look_up(document: Any, pointer: str) -> Any:
    """The value at `pointer` (`""` is the whole document), or MISSING."""
    value = document
    for token in pointer.split("/")[1:]:
        value = _member(value, token.replace("~1", "/").replace("~0", "~"))
    return value


def _member(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value.get(name, MISSING)
    if isinstance(value, list) and _INDEX.fullmatch(name) and len(name) <= len(str(len(value))):
        return value[int(name)] if int(name) < len(value) else MISSING
    return MISSING
