"""What li, its runs and other people's files say, made fit to travel on: valid Unicode, no control characters, bounded."""

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from unicodedata import category

WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*")

# Controls, format characters (those for writing from right to left among them), surrogates, line and paragraph ends.
ESCAPED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
KEPT = frozenset("\n\t\u200c\u200d")  # layout, and the joiners of ordinary words
DEEPEST = 32  # levels of a value


def shown_text(text: str, most: int) -> str:
    """The text with what cannot be seen written as `\\u001b`, cut to `most` characters with an ellipsis as the last."""
    shown = "".join(_escaped(character) for character in text[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def shown_line(text: str, most: int) -> str:
    """The same on one line."""
    return shown_text(" ".join(text.split()), most)


def shown_path(path: Path, most: int = 4096) -> str:
    """A path as text, whatever bytes it is made of."""
    return shown_text(os.fsencode(path).decode(errors="replace"), most)


def is_plain(text: str) -> bool:
    """Whether the text can be shown just as it is."""
    return all(_escaped(character) == character for character in text)


def word(value: object, most: int) -> str | None:
    """`value` when it is one word of at most `most` characters, such as a status or a code; None when it is anything else."""
    if isinstance(value, str) and len(value) <= most and WORD.fullmatch(value):
        return value
    return None


def shown_value(value: object, depth: int = 0) -> object:
    """A JSON value with every text in it shown; what is nested too deep is left out, and so are numbers without end."""
    if depth > DEEPEST:
        return None
    if isinstance(value, str):
        return shown_text(value, len(value) * 10 + 1)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [shown_value(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return {shown_text(str(key), 200): shown_value(item, depth + 1) for key, item in value.items()}
    return value


def _escaped(character: str) -> str:
    if character.isprintable() or character in KEPT or category(character) not in ESCAPED:
        return character
    point = ord(character)
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"
