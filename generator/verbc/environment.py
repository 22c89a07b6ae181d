"""The Jinja environment: a template may print code, and nothing but code."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from .literals import Code

_BESIDE = Path(__file__).parent / "templates"  # in a wheel
_REPOSITORY = Path(__file__).parents[2] / "templates"  # in a checkout


@cache
def environment() -> Environment:
    """The templates beside this package if they are there, else those of the repository."""
    folder = _BESIDE if _BESIDE.is_dir() else _REPOSITORY
    return Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        finalize=_only_code,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _only_code(value: object) -> Code:
    if not isinstance(value, Code):
        raise TypeError(f"a template prints a {type(value).__name__} that never became code")
    return value
