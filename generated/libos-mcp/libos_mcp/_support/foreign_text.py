"""Text and details that came from outside: escaped and bounded before they travel on as data."""

from __future__ import annotations

import json
import re
from typing import Any
from unicodedata import category

TEXT_CHARACTERS = 2000
DETAIL_CHARACTERS = 16_000

# Controls, format characters (bidi controls among them), surrogates, line and paragraph separators.
_ESCAPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Most text holds none of these, so only what is not plain is looked at one by one.
_NOT_PLAIN = re.compile(r"[^\n\t -~]")
# Line breaks and tabs lay a message out; the joiners are part of ordinary words and emoji.
_KEPT = frozenset("\n\t\u200c\u200d")


def escaped(text: str) -> str:
    """`text` with control and bidi characters written as `\\u001b`; line breaks and tabs stay."""
    return _NOT_PLAIN.sub(lambda found: _escape(found[0]), text)


def short_text(text: str, limit: int = TEXT_CHARACTERS) -> str:
    """`text` escaped, and cut to `limit` characters with an ellipsis as the last one."""
    shown = escaped(text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def cut(text: str | None, limit: int) -> str | None:
    """`text` as it is, cut to `limit` characters with an ellipsis as the last one."""
    return text if text is None or len(text) <= limit else text[: limit - 1] + "…"


def short_value(value: Any, limit: int = DETAIL_CHARACTERS) -> Any:
    """A JSON value with every text in it escaped; one of more than `limit` characters of JSON becomes a short text."""
    text = json.dumps(value, ensure_ascii=False)
    return _escaped_value(value) if len(text) <= limit else short_text(text)


def _escape(character: str) -> str:
    if character in _KEPT or category(character) not in _ESCAPED_CATEGORIES:
        return character
    point = ord(character)
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"


def _escaped_value(value: Any) -> Any:
    match value:
        case str():
            return escaped(value)
        case list():
            return [_escaped_value(item) for item in value]
        case dict():
            return {escaped(key): _escaped_value(item) for key, item in value.items()}
        case _:
            return value
