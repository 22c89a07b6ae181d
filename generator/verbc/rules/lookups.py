"""What rules look up in a spec."""

from collections.abc import Iterable, Iterator

from ..backends import CliBackend
from ..parse import Parsed
from ..schemas import Node, children, used_names
from ..spec import Run, Schema, Verb


def run_of(parsed: Parsed, verb: Verb) -> tuple[str, str] | None:
    """Backend name and target of a verb, if it has exactly one that exists."""
    targets = verb.run.targets if verb.run else {}
    name = next(iter(targets), "")
    alone = len(targets) == 1 and name in parsed.spec.backends and isinstance(targets[name], str)
    return (name, str(targets[name])) if alone else None


def cli_verbs(parsed: Parsed) -> Iterator[tuple[str, Verb, Run, CliBackend, str]]:
    """Every verb run by a command line: name, verb, run, backend, target."""
    for name, verb in parsed.spec.verbs.items():
        found = run_of(parsed, verb)
        if found and verb.run and isinstance(backend := parsed.spec.backends[found[0]], CliBackend):
            yield name, verb, verb.run, backend, found[1]


def located_nodes(parsed: Parsed) -> Iterator[tuple[tuple[str | int, ...], Node]]:
    """Every outermost schema of a spec with its path."""
    for name, node in parsed.spec.types.items():
        yield ("types", name), node
    for name, verb in parsed.spec.verbs.items():
        for parameter, node in verb.params.items():
            yield ("verbs", name, "params", parameter), node
        if verb.result is not None:
            yield ("verbs", name, "result"), verb.result


def used_types(parsed: Parsed) -> set[str]:
    """The named types that a verb uses, also by way of others."""
    pending = [node for path, node in located_nodes(parsed) if path[0] == "verbs"]
    used: set[str] = set()
    while pending:
        for name in used_names(pending.pop()):
            if name in parsed.spec.types and name not in used:
                used.add(name)
                pending.append(parsed.spec.types[name])
    return used


def property_lists(parsed: Parsed) -> Iterator[tuple[tuple[str | int, ...], Iterable[str]]]:
    """Every list of names that become fields of one class, with its path."""
    for name, verb in parsed.spec.verbs.items():
        yield ("verbs", name, "params"), verb.params
    pending = list(located_nodes(parsed))
    while pending:
        path, node = pending.pop()
        if isinstance(node, Schema):
            if node.properties:
                yield (*path, "properties"), node.properties
            pending.extend(((*path, *step), child) for step, child in children(node))
