"""Rules of the backends that have operations, and of the verbs that run one."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..backends import CliBackend, JobsBackend, PythonBackend, backend_kind
from ..operations import KEY, KINDS, SPAWN, Operation, operations
from ..parse import Parsed
from ..problems import Problem, listed, nearest, quoted
from ..schemas import Types
from ..spec import Verb
from .lookups import operation_verbs, run_of

# Keywords by which a schema lets through less, the more, or the less, they say.
LOWER = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
HIGHER = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
FREE = frozenset({"default", "description", "deprecated"})


def jobs_know_their_backends(parsed: Parsed) -> Iterator[Problem]:
    backends = parsed.spec.backends
    for name, backend in backends.items():
        if not isinstance(backend, JobsBackend):
            continue
        for key, other, kind in (("jobs", backend.jobs, CliBackend), ("hooks", backend.hooks, PythonBackend)):
            if other is not None and not isinstance(backends.get(other), kind):
                fitting = [known for known in backends if isinstance(backends[known], kind)]
                word = "cli" if kind is CliBackend else "python"
                sentence = f"there is no {word} backend {quoted(other)}{nearest(other, fitting)}"
                yield Problem(parsed.at("backends", name, key), sentence)


def operations_exist(parsed: Parsed) -> Iterator[Problem]:
    for name, verb in parsed.spec.verbs.items():
        found = run_of(parsed, verb)
        kind = backend_kind(parsed.spec.backends[found[0]]) if found else ""
        if not found or kind not in KINDS:
            continue
        backend, target = found
        known = operations(kind)
        word, _, rest = target.partition(" ")
        mark = parsed.at("verbs", name, "run", backend)
        if word not in known:
            meant = nearest(word, known) or f"; write {listed(known)}"
            yield Problem(mark, f"there is no operation {quoted(word)}{meant}")
        elif word == SPAWN and not rest:
            yield Problem(mark, f'{quoted(SPAWN)} needs the words of a command, such as "spawn build"')
        elif word != SPAWN and rest:
            yield Problem(mark, f"nothing can follow the operation {quoted(word)}")


def operations_are_narrowed_only(parsed: Parsed) -> Iterator[Problem]:
    for name, verb, operation in operation_verbs(parsed):
        yield from _wider(parsed, name, verb, operation)
        effect = operation.part.get("effect")
        if _word(verb) != SPAWN and verb.effect != effect:
            yield Problem(parsed.at("verbs", name, "effect"), f"the effect of this operation is {quoted(str(effect))}")
        if operation.waits and verb.limits.concurrency is not None:
            mark = parsed.key_at("verbs", name, "limits", "concurrency")
            yield Problem(mark, '"concurrency" has no effect on an operation that waits')


def _word(verb: Verb) -> str:
    assert verb.run is not None  # noqa: S101 - it runs an operation
    return str(next(iter(verb.run.targets.values()))).partition(" ")[0]


def _wider(parsed: Parsed, name: str, verb: Verb, operation: Operation) -> Iterator[Problem]:
    """Where a verb takes or gives what its operation does not."""
    part = Verb.model_validate(operation.part)
    plain = Types.of({})
    for parameter, node in verb.params.items():
        path = ("verbs", name, "params", parameter)
        if parameter in part.params:
            yield from _loosened(parsed, path, plain.form(part.params[parameter]), parsed.types.form(node))
        elif _word(verb) != SPAWN:
            sentence = f"the operation has no parameter {quoted(parameter)}{nearest(parameter, part.params)}"
            yield Problem(parsed.key_at(*path), sentence)
    if verb.declared is not None and part.result is not None:
        given = _without_key(verb, parsed.types.form(verb.declared))
        yield from _loosened(parsed, ("verbs", name, "result"), plain.form(part.result), given)


def _without_key(verb: Verb, form: dict[str, Any]) -> dict[str, Any]:
    """A result without what `idempotent` adds to it."""
    if verb.idempotent != "key" or "properties" not in form:
        return form
    return {
        **form,
        "properties": {name: item for name, item in form["properties"].items() if name != KEY},
    }


def _loosened(
    parsed: Parsed, path: tuple[str | int, ...], whole: Mapping[str, Any], part: Mapping[str, Any]
) -> Iterator[Problem]:
    """The keywords of `part` that let through what `whole` does not."""
    for keyword, said in whole.items():
        if keyword in FREE:
            continue
        given = part.get(keyword)
        if keyword == "properties":
            yield from _properties(parsed, path, whole, part)
        elif keyword == "items" and isinstance(given, dict):
            yield from _loosened(parsed, (*path, keyword), said, given)
        elif not _narrows(keyword, said, given):
            mark = parsed.key_at(*path, keyword)
            yield Problem(mark, f"{quoted(keyword)} lets through what the operation does not; narrow it only")


def _properties(
    parsed: Parsed, path: tuple[str | int, ...], whole: Mapping[str, Any], part: Mapping[str, Any]
) -> Iterator[Problem]:
    known, given = whole["properties"], part.get("properties", {})
    for name, form in given.items():
        if name in known:
            yield from _loosened(parsed, (*path, "properties", name), known[name], form)
        elif whole.get("additionalProperties") is False:
            sentence = f"the operation gives no {quoted(name)}{nearest(name, known)}"
            yield Problem(parsed.key_at(*path, "properties", name), sentence)


def _narrows(keyword: str, whole: Any, part: Any) -> bool:
    if part is None:
        return False
    if keyword in LOWER:
        return bool(part <= whole)
    if keyword in HIGHER:
        return bool(part >= whole)
    if keyword in ("type", "enum"):
        return all(any(_same(item, other) for other in _listed(whole)) for item in _listed(part))
    if keyword == "required":
        return set(part) >= set(whole)
    if keyword == "additionalProperties" and whole is True:
        return True
    return bool(part == whole)


def _same(part: Any, whole: Any) -> bool:
    return type(part) is type(whole) and (part == whole or (part, whole) == ("integer", "number"))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
