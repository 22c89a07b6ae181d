"""Rules of parameters, and of their way to a backend."""

from collections import Counter
from collections.abc import Iterator, Sequence

from .. import conventions
from ..backends import CliBackend, HttpBackend, JobsBackend, McpBackend, PythonBackend, backend_kind
from ..conventions import LABEL
from ..names import field_name
from ..operations import SPAWN
from ..parse import Parsed
from ..problems import Problem, nearest, quoted
from ..spec import Run, Schema
from .lookups import Command, commands, every_node, run_of

_PLACES = {
    "jobs": "an operation",
    "gateway": "an operation",
    "agents": "an operation",
    "http": "an http backend",
    "mcp": "an mcp backend",
    "python": "a python backend",
}


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
    types = parsed.types
    for name, verb in parsed.spec.verbs.items():
        if len(verb.varies_with) > 1:
            yield Problem(parsed.key_at("verbs", name, "varies_with"), "only one parameter can bring others")
        for parameter, backend in verb.varies_with.items():
            mark = parsed.key_at("verbs", name, "varies_with", parameter)
            if parameter not in verb.params:
                yield Problem(mark, f"there is no parameter {quoted(parameter)}{nearest(parameter, verb.params)}")
            elif types.admitted(verb.params[parameter]) != {"string"}:
                yield Problem(mark, f"{quoted(parameter)} must be a string to bring other parameters")
            elif field_name(parameter) != parameter:
                yield Problem(mark, f"{quoted(parameter)} must be a Python name, for its method of the handlers")
            if not isinstance(parsed.spec.backends.get(backend), PythonBackend):
                at = parsed.at("verbs", name, "varies_with", parameter)
                yield Problem(at, f"{quoted(backend)} is no python backend")


def headers_are_of_parameters(parsed: Parsed) -> Iterator[Problem]:
    for path, node in every_node(parsed):
        if not (isinstance(node, Schema) and node.x_mcp_header):
            continue
        mark = parsed.key_at(*path, "x-mcp-header")
        if not (len(path) == 4 and path[2] == "params"):
            yield Problem(mark, '"x-mcp-header" is for parameters of verbs, written where they are declared')
        elif node.type not in ("string", "integer", "boolean"):
            yield Problem(mark, '"x-mcp-header" is for the types "string", "integer" and "boolean"')
    for name, verb in parsed.spec.verbs.items():
        owners: dict[str, str] = {}
        for parameter, node in verb.params.items():
            header = node.x_mcp_header if isinstance(node, Schema) else None
            other = owners.setdefault(header.lower(), parameter) if header else parameter
            if other != parameter:
                mark = parsed.at("verbs", name, "params", parameter, "x-mcp-header")
                yield Problem(mark, f"{quoted(str(header))} is the header of {quoted(other)} already")


def run_options_name_parameters(parsed: Parsed) -> Iterator[Problem]:
    for name, verb in parsed.spec.verbs.items():
        found, run = run_of(parsed, verb), verb.run
        if not found or run is None:
            continue
        yield from _idle_options(parsed, name, run, *found)
        for option, names in _named_parameters(run):
            for index, parameter in enumerate(names):
                if parameter not in verb.params:
                    step: str | int = parameter if option == "as" else index
                    mark = parsed.key_at("verbs", name, "run", option, step)
                    yield Problem(mark, f"there is no parameter {quoted(parameter)}{nearest(parameter, verb.params)}")


def _idle_options(parsed: Parsed, name: str, run: Run, backend: str, target: str) -> Iterator[Problem]:
    """Options that nothing reads where they stand."""
    kind = parsed.spec.backends[backend]
    if isinstance(kind, CliBackend):
        return
    spawns = isinstance(kind, JobsBackend) and target.partition(" ")[0] == SPAWN
    idle: tuple[str, ...] = ("as", "positional", "json", "held", "reply", "refusals")
    if spawns:
        idle = ("reply", "refusals")
    elif isinstance(kind, HttpBackend):
        idle = ("positional", "json", "held")
    elif isinstance(kind, McpBackend):
        idle = ("positional", "json", "held", "reply", "refusals")
    place = "a run in the background" if spawns else _PLACES[backend_kind(kind)]
    for option in idle:
        if f"{option}_" in run.model_fields_set or option in run.model_fields_set:
            yield Problem(parsed.key_at("verbs", name, "run", option), f"{quoted(option)} has no effect on {place}")


def _named_parameters(run: Run) -> tuple[tuple[str, Sequence[str]], ...]:
    """Each option of `run` that lists parameters, with those that it names."""
    return (("positional", run.positional), ("json", run.json_), ("as", list(run.as_)), ("held", run.held))


def parameters_have_one_place(parsed: Parsed) -> Iterator[Problem]:
    for command in commands(parsed):
        name, place = command.name, dict[str, str]()
        for option, names in _named_parameters(command.run):
            for index, parameter in enumerate(names):
                mark = parsed.key_at("verbs", name, "run", option, parameter if option == "as" else index)
                other = place.setdefault(parameter, option)
                if parameter in names[:index]:
                    yield Problem(mark, f"{quoted(parameter)} stands in the list already")
                elif other != option and (other, option) != ("json", "as"):
                    yield Problem(
                        mark,
                        f"{quoted(parameter)} stands under {quoted(other)} already, so {quoted(option)} has no effect",
                    )
        yield from _idle_held(parsed, command)


def _idle_held(parsed: Parsed, command: Command) -> Iterator[Problem]:
    """Parameters that are held for nobody: only runs in the background have a record, and only hooks read all of it."""
    if not command.background and command.run.held:
        mark = parsed.key_at("verbs", command.name, "run", "held")
        yield Problem(mark, '"held" has no effect on a cli backend, which keeps no record')
        return
    for index, parameter in enumerate(command.run.held):
        if not command.hooks and parameter != LABEL:
            mark = parsed.at("verbs", command.name, "run", "held", index)
            yield Problem(mark, f"{quoted(parameter)} is held for nobody; without hooks only {quoted(LABEL)} can be")


def flags_are_distinct(parsed: Parsed) -> Iterator[Problem]:
    for command in commands(parsed):
        name, verb, run = command.name, command.verb, command.run
        owners = {word.split("=")[0]: "the backend's `args`" for word in command.args}
        for argument in conventions.arguments(verb, run, parsed.types):
            parameter, flag = argument.parameter, argument.flag
            if argument.form == "positional" or parameter not in verb.params:
                continue
            sentence = ""
            if not conventions.FLAG.fullmatch(flag):
                sentence = f"{quoted(parameter)} makes no flag; give it one under `as`, such as --name"
            elif flag in owners:
                sentence = f"the flag {quoted(flag)} of {quoted(parameter)} belongs to {owners[flag]} already"
            if sentence:
                way = ("run", "as", parameter) if parameter in run.as_ else ("params", parameter)
                yield Problem(parsed.key_at("verbs", name, *way), sentence)
            owners.setdefault(flag, quoted(parameter))


def commands_can_say_it(parsed: Parsed) -> Iterator[Problem]:
    types = parsed.types
    for command in commands(parsed):
        name, verb, run = command.name, command.verb, command.run
        for parameter, node in verb.params.items():
            if parameter not in (*run.json_, *run.held) and conventions.needs_json(node, types):
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


def options_have_an_effect(parsed: Parsed) -> Iterator[Problem]:
    for command in commands(parsed):
        name, run, backend = command.name, command.run, command.backend
        for parameter, flag in run.as_.items():
            if flag == conventions.made_flag(parameter):
                mark = parsed.at("verbs", name, "run", "as", parameter)
                yield Problem(mark, f'{quoted(flag)} is the flag of {quoted(parameter)} already, so "as" has no effect')
        for code, kind in run.refusals.items():
            if kind == backend.refusals.get(code, "internal"):
                mark = parsed.at("verbs", name, "run", "refusals", code)
                yield Problem(mark, f"the kind is {quoted(kind)} already, so it has no effect here")
