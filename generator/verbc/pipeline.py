"""The stages in order: load → parse → check → resolve → render."""

from collections.abc import Iterable
from pathlib import Path

from .load import load_document
from .parse import parse
from .problems import Mark, Problem, Source, SpecError, quoted
from .render import render
from .resolve import resolve
from .rules import check


def compile_spec(path: Path, name: str) -> tuple[str, dict[str, str]]:
    """The package that a spec stands for: the name of its folder, and its files by their path below it.

    `name` is how the spec's place is told in problems, and its last two parts in headers, such as `specs/lion`.

    Raises:
        SpecError: with every problem of the first stage that found some.
    """
    document = load_document(path, name)
    parsed = check(parse(document.root, document.manifests))
    package = resolve(parsed, document.name, document.carried)
    return package.distribution, render(package)


def compile_all(specs: Iterable[Path]) -> dict[str, dict[str, str]]:
    """Package folder → its files, for every spec.

    Raises:
        SpecError: with the problems of all of them.
    """
    compiled: dict[str, dict[str, str]] = {}
    origins: dict[str, Path] = {}
    problems: list[Problem] = []
    for path in specs:
        try:
            package, texts = compile_spec(path, path.as_posix())
        except SpecError as error:
            problems += error.problems
            continue
        if (other := origins.setdefault(package, path)) != path:
            sentence = f"its package {quoted(package)} is also the one of {other.as_posix()}; name one otherwise"
            problems.append(Problem(Mark(Source(path.as_posix(), ""), 1, 1), sentence))
        compiled[package] = texts
    if problems:
        raise SpecError(problems)
    return compiled
