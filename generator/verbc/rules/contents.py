"""Rules of schemas, kinds and examples."""

from collections.abc import Iterator

from ..backends import CliBackend
from ..parse import Parsed
from ..problems import Problem, nearest, quoted
from ..schema_rules import faults, validator_of
from ..schemas import Types
from ..spec import Example, Verb
from ..support.refusal import BUILT_IN_KINDS
from .lookups import located_nodes, types_of


def types_hold_something(parsed: Parsed) -> Iterator[Problem]:
    for name in parsed.spec.types:
        seen, node = {name}, parsed.spec.types[name]
        while (target := node if isinstance(node, str) else node.type) in parsed.spec.types:
            if target in seen:
                yield Problem(parsed.key_at("types", name), f"the type {quoted(name)} is only a name for itself")
                break
            seen.add(str(target))
            node = parsed.spec.types[str(target)]


def schemas_are_sound(parsed: Parsed) -> Iterator[Problem]:
    types = types_of(parsed)
    for path, node in located_nodes(parsed):
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
        for code, kind in (backend.refusals if isinstance(backend, CliBackend) else {}).items():
            yield ("backends", name, "refusals", code), kind
    for name, verb in parsed.spec.verbs.items():
        for code, kind in (verb.run.refusals if verb.run else {}).items():
            yield ("verbs", name, "run", "refusals", code), kind
        for index, example in enumerate(verb.examples):
            if example.refusal:
                yield ("verbs", name, "examples", index, "refusal"), example.refusal


def examples_fit(parsed: Parsed) -> Iterator[Problem]:
    types = types_of(parsed)
    for name, verb in parsed.spec.verbs.items():
        if not verb.examples:
            continue
        schema = types.params(verb.params, verb.required, opened=bool(verb.varies_with))
        accepts = validator_of(schema).is_valid
        for index, example in enumerate(verb.examples):
            path = ("verbs", name, "examples", index)
            args = {key: types.data(value, verb.params.get(key)) for key, value in example.args.items()}
            if not accepts(args):
                yield Problem(parsed.at(*path, "args"), f"these arguments do not fit the parameters of {quoted(name)}")
            yield from _result_fits(parsed, verb, example, path, types)


def _result_fits(
    parsed: Parsed, verb: Verb, example: Example, path: tuple[str | int, ...], types: Types
) -> Iterator[Problem]:
    if "result" not in example.model_fields_set:
        return
    if example.refusal:
        yield Problem(parsed.key_at(*path, "refusal"), 'an example has a "result" or a "refusal", not both')
    elif verb.result is not None:
        schema = types.advertised(verb.result)
        if not validator_of(schema).is_valid(types.data(example.result, verb.result)):
            yield Problem(parsed.at(*path, "result"), "this result does not fit the declared one")
