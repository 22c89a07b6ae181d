"""Which support modules a package carries: those that its backends and transports need, and all that these import."""

import re
from functools import cache
from importlib.resources import files

_SIBLINGS = re.compile(r"(?m)^ *from \.(?:(\w+) import| import (\w+(?:, \w+)*)$)")

# Every server has these; what they import comes along.
ALWAYS = ("command", "model", "server_mcp", "serve_stdio")
# Of these only the command knows, which looks for them by their names.
OF_HTTP = ("http_callers", "http_sockets", "keys_command", "serve_http", "verifying")
# And of these.
OF_POLICY = (
    "approvals_command",
    "audit_command",
    "client_consent",
    "governor",
    "operator_command",
    "own_memory",
    "policy_command",
    "state_store",
)
OF_BACKEND = {
    "cli": ("backend_cli", "argv"),
    "gateway": ("backend_gateway", "registration_tables", "servers_command"),
    "http": ("backend_http", "members"),
    "jobs": ("backend_jobs", "argv"),
    "mcp": ("backend_mcp", "members"),
    "python": ("backend_python",),
}


def support_modules(kinds: list[str], *, http: bool, governed: bool) -> tuple[str, ...]:
    """The names, sorted, of the modules for these kinds of backends, for `http` where it is served, and for a policy."""
    pending = [
        *ALWAYS,
        *(OF_HTTP if http else ()),
        *(OF_POLICY if governed else ()),
        *(module for kind in kinds for module in OF_BACKEND[kind]),
    ]
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
