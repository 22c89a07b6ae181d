"""How a name is shown in a text, whoever chose it: bounded, on one line, and with nothing in it that steers a display."""

from __future__ import annotations

NAME_CHARACTERS = 64
PATH_CHARACTERS = 4096


def shown(name: str, limit: int = NAME_CHARACTERS) -> str:
    """`name` cut to `limit` characters, with control, bidi and other unprintable characters as `\\u202e`."""
    if len(name) > limit:
        name = name[: limit - 1] + "…"
    return name if name.isprintable() else "".join(map(_escaped, name))


def shown_path(path: object) -> str:
    """A path, or the name that somebody has given a file, as `shown`; hardly one is cut."""
    return shown(str(path), PATH_CHARACTERS)


def quoted(name: str) -> str:
    """`name` as `shown`, between backticks; one of its own becomes an apostrophe."""
    return f"`{shown(name).replace('`', chr(39))}`"


def listed(names: list[str], most: int = 8) -> str:
    """Names in backticks with commas between them; those beyond `most` are counted."""
    texts = [quoted(name) for name in names[:most]]
    rest = len(names) - len(texts)
    return ", ".join(texts) + (f" and {rest} more" if rest else "")


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    point = ord(character)
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"
