"""The rules across a spec. Reading RULES is reading what has to fit together."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from . import conventions
from .names import class_name, field_name, function_name, module_name
from .parse import Parsed
from .problems import Problem, SpecError, listed, nearest, quoted
from .schema_rules import faults, validator_of
from .schemas import JSON_TYPES, Node, Types, children, used_names
from .spec import RUN_OPTIONS, CliBackend, Example, PythonBackend, Run, Schema, Verb, backend_kind
from .support.refusal import BUILT_IN_KINDS

Rule = Callable[[Parsed], Iterable[Problem]]

BUILT = frozenset({"cli", "python"})
GENERATED_MODULES = frozenset({"server", "interface", "models", "verbs"})
NAMES_OF_MODELS = frozenset({"Any", "Closed", "Field", "Literal", "Open", "TypeAliasType"}) | JSON_TYPES


def check(parsed: Parsed) -> Parsed:
    """The same spec, when nothing in it contradicts anything else.

    Raises:
        SpecError: with every problem that the rules find.
    """
    problems = [problem for rule in RULES for problem in rule(parsed)]
    if not problems:
        problems = [problem for rule in RULES_OF_DATA for problem in rule(parsed)]
    if problems:
        raise SpecError(problems)
    return parsed


def types_of(parsed: Parsed) -> Types:
    """The named types of a spec."""
    return Types.of(parsed.spec.types)


def run_of(parsed: Parsed, verb: Verb) -> tuple[str, str] | None:
    """Backend name and target of a verb, if it has exactly one that exists."""
    targets = verb.run.targets if verb.run else {}
    name = next(iter(targets), "")
    return (name, targets[name]) if len(targets) == 1 and name in parsed.spec.backends else None


def cli_verbs(parsed: Parsed) -> Iterator[tuple[str, Verb, Run, CliBackend, str]]:
    """Every verb run by a command line: name, verb, run, backend, target."""
    for name, verb in parsed.spec.verbs.items():
        found = run_of(parsed, verb)
        if found and verb.run and isinstance(backend := parsed.spec.backends[found[0]], CliBackend):
            yield name, verb, verb.run, backend, found[1]


# --- what is not there yet


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
    for name, verb in spec.verbs.items():
        if verb.requires is not None:
            yield Problem(parsed.key_at("verbs", name, "requires"), '"requires" is not built yet')
        if verb.idempotent in ("key", "derived"):
            yield Problem(parsed.at("verbs", name, "idempotent"), f"{quoted(str(verb.idempotent))} is not built yet")
        if "<" in name:
            yield Problem(parsed.key_at("verbs", name), "a verb for each agent is not built yet")


# --- names


def backends_have_names_of_their_own(parsed: Parsed) -> Iterator[Problem]:
    for name in parsed.spec.backends:
        if name in RUN_OPTIONS:
            yield Problem(
                parsed.key_at("backends", name), f"{quoted(name)} is an option of `run`; name the backend otherwise"
            )


def package_shadows_nothing(parsed: Parsed) -> Iterator[Problem]:
    server = parsed.spec.server
    package = server.package or f"{server.name.replace('-', '_')}_mcp"
    if package in sys.stdlib_module_names or package in ("mcp", "mcp_types", "pydantic", "jsonschema_rs"):
        yield Problem(parsed.at("server", "package"), f"the package {quoted(package)} would hide a module of that name")


def functions_are_distinct(parsed: Parsed) -> Iterator[Problem]:
    yield from _clashes(
        ((name, function_name(name).lower()) for name in parsed.spec.verbs),
        lambda name, other: Problem(
            parsed.key_at("verbs", name),
            f"the verb {quoted(name)} gets the same Python name as {quoted(other)}; rename one",
        ),
    )


def classes_are_distinct(parsed: Parsed) -> Iterator[Problem]:
    yield from _clashes(
        ((name, class_name(name, "Params")) for name in parsed.spec.verbs),
        lambda name, other: Problem(
            parsed.key_at("verbs", name), f"the verb {quoted(name)} gets the same class as {quoted(other)}; rename one"
        ),
    )


def types_have_names_of_their_own(parsed: Parsed) -> Iterator[Problem]:
    taken = {class_name(verb, suffix): verb for verb in parsed.spec.verbs for suffix in ("Params", "Result")}
    for name in parsed.spec.types:
        if name in NAMES_OF_MODELS:
            yield Problem(
                parsed.key_at("types", name), f"the type {quoted(name)} has a name that models use themselves"
            )
        elif name in taken:
            yield Problem(
                parsed.key_at("types", name),
                f"the verb {quoted(taken[name])} gets a class of that name; rename the type",
            )


def attributes_are_distinct(parsed: Parsed) -> Iterator[Problem]:
    for path, properties in _property_lists(parsed):
        yield from _clashes(
            ((name, field_name(name)) for name in properties),
            lambda name, other, path=path: Problem(  # type: ignore[misc]
                parsed.key_at(*path, name), f"{quoted(name)} gets the same Python name as {quoted(other)}; rename one"
            ),
        )


def _clashes(pairs: Iterable[tuple[str, str]], problem: Callable[[str, str], Problem]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for name, made in pairs:
        if made in first:
            yield problem(name, first[made])
        first.setdefault(made, name)


# --- verbs and what runs them


def verbs_are_whole(parsed: Parsed) -> Iterator[Problem]:
    for name, verb in parsed.spec.verbs.items():
        for key in ("summary", "run"):
            if getattr(verb, key) is None:
                yield Problem(parsed.key_at("verbs", name), f"the verb {quoted(name)} has no {quoted(key)}")


def verbs_have_one_backend(parsed: Parsed) -> Iterator[Problem]:
    backends = parsed.spec.backends
    for name, verb in parsed.spec.verbs.items():
        targets = list(verb.run.targets) if verb.run else [""]
        if not targets:
            yield Problem(
                parsed.key_at("verbs", name, "run"), f"`run` names no backend; write {listed(backends)} with its target"
            )
        if len(targets) > 1:
            yield Problem(
                parsed.key_at("verbs", name, "run", targets[1]),
                f"`run` names more than one backend: {listed(targets, 'and')}",
            )
        elif targets and targets[0] and targets[0] not in backends:
            known = [*backends, *RUN_OPTIONS]
            yield Problem(
                parsed.key_at("verbs", name, "run", targets[0]),
                f"there is no backend or option {quoted(targets[0])}{nearest(targets[0], known)}",
            )


def everything_is_used(parsed: Parsed) -> Iterator[Problem]:
    spec = parsed.spec
    backends = {name for verb in spec.verbs.values() if verb.run for name in verb.run.targets}
    backends |= {name for verb in spec.verbs.values() for name in verb.varies_with.values()}
    parts = {name for verb in spec.verbs.values() for name in verb.use}
    used = {name for node in _nodes(parsed) for name in used_names(node)}
    for section, names, wanted in (
        ("backends", spec.backends, backends),
        ("shared", spec.shared, parts),
        ("types", spec.types, used),
    ):
        for name in names:
            if name not in wanted:
                yield Problem(parsed.key_at(section, name), f"nothing uses {quoted(name)}; use it or take it out")
    for name, part in spec.shared.items():
        if part.use:
            yield Problem(
                parsed.key_at("shared", name, "use"), 'a shared part cannot "use" another; name both in the verb'
            )


def targets_fit_their_backend(parsed: Parsed) -> Iterator[Problem]:
    methods: dict[tuple[str, str], str] = {}
    for name, verb in parsed.spec.verbs.items():
        found = run_of(parsed, verb)
        if not found or not isinstance(parsed.spec.backends[found[0]], PythonBackend):
            continue
        backend, target = found
        mark = parsed.at("verbs", name, "run", backend)
        if not target.isidentifier() or function_name(target) != target or target.startswith("_"):
            yield Problem(mark, f"{quoted(target)} cannot be a method's name")
        elif target.startswith("params_for_"):
            yield Problem(mark, f"{quoted(target)} is the name of a method that `varies_with` calls; choose another")
        if (other := methods.setdefault((backend, target), name)) != name:
            yield Problem(mark, f"the method {quoted(target)} runs {quoted(other)} already; one method runs one verb")


def commands_stay_outside_the_fence(parsed: Parsed) -> Iterator[Problem]:
    for name, _, run, backend, target in cli_verbs(parsed):
        words = target.split()
        for fenced in backend.fenced:
            path = fenced.split()
            inside = words[: len(path)] == path
            reaches = path[: len(words)] == words and run.positional
            if inside or reaches:
                yield Problem(
                    parsed.at("verbs", name, "run", next(iter(run.targets))),
                    f"the verb {quoted(name)} reaches the fenced {quoted(fenced)}",
                )


def commands_are_words(parsed: Parsed) -> Iterator[Problem]:
    for name, _, run, _, target in cli_verbs(parsed):
        if (
            not target.strip()
            or target != " ".join(target.split())
            or any(word.startswith("-") for word in target.split()[:1])
        ):
            mark = parsed.at("verbs", name, "run", next(iter(run.targets)))
            yield Problem(
                mark, f"the target {quoted(target)} must be words with one space between them, a command first"
            )


# --- parameters


def required_parameters_exist(parsed: Parsed) -> Iterator[Problem]:
    for name, verb in parsed.spec.verbs.items():
        for index, (parameter, count) in enumerate(Counter(verb.required).items()):
            mark = parsed.at("verbs", name, "required", index)
            if parameter not in verb.params:
                yield Problem(mark, f"there is no parameter {quoted(parameter)}{nearest(parameter, verb.params)}")
            elif count > 1:
                yield Problem(mark, f"{quoted(parameter)} stands in the list already")


def refused_parameters_are_no_parameters(parsed: Parsed) -> Iterator[Problem]:
    for name, verb in parsed.spec.verbs.items():
        for parameter in verb.refused:
            if parameter in verb.params:
                yield Problem(
                    parsed.key_at("verbs", name, "refused", parameter),
                    f"{quoted(parameter)} is a parameter, too; take one out",
                )


def varying_parameters_are_texts(parsed: Parsed) -> Iterator[Problem]:
    types = types_of(parsed)
    for name, verb in parsed.spec.verbs.items():
        if len(verb.varies_with) > 1:
            yield Problem(parsed.key_at("verbs", name, "varies_with"), "only one parameter can bring others")
        for parameter, backend in verb.varies_with.items():
            mark = parsed.key_at("verbs", name, "varies_with", parameter)
            if parameter not in verb.params:
                yield Problem(mark, f"there is no parameter {quoted(parameter)}{nearest(parameter, verb.params)}")
            elif types.admitted(verb.params[parameter]) != {"string"}:
                yield Problem(mark, f"{quoted(parameter)} must be a string to bring other parameters")
            if not isinstance(parsed.spec.backends.get(backend), PythonBackend):
                at = parsed.at("verbs", name, "varies_with", parameter)
                yield Problem(at, f"{quoted(backend)} is no python backend")


def run_options_name_parameters(parsed: Parsed) -> Iterator[Problem]:
    for name, verb in parsed.spec.verbs.items():
        found, run = run_of(parsed, verb), verb.run
        if not found or run is None:
            continue
        if not isinstance(parsed.spec.backends[found[0]], CliBackend):
            for option in ("as", "positional", "json", "held", "reply", "refusals"):
                if f"{option}_" in run.model_fields_set or option in run.model_fields_set:
                    mark = parsed.key_at("verbs", name, "run", option)
                    yield Problem(mark, f"{quoted(option)} has no effect on a python backend")
            continue
        for option, names in (
            ("as", list(run.as_)),
            ("positional", run.positional),
            ("json", run.json_),
            ("held", run.held),
        ):
            for index, parameter in enumerate(names):
                if parameter not in verb.params:
                    step: str | int = parameter if option == "as" else index
                    mark = parsed.key_at("verbs", name, "run", option, step)
                    yield Problem(mark, f"there is no parameter {quoted(parameter)}{nearest(parameter, verb.params)}")


def parameters_have_one_place(parsed: Parsed) -> Iterator[Problem]:
    for name, _, run, _, _ in cli_verbs(parsed):
        ways = {"as": set(run.as_), "positional": set(run.positional), "json": set(run.json_), "held": set(run.held)}
        for one, other in (
            ("positional", "as"),
            ("positional", "json"),
            ("positional", "held"),
            ("held", "as"),
            ("held", "json"),
        ):
            for parameter in sorted(ways[one] & ways[other]):
                mark = parsed.key_at("verbs", name, "run", other)
                yield Problem(
                    mark, f"{quoted(parameter)} stands under {quoted(one)} already, so {quoted(other)} has no effect"
                )
        if run.held:
            yield Problem(
                parsed.key_at("verbs", name, "run", "held"),
                '"held" has no effect on a cli backend, which keeps no record',
            )


def flags_are_distinct(parsed: Parsed) -> Iterator[Problem]:
    types = types_of(parsed)
    for name, verb, run, backend, _ in cli_verbs(parsed):
        owners = {word.split("=")[0]: "the backend's `args`" for word in backend.args}
        for argument in conventions.arguments(verb, run, types):
            parameter = argument.parameter
            if argument.form == "positional" or parameter not in verb.params:
                continue
            way = ("run", "as", parameter) if parameter in run.as_ else ("params", parameter)
            mark = parsed.key_at("verbs", name, *way)
            if not conventions.FLAG.fullmatch(argument.flag):
                yield Problem(mark, f"{quoted(parameter)} makes no flag; give it one under `as`, such as --name")
            elif argument.flag in owners:
                yield Problem(
                    mark,
                    f"the flag {quoted(argument.flag)} of {quoted(parameter)} belongs to {owners[argument.flag]} already",
                )
            owners.setdefault(argument.flag, quoted(parameter))


def commands_can_say_it(parsed: Parsed) -> Iterator[Problem]:
    types = types_of(parsed)
    for name, verb, run, _, _ in cli_verbs(parsed):
        for parameter, node in verb.params.items():
            if parameter not in run.json_ and conventions.needs_json(node, types):
                mark = parsed.key_at("verbs", name, "params", parameter)
                yield Problem(mark, f"{quoted(parameter)} can hold what no flag can say; name it under `json`")
        optional: str | None = None
        for index, parameter in enumerate(run.positional):
            if optional:
                mark = parsed.at("verbs", name, "run", "positional", index)
                yield Problem(
                    mark, f"{quoted(parameter)} would take the place of {quoted(optional)}, which may be left out"
                )
            listing = parameter in verb.params and types.admitted(verb.params[parameter]) == {"array"}
            optional = None if parameter in verb.required or listing else parameter


# --- schemas, kinds, texts


def schemas_are_sound(parsed: Parsed) -> Iterator[Problem]:
    types = types_of(parsed)
    for path, node in _located_nodes(parsed):
        for inner, sentence in faults(node, types):
            yield Problem(parsed.at(*path, *inner), sentence)


def types_hold_something(parsed: Parsed) -> Iterator[Problem]:
    for name in parsed.spec.types:
        seen, node = {name}, parsed.spec.types[name]
        while (target := node if isinstance(node, str) else node.type) in parsed.spec.types:
            if target in seen:
                yield Problem(parsed.key_at("types", name), f"the type {quoted(name)} is only a name for itself")
                break
            seen.add(str(target))
            node = parsed.spec.types[str(target)]


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


def synonyms_lead_somewhere(parsed: Parsed) -> Iterator[Problem]:
    synonyms, verbs = parsed.spec.synonyms, parsed.spec.verbs
    if synonyms.removed_after and not synonyms.verbs:
        yield Problem(parsed.key_at("synonyms", "removed_after"), '"removed_after" has no effect without synonyms')
    for synonym, verb in synonyms.verbs.items():
        if synonym in verbs:
            yield Problem(parsed.key_at("synonyms", "verbs", synonym), f"{quoted(synonym)} is a verb already")
        if verb not in verbs:
            yield Problem(
                parsed.at("synonyms", "verbs", synonym), f"there is no verb {quoted(verb)}{nearest(verb, verbs)}"
            )


def limits_have_an_effect(parsed: Parsed) -> Iterator[Problem]:
    for name, backend in parsed.spec.backends.items():
        if isinstance(backend, PythonBackend) and backend.limits.output is not None:
            yield Problem(
                parsed.key_at("backends", name, "limits", "output"), '"output" has no effect on a python backend'
            )
    for name, verb in parsed.spec.verbs.items():
        found = run_of(parsed, verb)
        if found and isinstance(parsed.spec.backends[found[0]], PythonBackend) and verb.limits.output is not None:
            yield Problem(
                parsed.key_at("verbs", name, "limits", "output"), '"output" has no effect on a python backend'
            )


def handlers_are_modules(parsed: Parsed) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for name, backend in parsed.spec.backends.items():
        if not isinstance(backend, PythonBackend):
            continue
        module, mark = backend.python.removesuffix(".py"), parsed.at("backends", name, "python")
        if module in GENERATED_MODULES or module_name(f"{module}.x") not in (module, f"{module}_"):
            yield Problem(mark, f"{quoted(backend.python)} has the name of a generated file; rename it")
        if (other := seen.setdefault(module, name)) != name:
            yield Problem(mark, f"{quoted(backend.python)} belongs to the backend {quoted(other)} already")


# --- data against schemas, once the schemas are sound


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


RULES: tuple[Rule, ...] = (
    everything_is_built,
    backends_have_names_of_their_own,
    package_shadows_nothing,
    functions_are_distinct,
    classes_are_distinct,
    types_have_names_of_their_own,
    attributes_are_distinct,
    verbs_are_whole,
    verbs_have_one_backend,
    everything_is_used,
    targets_fit_their_backend,
    commands_are_words,
    commands_stay_outside_the_fence,
    required_parameters_exist,
    refused_parameters_are_no_parameters,
    run_options_name_parameters,
    parameters_have_one_place,
    types_hold_something,
    schemas_are_sound,
    kinds_are_known,
    synonyms_lead_somewhere,
    limits_have_an_effect,
    handlers_are_modules,
)
RULES_OF_DATA: tuple[Rule, ...] = (
    varying_parameters_are_texts,
    flags_are_distinct,
    commands_can_say_it,
    examples_fit,
)


def _located_nodes(parsed: Parsed) -> Iterator[tuple[tuple[str | int, ...], Node]]:
    """Every outermost schema of a spec with its path."""
    for name, node in parsed.spec.types.items():
        yield ("types", name), node
    for name, verb in parsed.spec.verbs.items():
        for parameter, node in verb.params.items():
            yield ("verbs", name, "params", parameter), node
        if verb.result is not None:
            yield ("verbs", name, "result"), verb.result


def _nodes(parsed: Parsed) -> Iterator[Node]:
    for path, node in _located_nodes(parsed):
        # A type that only its own definition names is not used.
        if path[0] != "types" or isinstance(node, Schema) or isinstance(node, str):
            yield node


def _property_lists(parsed: Parsed) -> Iterator[tuple[tuple[str | int, ...], Iterable[str]]]:
    """Every list of names that become fields of one class, with its path."""
    for name, verb in parsed.spec.verbs.items():
        yield ("verbs", name, "params"), verb.params
    pending = list(_located_nodes(parsed))
    while pending:
        path, node = pending.pop()
        if isinstance(node, Schema):
            if node.properties:
                yield (*path, "properties"), node.properties
            pending.extend(((*path, *step), child) for step, child in children(node))
