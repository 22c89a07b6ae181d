"""The only doors from text to source: what passes them is `Code`, and nothing else can be printed by a template.

What they print is a fixed point of the formatter: brackets with more than one element explode and end in a comma,
strings have the quotes that need fewer escapes, and everything beyond ASCII is escaped.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

WIDTH = 120  # the line length of generated packages, as their pyproject.toml says


class Code(str):
    """Text that is known to be source code, or known to be harmless in the language it is printed in."""

    __slots__ = ()


@cache
def python_text(text: str) -> Code:
    """A Python string literal, in the quotes that need fewer escapes."""
    escaped = _ascii(text)
    if text.count('"') > text.count("'"):
        return Code("'" + escaped.replace("'", "\\'") + "'")
    return Code('"' + escaped.replace('"', '\\"') + '"')


# Everything but printable ASCII, and the backslash.
_NOT_PLAIN = re.compile(r"[^ -\[\]-~]")
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _ascii(text: str) -> str:
    return _NOT_PLAIN.sub(lambda match: _escaped(match[0]), text)


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    point = ord(character)
    return f"\\x{point:02x}" if point <= 0xFF else f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"


def python(value: Any, indent: int = 0, column: int | None = None) -> Code:
    """A Python literal of JSON data that begins at `column`, its later lines indented by `indent` blanks."""
    inner = indent + 4
    match value:
        case str():
            return python_text(value)
        case None | bool() | int() | float():
            return Code(repr(value).replace("e+", "e"))
        case dict():
            keys = [(f"{python_text(key)}: ", item) for key, item in value.items()]
            items = [f"{key}{python(item, inner, inner + len(key))}" for key, item in keys]
            return bracketed("{", items, "}", indent, column)
        case list() | tuple():
            return bracketed("[", [python(item, inner) for item in value], "]", indent, column)
    raise TypeError(f"no literal for {type(value).__name__}")


def bracketed(
    opening: str,
    items: Iterable[str],
    closing: str,
    indent: int = 0,
    column: int | None = None,
    *,
    explode: bool = False,
) -> Code:
    """Items in brackets: each on a line of its own, with a trailing comma; none, or a single one that fits, inline."""
    items = list(items)
    begins = indent if column is None else column
    fits = len(items) == 1 and "\n" not in items[0] and begins + len(opening) + len(items[0]) + len(closing) < WIDTH
    if not items or (fits and not explode):
        return Code(f"{opening}{''.join(items)}{closing}")
    inner = " " * (indent + 4)
    return Code(opening + "".join(f"\n{inner}{item}," for item in items) + f"\n{' ' * indent}{closing}")


def call(function: str, arguments: Iterable[str], column: int = 0, indent: int = 0) -> Code:
    """A call that begins at `column`: on one line if it fits, else with an argument a line."""
    arguments = list(arguments)
    line = f"{function}({', '.join(arguments)})"
    if "\n" not in line and column + len(line) < WIDTH:
        return Code(line)
    return bracketed(f"{function}(", arguments, ")", indent, explode=True)


def signature(head: str, parameters: Iterable[str], returns: str, indent: int = 0) -> Code:
    """The first line of a function: on one line if it fits, else with a parameter a line."""
    parameters = list(parameters)
    line = f"{head}({', '.join(parameters)}) -> {returns}:"
    if len(line) <= WIDTH:
        return Code(line)
    return Code(f"{bracketed(f'{head}(', parameters, ')', indent, explode=True)} -> {returns}:")


def union(prefix: str, members: Iterable[str]) -> Code:
    """`prefix` followed by the members of a union: on one line if it fits, else in parentheses, one a line if need be."""
    members = list(members)
    joined = " | ".join(members)
    if len(prefix) + len(joined) <= WIDTH or len(members) == 1:
        return Code(prefix + joined)
    inner = joined if len(joined) + 4 <= WIDTH else "\n    | ".join(members)
    return Code(f"{prefix}(\n    {inner}\n)")


def literal_type(prefix: str, values: Iterable[Any]) -> Code:
    """`prefix` followed by the type that has these values only."""
    members = [python(value) for value in values]
    line = f"{prefix}Literal[{members[0]}]"
    if len(members) > 1:
        return bracketed(f"{prefix}Literal[", members, "]")
    return Code(line if len(line) <= WIDTH else f"{prefix}Literal[\n    {members[0]}\n]")


def imports(module: str, names: Iterable[str], indent: int = 0) -> Code:
    """`from module import names`, sorted as the linter sorts them."""
    ordered = sorted(set(names), key=lambda name: (_rank(name), natural(name.lower()), natural(name)))
    line = f"from {module} import {', '.join(ordered)}"
    if len(ordered) == 1 and len(line) + indent <= WIDTH:
        return Code(line)
    return bracketed(f"from {module} import (", ordered, ")", indent, explode=True)


def exported(names: Iterable[str]) -> Code:
    """The value of `__all__`, sorted as the linter sorts it."""
    ordered = sorted(set(names), key=lambda name: (_rank(name), natural(name)))
    return bracketed("[", map(python, ordered), "]", explode=True)


_DIGITS = re.compile(r"([0-9]+)")


def natural(name: str) -> tuple[str | int, ...]:
    """A key that puts `a2` before `a10`."""
    return tuple(int(part) if index % 2 else part for index, part in enumerate(_DIGITS.split(name)))


def _rank(name: str) -> int:
    """Constants, then classes, then the rest."""
    if len(name) > 1 and name.isupper():
        return 0
    return 1 if name[:1].isupper() else 2


def docstring(text: str) -> Code:
    """A docstring of one line."""
    line = _ascii(" ".join(text.split()))
    # A quote needs an escape where it would run into the quotes around.
    if line.startswith('"') or line.endswith('"') or '""' in line:
        line = line.replace('"', '\\"')
    return Code(f'"""{line}"""')


def words(code: str) -> set[str]:
    """The names in a piece of Python; what stands in quotes is none."""
    return set(re.findall(r"\w+", re.sub(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", "", code)))


def code_path(path: str) -> Code:
    """A path in a comment or in backticks; whatever could end either is a `?`."""
    return Code(re.sub(r"[^\w./-]", "?", path, flags=re.ASCII))


def code_address(address: str) -> Code:
    """A host with its port and a path in backticks or in a JSON text; whatever could end either is a `?`."""
    return Code(re.sub(r"[^\w.:/\[\]-]", "?", address, flags=re.ASCII))


def toml(value: Any) -> Code:
    """A TOML value: a string, or a list of strings with one a line."""
    if isinstance(value, str):
        return Code(f'"{_TOML_SPECIAL.sub(lambda match: _toml_escaped(match[0]), value)}"')
    return bracketed("[", [toml(item) for item in value], "]", explode=bool(value))


_TOML_SPECIAL = re.compile(r"[^ !#-\[\]-~]")


def _toml_escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    point = ord(character)
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"


# What means something to a Markdown reader anywhere in a line, to a table, or to HTML inside it; what becomes a link by
# itself; and what means something only at the start of a line.
_MARKDOWN = re.compile(r"[\\`*_\[\]<>|&~@]|:(?=//)|(?<=www)\.|^(?:[#+=-]|\d+(?=[.)]))", re.IGNORECASE)


@cache
def markdown(text: str) -> Code:
    """Text in a Markdown paragraph or table cell, where it stays text: one line, nothing rendered."""
    line = _visible(" ".join(text.split()))
    return Code(_MARKDOWN.sub(lambda match: f"{match[0]}\\" if match[0].isdigit() else f"\\{match[0]}", line))


@cache
def markdown_code(text: str) -> Code:
    """A name in backticks, safe inside a table cell."""
    line = _visible(text)
    plain = line.strip() == line and re.fullmatch(r"[^`|\\]+", line)
    return Code(f"`{line}`") if plain else markdown(line)


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else f"U+{ord(character):04X}" for character in text)
