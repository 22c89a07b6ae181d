"""Located problems: what is wrong with a spec, where it stands, and how that is shown."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

WINDOW = 120  # characters of a source line that are shown around a place


@dataclass(frozen=True, slots=True)
class Source:
    """One file of a spec: its name as shown to people, and its text."""

    name: str
    text: str

    def line(self, number: int) -> str:
        lines = _lines(self.text)
        return lines[number - 1].rstrip("\r") if number <= len(lines) else ""


@lru_cache(maxsize=1)
def _lines(text: str) -> list[str]:
    """The lines of a text; problems come sorted by source, so one is enough to remember."""
    return text.split("\n")


class Mark(NamedTuple):
    """A place in a source. Lines and columns count from 1, columns in characters."""

    source: Source
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One sentence about one place."""

    mark: Mark
    message: str

    def __str__(self) -> str:
        source, line, column = self.mark
        written = source.line(line)
        place = f"{source.name}:{line}:{column}: {self.message}"
        if not written.strip():
            return place
        start = max(0, min(column - WINDOW // 2, len(written) - WINDOW))
        shown = written[start : start + WINDOW]
        # A tab stays a tab in the indent of the caret, so that both lines shift alike.
        indent = "".join("\t" if character == "\t" else " " for character in written[start : column - 1])
        return f"{place}\n  {shown}\n  {indent}^"


class SpecError(Exception):
    """Raised with every problem that a stage found, in the order of their places."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        unique = dict.fromkeys(problems)
        self.problems = sorted(unique, key=lambda p: (p.mark.source.name, p.mark.line, p.mark.column, p.message))
        super().__init__("\n".join(str(problem) for problem in self.problems))


class NothingWrittenError(Exception):
    """Raised before anything is written, when something else than a spec stands against it. The message says what."""


def quoted(name: str) -> str:
    """A name as problems show it: in quotes, on one line, and not too long."""
    shown = name if name.isprintable() else name.encode("unicode_escape").decode("ascii")
    return f'"{shown[:64]}…"' if len(shown) > 64 else f'"{shown}"'


def listed(names: Iterable[str], conjunction: str = "or") -> str:
    """Names in a row: `"a", "b" or "c"`."""
    shown = [quoted(name) for name in names]
    return f" {conjunction} ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that proposes the known name most like this one, or nothing."""
    import difflib  # only wanted when something is wrong

    matches = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {quoted(matches[0])}?" if matches else ""
