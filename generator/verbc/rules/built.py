"""What is in the language, and not in the compiler yet."""

from collections.abc import Iterator

from ..backends import backend_kind
from ..parse import Parsed
from ..problems import Problem, quoted
from .lookups import operation_verbs

BUILT = frozenset({"cli", "jobs", "python"})


def everything_is_built(parsed: Parsed) -> Iterator[Problem]:
    spec = parsed.spec
    for name, backend in spec.backends.items():
        if (kind := backend_kind(backend)) not in BUILT:
            yield Problem(parsed.key_at("backends", name), f"the backend kind {quoted(str(kind))} is not built yet")
    if spec.access:
        yield Problem(parsed.key_at("access"), '"access" is not built yet')
    for key in ("protocols", "http"):
        if spec.serve and key in spec.serve.model_fields_set:
            yield Problem(parsed.key_at("serve", key), f"{quoted(key)} is not built yet")
    operations = {name: operation for name, _, operation in operation_verbs(parsed)}
    for name, verb in spec.verbs.items():
        operation = operations.get(name)
        if verb.requires is not None and not (operation and list(verb.requires) == operation.part.get("requires")):
            yield Problem(parsed.key_at("verbs", name, "requires"), '"requires" is not built yet')
        if verb.idempotent == "derived" or (verb.idempotent == "key" and not (operation and operation.open)):
            yield Problem(parsed.at("verbs", name, "idempotent"), f"{quoted(str(verb.idempotent))} is not built yet")
        if "<" in name:
            yield Problem(parsed.key_at("verbs", name), "a verb for each agent is not built yet")
