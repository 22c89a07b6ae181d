"""The table of outputs: which template makes which file, and when."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .ir import Package


def _always(package: Package) -> Iterable[Any]:
    return (None,)


@dataclass(frozen=True, slots=True)
class Output:
    """A template, whose path is its output's path and `.j2`, and the items it is printed for.

    `<package>` in a path is the package's name, `<module>` the name of the item.
    """

    path: str
    items: Callable[[Package], Iterable[Any]] = _always


OUTPUTS = (
    Output("pyproject.toml"),
    Output("README.md"),
    Output("docs/verbs.md"),
    Output("policy.example.yaml", lambda package: (None,) if package.policy else ()),
    Output("<package>/__init__.py"),
    Output("<package>/__main__.py"),
    Output("<package>/server.py"),
    Output("<package>/interface.py", lambda package: (package.interface,) if package.interface else ()),
    Output("<package>/models/__init__.py"),
    Output("<package>/models/<module>.py", lambda package: package.models),
    Output("<package>/verbs/__init__.py"),
    Output("<package>/verbs/<module>.py", lambda package: package.verbs),
    Output("tests/package.py"),
)
