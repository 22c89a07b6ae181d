"""What rules look up in a spec."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..backends import HOOKS, CliBackend, JobsBackend, backend_kind
from ..operations import KINDS, SPAWN, Operation, operations
from ..parse import Parsed
from ..problems import Mark
from ..schemas import Node, children, used_names
from ..source import Map
from ..spec import Run, Schema, Verb


@dataclass(frozen=True, slots=True)
class Command:
    """A verb that is a command line, run at once or in the background."""

    name: str
    verb: Verb
    run: Run
    backend: CliBackend  # the command line itself
    target: str  # its words
    args: tuple[str, ...]  # what follows them
    target_at: Mark
    hooks: str | None  # the python backend that is told of runs in the background
    background: bool


def run_of(parsed: Parsed, verb: Verb) -> tuple[str, str] | None:
    """Backend name and target of a verb, if it has exactly one that exists."""
    targets = verb.run.targets if verb.run else {}
    name = next(iter(targets), "")
    alone = len(targets) == 1 and name in parsed.spec.backends and isinstance(targets[name], str)
    return (name, str(targets[name])) if alone else None


def commands(parsed: Parsed) -> Iterator[Command]:
    """Every verb that is a command line."""
    backends = parsed.spec.backends
    for name, verb in parsed.spec.verbs.items():
        found = run_of(parsed, verb)
        if not found or verb.run is None:
            continue
        backend, target = backends[found[0]], found[1]
        mark = parsed.at("verbs", name, "run", found[0])
        if isinstance(backend, CliBackend):
            yield Command(name, verb, verb.run, backend, target, backend.args, mark, None, background=False)
        elif isinstance(backend, JobsBackend) and target.startswith(f"{SPAWN} "):
            line, words = backends.get(backend.jobs), target.removeprefix(f"{SPAWN} ")
            if isinstance(line, CliBackend):
                yield Command(name, verb, verb.run, line, words, (), mark, backend.hooks, background=True)


def operation_verbs(parsed: Parsed) -> Iterator[tuple[str, Verb, Operation]]:
    """Every verb that runs an operation of its backend, `spawn` included."""
    for name, verb in parsed.spec.verbs.items():
        found = run_of(parsed, verb)
        kind = backend_kind(parsed.spec.backends[found[0]]) if found else ""
        if found and kind in KINDS and (operation := operations(kind).get(found[1].partition(" ")[0])):
            yield name, verb, operation


def hook_methods(parsed: Parsed) -> dict[str, str]:
    """The methods that hooks have, each with the jobs backend that calls it."""
    backends = parsed.spec.backends.items()
    jobs = [name for name, backend in backends if isinstance(backend, JobsBackend) and backend.hooks]
    return {f"{name}_{hook}": name for name in jobs for hook in HOOKS}


def located_nodes(parsed: Parsed) -> Iterator[tuple[tuple[str | int, ...], Node]]:
    """Every outermost schema of a spec with its path."""
    for name, node in parsed.spec.types.items():
        yield ("types", name), node
    for name, verb in parsed.spec.verbs.items():
        for parameter, node in verb.params.items():
            yield ("verbs", name, "params", parameter), node
        if verb.declared is not None:
            yield ("verbs", name, "result"), verb.declared


def used_types(parsed: Parsed) -> set[str]:
    """The named types that a verb uses, also by way of others."""
    pending = [node for path, node in located_nodes(parsed) if path[0] == "verbs"]
    pending += _taken_over(parsed)
    used: set[str] = set()
    while pending:
        for name in used_names(pending.pop()):
            if name in parsed.spec.types and name not in used:
                used.add(name)
                pending.append(parsed.spec.types[name])
    return used


def every_node(parsed: Parsed) -> Iterator[tuple[tuple[str | int, ...], Node]]:
    """Every schema of a spec, those inside others as well, with its path."""
    pending = list(located_nodes(parsed))
    while pending:
        path, node = pending.pop()
        yield path, node
        if isinstance(node, Schema):
            pending.extend(((*path, *step), child) for step, child in children(node))


def _taken_over(parsed: Parsed) -> list[Node]:
    """The types that stand written out as the result of a verb, which something was added to."""
    types, verbs = parsed.document.get("types", {}), parsed.document["verbs"].values()
    marks = {result.mark for verb in verbs if isinstance(result := verb.get("result"), Map)}
    return [name for name, written in types.items() if isinstance(written, Map) and written.mark in marks]


def property_lists(parsed: Parsed) -> Iterator[tuple[tuple[str | int, ...], Iterable[str]]]:
    """Every list of names that become fields of one class, with its path."""
    for name, verb in parsed.spec.verbs.items():
        yield ("verbs", name, "params"), verb.params
    for path, node in every_node(parsed):
        if isinstance(node, Schema) and node.properties:
            yield (*path, "properties"), node.properties
