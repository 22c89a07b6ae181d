"""What is in the language, and not in the compiler yet."""

from collections.abc import Iterator

from ..backends import backend_kind
from ..parse import Parsed
from ..problems import Problem, quoted

BUILT = frozenset({"cli", "gateway", "http", "jobs", "mcp", "python"})


def everything_is_built(parsed: Parsed) -> Iterator[Problem]:
    spec = parsed.spec
    for name, backend in spec.backends.items():
        if (kind := backend_kind(backend)) not in BUILT:
            yield Problem(parsed.key_at("backends", name), f"the backend kind {quoted(str(kind))} is not built yet")
    for name in spec.verbs:
        if "<" in name:
            yield Problem(parsed.key_at("verbs", name), "a verb for each agent is not built yet")
