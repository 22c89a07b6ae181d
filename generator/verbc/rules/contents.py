"""Rules of schemas, kinds and examples."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from ..backends import CliBackend, HttpBackend
from ..parse import Parsed
from ..problems import Problem, nearest, quoted
from ..schema_rules import faults
from ..schemas import Node, Types, type_names, used_names
from ..spec import Example, Schema, Verb
from ..support.refusal import BUILT_IN_KINDS
from ..support.validation import Validator
from .lookups import located_nodes, run_of

EXIT_CODES = range(1, 256)  # that can be refusals
STATUSES = range(200, 600)  # of answers; what comes before them is not told
LARGEST_SCHEMA = 10_000  # schemas in one; what is larger no caller can read


def types_come_to_an_end(parsed: Parsed) -> Iterator[Problem]:
    named = parsed.spec.types
    finite: set[str] = set()
    while found := {name for name in named if name not in finite and _ends(named[name], finite, named)}:
        finite |= found
    for name in named:
        if name not in finite:
            is_name = name in _reached(name, _other_names, named)
            way = "is only a name for itself" if is_name else "holds itself without end; leave a way out"
            if is_name or name in _reached(name, used_names, named):
                yield Problem(parsed.key_at("types", name), f"the type {quoted(name)} {way}")


def _ends(node: Node, finite: set[str], named: Mapping[str, Node]) -> bool:
    """Whether a value of the node can be written down, given the types of which one can."""
    if isinstance(node, str):
        return node not in named or node in finite
    branches = node.anyOf or node.oneOf or ()
    if branches and not any(_ends(branch, finite, named) for branch in branches):
        return False
    names = type_names(node)
    return not names or any(_ends_as(name, node, finite, named) for name in names)


def _ends_as(name: str, node: Schema, finite: set[str], named: Mapping[str, Node]) -> bool:
    if name == "array":
        return not node.minItems or node.items is None or _ends(node.items, finite, named)
    if name == "object":
        properties = node.properties or {}
        return all(_ends(properties[inner], finite, named) for inner in node.required if inner in properties)
    return _ends(name, finite, named)


def _other_names(node: Node) -> Iterator[str]:
    """What a node is another name for, itself or in one of its branches."""
    if isinstance(node, str):
        yield node
        return
    yield from type_names(node)
    for branch in node.anyOf or node.oneOf or ():
        yield from _other_names(branch)


def _reached(name: str, names: Callable[[Node], Iterable[str]], named: Mapping[str, Node]) -> set[str]:
    pending, reached = [named[name]], set[str]()
    while pending:
        for other in names(pending.pop()):
            if other in named and other not in reached:
                reached.add(other)
                pending.append(named[other])
    return reached


def schemas_stay_readable(parsed: Parsed) -> Iterator[Problem]:
    for path, node in located_nodes(parsed):
        if parsed.types.size(node) > LARGEST_SCHEMA:
            sentence = (
                f"{quoted(str(path[-1]))} holds more than {LARGEST_SCHEMA} schemas when its types are written out"
            )
            yield Problem(parsed.key_at(*path), f"{sentence}; make it smaller")


def schemas_are_sound(parsed: Parsed) -> Iterator[Problem]:
    types = parsed.types
    for path, node in located_nodes(parsed):
        if types.size(node) > LARGEST_SCHEMA:
            continue
        for inner, sentence in faults(node, types):
            yield Problem(parsed.at(*path, *inner), sentence)


def kinds_are_known(parsed: Parsed) -> Iterator[Problem]:
    spec = parsed.spec
    known = {*BUILT_IN_KINDS, *spec.kinds}
    for kind in spec.kinds:
        if kind in BUILT_IN_KINDS:
            yield Problem(parsed.key_at("kinds", kind), f"the kind {quoted(kind)} is built in; name yours otherwise")
    for path, kind in _named_kinds(parsed):
        if kind not in known:
            yield Problem(parsed.at(*path), f"there is no kind {quoted(kind)}{nearest(kind, known)}")


def _named_kinds(parsed: Parsed) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for name, backend in parsed.spec.backends.items():
        for code, kind in (backend.refusals if isinstance(backend, CliBackend | HttpBackend) else {}).items():
            yield ("backends", name, "refusals", code), kind
    for name, verb in parsed.spec.verbs.items():
        for code, kind in (verb.run.refusals if verb.run else {}).items():
            yield ("verbs", name, "run", "refusals", code), kind
        for index, example in enumerate(verb.examples):
            if example.refusal:
                yield ("verbs", name, "examples", index, "refusal"), example.refusal


def codes_can_happen(parsed: Parsed) -> Iterator[Problem]:
    for name, backend in parsed.spec.backends.items():
        if isinstance(backend, CliBackend | HttpBackend):
            yield from _impossible_codes(parsed, backend, backend.refusals, ("backends", name, "refusals"))
    for name, verb in parsed.spec.verbs.items():
        found = run_of(parsed, verb)
        runner = parsed.spec.backends[found[0]] if found else None
        if isinstance(runner, CliBackend | HttpBackend) and verb.run:
            yield from _impossible_codes(parsed, runner, verb.run.refusals, ("verbs", name, "run", "refusals"))


def _impossible_codes(
    parsed: Parsed, backend: CliBackend | HttpBackend, codes: Iterable[str], path: tuple[str, ...]
) -> Iterator[Problem]:
    possible, kind = (EXIT_CODES, "cli") if isinstance(backend, CliBackend) else (STATUSES, "http")
    for code in codes:
        if int(code) not in possible:
            word = "exit codes" if kind == "cli" else "statuses"
            sentence = f"{quoted(code)} has no effect on a backend of the kind {kind}, whose {word} are"
            yield Problem(parsed.key_at(*path, code), f"{sentence} {possible.start} to {possible.stop - 1}")


def examples_fit(parsed: Parsed) -> Iterator[Problem]:
    types = parsed.types
    for name, verb in parsed.spec.verbs.items():
        if not verb.examples:
            continue
        schema = types.params(verb.params, verb.required, opened=bool(verb.varies_with))
        accepts = Validator(schema, names=True, refused=verb.refused, subject="the arguments")
        for index, example in enumerate(verb.examples):
            path = ("verbs", name, "examples", index)
            args = {key: types.data(value, verb.params.get(key)) for key, value in example.args.items()}
            if problems := accepts.problems(args):
                sentence = f"these arguments do not fit the parameters of {quoted(name)}: {problems[0]}"
                yield Problem(parsed.at(*path, "args"), sentence)
            yield from _result_fits(parsed, verb, example, path, types)


def _result_fits(
    parsed: Parsed, verb: Verb, example: Example, path: tuple[str | int, ...], types: Types
) -> Iterator[Problem]:
    if "result" not in example.model_fields_set:
        return
    if example.refusal:
        yield Problem(parsed.key_at(*path, "refusal"), 'an example has a "result" or a "refusal", not both')
    elif verb.declared is not None:
        schema = types.advertised(verb.declared)
        if problems := Validator(schema, names=True, subject="the result").problems(
            types.data(example.result, verb.declared)
        ):
            yield Problem(parsed.at(*path, "result"), f"this result does not fit the declared one: {problems[0]}")
