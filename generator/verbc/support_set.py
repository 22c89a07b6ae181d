"""Which support modules a package carries: those that its backends and transports need, and all that these import."""

import re
from functools import cache
from importlib.resources import files

_SIBLINGS = re.compile(r"(?m)^ *from \.(?:(\w+) import| import (\w+(?:, \w+)*)$)")

# Every server has these; what they import comes along.
ALWAYS = ("command", "model", "server_mcp", "serve_stdio")
# Of these only the command knows, which looks for them by their names.
OF_HTTP = ("http_callers", "http_sockets", "keys_command", "serve_http", "verifying")
OF_BACKEND = {
    "cli": ("backend_cli", "argv"),
    "http": ("backend_http",),
    "jobs": ("backend_jobs", "argv"),
    "python": ("backend_python",),
}


def support_modules(kinds: list[str], *, http: bool) -> tuple[str, ...]:
    """The names of the modules for these kinds of backends, and for HTTP where it is served, sorted."""
    pending = [*ALWAYS, *(OF_HTTP if http else ()), *(module for kind in kinds for module in OF_BACKEND[kind])]
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(_imported(name))
    return tuple(sorted(found))


@cache
def support_text(name: str) -> str:
    """The text of a support module."""
    return (files("verbc") / "support" / f"{name}.py").read_text(encoding="utf-8")


@cache
def testing_text(name: str) -> str:
    """The text of a module that the tests of a package use."""
    return (files("verbc") / "testing" / f"{name}.py").read_text(encoding="utf-8")


@cache
def _imported(name: str) -> tuple[str, ...]:
    """The siblings that a module imports, anywhere in it."""
    found = _SIBLINGS.findall(support_text(name))
    return tuple(sibling for one, several in found for sibling in ([one] if one else re.split(r"\W+", several)))
