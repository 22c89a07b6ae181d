"""The stages in order: load → parse → check → resolve → render."""

from pathlib import Path

from .load import load_document
from .parse import parse
from .render import render
from .resolve import resolve
from .rules import check


def compile_spec(path: Path, name: str) -> tuple[str, dict[str, str]]:
    """The package that a spec stands for: the name of its folder, and its files by their path below it.

    `name` is how the spec's place is told in problems and in headers, such as `specs/lion`.

    Raises:
        SpecError: with every problem of the first stage that found some.
    """
    document = load_document(path, name)
    parsed = check(parse(document.root))
    package = resolve(parsed, document.name, document.carried)
    return package.distribution, render(package)
