"""The modules of `verbs/`: one typed function for each verb."""

from collections.abc import Iterable, Mapping

from .backends import CliBackend, HttpBackend, JobsBackend, PythonBackend
from .contract import backend_and_target, is_spawn
from .conventions import Argument, arguments
from .ir import Function, VerbModule
from .literals import Code, bracketed, call, docstring, python, signature
from .modelling import Models, import_block, verbs_by_module
from .names import field_name, function_name, protocol_name
from .parse import Parsed
from .requests import WITHOUT_BODY, members, places_of
from .spec import Verb


def verb_modules(parsed: Parsed, models: Models, package: str) -> tuple[VerbModule, ...]:
    """One module for each name prefix."""
    builder = _Functions(parsed, models, package)
    return tuple(builder.module(name, verbs) for name, verbs in verbs_by_module(parsed).items())


class _Functions:
    def __init__(self, parsed: Parsed, models: Models, package: str) -> None:
        self.parsed = parsed
        self.types = parsed.types
        self.models = models
        self.package = package

    def module(self, name: str, verbs: Mapping[str, Verb]) -> VerbModule:
        functions = tuple(self.function(verb_name, verb) for verb_name, verb in verbs.items())
        return VerbModule(Code(name), docstring(_summary(verbs)), self.imports(verbs, functions), functions)

    def function(self, name: str, verb: Verb) -> Function:
        backend_name, target = backend_and_target(verb)
        backend = self.parsed.spec.backends[backend_name]
        params, own = self.models.params.get(name), function_name(name)
        entry = call("Binding", [own, *([params] if params else [])], len(python(name)) + 6, 4)
        if isinstance(backend, CliBackend) or is_spawn(verb, self.parsed):
            head = signature(f"def {own}", [f"params: {params}"] if params else [], "list[str]")
            command = [*target.split(), *backend.args] if isinstance(backend, CliBackend) else target.split()[1:]
            body = self._command(verb, command)
        elif isinstance(backend, HttpBackend):
            head = signature(f"def {own}", [f"params: {params}"] if params else [], "HttpRequest")
            body = self._request(verb, target)
        elif isinstance(backend, JobsBackend):
            head = signature(f"async def {own}", ["jobs: JobOperations", f"params: {params}", "call: Call"], "object")
            given = [f"{name}=params.{field_name(name)}" for name in verb.params]
            body = Code(f"return await {call(f'jobs.{target}', ['call', *given], 17, 4)}")
        else:
            given = [f"params: {params}"] if params else []
            head = signature(
                f"async def {own}", [f"handlers: {protocol_name(backend_name)}", *given, "call: Call"], "object"
            )
            passed = ["params", "call"] if params else ["call"]
            body = Code(f"return await {call(f'handlers.{target}', passed, 17, 4)}")
        return Function(head, docstring(verb.summary or ""), body, Code(f"{python(name)}: {entry},"))

    def _command(self, verb: Verb, command: list[str]) -> Code:
        assert verb.run is not None  # noqa: S101 - the rules saw to it
        made = arguments(verb, verb.run, self.types)
        words = [python(word) for word in command]
        flags = [_flag(argument) for argument in made if argument.form != "positional"]
        further = [Code("*extras(params)")] if verb.varies_with else []
        last = [f"params.{field_name(argument.parameter)}" for argument in made if argument.form == "positional"]
        positional = [call("*positionals", last, 8, 8)] if last else []
        return Code(f"return {bracketed('[', [*words, *flags, *further, *positional], ']', 4, explode=True)}")

    def _request(self, verb: Verb, target: str) -> Code:
        assert verb.run is not None  # noqa: S101 - the rules saw to it
        method, _, path = target.partition(" ")
        parts = {
            "segments": [(name, self._value(name, verb)) for name in places_of(target)],
            "query" if method in WITHOUT_BODY else "body": [
                (member, self._value(name, verb)) for name, member in members(verb, verb.run, target)
            ],
        }
        given: list[str] = [python(method), python(path)]
        for name, pairs in parts.items():
            if pairs:
                entries = [f"{python(key)}: {value}" for key, value in pairs]
                given.append(f"{name}={bracketed('{', entries, '}', 8, explode=len(entries) > 1)}")
        return Code(f"return {call('http_request', given, 11, 4)}")

    def _value(self, name: str, verb: Verb) -> str:
        """A parameter's value; where null can be given, that is told from nothing."""
        if "null" in self.types.admitted(verb.params[name]):
            return f"nullable(params, {python(field_name(name))})"
        return f"params.{field_name(name)}"

    def imports(self, verbs: Mapping[str, Verb], functions: tuple[Function, ...]) -> tuple[Code, ...]:
        backends = {backend_and_target(verb)[0] for verb in verbs.values()}
        protocols = {
            protocol_name(name) for name in backends if isinstance(self.parsed.spec.backends[name], PythonBackend)
        }
        operating = any("jobs: JobOperations" in function.signature for function in functions)
        code = "".join(function.body for function in functions)
        words = {name for name in ("extras", "flag", "json_flag", "positionals", "switch") if f"*{name}(" in code}
        params: dict[str, set[str]] = {}
        for name in verbs:
            if model := self.models.params.get(name):
                params.setdefault(f"{self.package}.models.{self.models.homes[model]}", set()).add(model)
        requesting = {name for name in ("http_request", "nullable") if f"{name}(" in code}
        own: list[tuple[str, Iterable[str]]] = [
            (f"{self.package}._support.argv", words),
            (f"{self.package}._support.binding", {"Binding"}),
            (f"{self.package}._support.call", {"Call"} if protocols or operating else ()),
            (f"{self.package}._support.http_request", requesting | ({"HttpRequest"} if requesting else set())),
            (f"{self.package}._support.job_operations", {"JobOperations"} if operating else ()),
            (f"{self.package}.interface", protocols),
            *params.items(),
        ]
        return import_block([own])


def _flag(argument: Argument) -> Code:
    given = [python(argument.flag), f"params.{field_name(argument.parameter)}"]
    match argument.form:
        case "switch":
            return call("*switch", [*given, *(["default=True"] if argument.default else [])], 8, 8)
        case "json":
            return call("*json_flag", given, 8, 8)
        case _:
            return call("*flag", given, 8, 8)


def _summary(verbs: Mapping[str, Verb]) -> str:
    prefix, dot, _ = next(iter(verbs)).partition(".")
    return f"The verbs whose names begin with `{prefix}.`" if dot else "The verbs without a prefix."
