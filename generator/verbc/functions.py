"""The modules of `verbs/`: one typed function for each verb."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .backends import CliBackend, GatewayBackend, HttpBackend, JobsBackend, McpBackend, PythonBackend
from .contract import backend_and_target, is_spawn
from .conventions import Argument, arguments
from .ir import Function, VerbModule
from .literals import Code, bracketed, call, docstring, python, signature
from .modelling import Models, import_block, verbs_by_module
from .names import field_name, function_name, protocol_name
from .parse import Parsed
from .requests import WITHOUT_BODY, members, places_of
from .spec import Verb


@dataclass(frozen=True, slots=True)
class _Operations:
    """The object that runs the operations of a backend."""

    variable: str  # what functions call it
    name: str  # its class
    module: str


_OPERATIONS: Mapping[type, _Operations] = {
    JobsBackend: _Operations("jobs", "JobOperations", "job_operations"),
    GatewayBackend: _Operations("gateway", "GatewayOperations", "gateway_operations"),
}


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
        given = [f"params: {params}"] if params else []
        if isinstance(backend, PythonBackend):
            taken = [f"handlers: {protocol_name(backend_name)}", *given, "call: Call"]
            head, body = signature(f"async def {own}", taken, "object"), _handled(target, passes_params=bool(params))
        elif type(backend) in _OPERATIONS and not is_spawn(verb, self.parsed):
            operations = _OPERATIONS[type(backend)]
            taken = [f"{operations.variable}: {operations.name}", *given, "call: Call"]
            head, body = signature(f"async def {own}", taken, "object"), _operated(verb, operations, target)
        else:
            made, body = self._made(verb, backend, target)
            head = signature(f"def {own}", given, made)
        entry = call("Binding", [own, *([params] if params else [])], len(python(name)) + 6, 4)
        return Function(head, docstring(verb.summary or ""), body, Code(f"{python(name)}: {entry},"))

    def _made(self, verb: Verb, backend: object, target: str) -> tuple[str, Code]:
        """What a function makes for its backend to use, as a type, and how."""
        match backend:
            case HttpBackend():
                return "HttpRequest", self._request(verb, target)
            case McpBackend():
                return "dict[str, object]", self._arguments(verb)
            case CliBackend():
                return "list[str]", self._command(verb, [*target.split(), *backend.args])
            case _:
                return "list[str]", self._command(verb, target.split()[1:])

    def _command(self, verb: Verb, command: list[str]) -> Code:
        assert verb.run is not None  # noqa: S101 - the rules saw to it
        made = arguments(verb, verb.run, self.types)
        words = [python(word) for word in command]
        flags = [_flag(argument) for argument in made if argument.form != "positional"]
        further = [Code("*extras(params)")] if verb.varies_with else []
        last = [f"params.{field_name(argument.parameter)}" for argument in made if argument.form == "positional"]
        positional = [call("*positionals", last, 8, 8)] if last else []
        return Code(f"return {bracketed('[', [*words, *flags, *further, *positional], ']', 4, explode=True)}")

    def _arguments(self, verb: Verb) -> Code:
        assert verb.run is not None  # noqa: S101 - the rules saw to it
        entries = [f"{python(verb.run.as_.get(name, name))}: {self._value(name, verb)}" for name in verb.params]
        return Code(f"return {call('given', [bracketed('{', entries, '}', 8, explode=len(entries) > 1)], 11, 4)}")

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
        operating = {
            f"{self.package}._support.{operations.module}": operations.name
            for operations in _OPERATIONS.values()
            if any(f": {operations.name}," in function.signature for function in functions)
        }
        code = "".join(function.body for function in functions)
        words = {name for name in ("extras", "flag", "json_flag", "positionals", "switch") if f"*{name}(" in code}
        params: dict[str, set[str]] = {}
        for name in verbs:
            if model := self.models.params.get(name):
                params.setdefault(f"{self.package}.models.{self.models.homes[model]}", set()).add(model)
        requesting = {"http_request", "HttpRequest"} if "http_request(" in code else set[str]()
        own: list[tuple[str, Iterable[str]]] = [
            (f"{self.package}._support.argv", words),
            (f"{self.package}._support.binding", {"Binding"}),
            (f"{self.package}._support.call", {"Call"} if protocols or operating else ()),
            (f"{self.package}._support.http_request", requesting),
            (f"{self.package}._support.members", {name for name in ("given", "nullable") if f"{name}(" in code}),
            *((module, {name}) for module, name in operating.items()),
            (f"{self.package}.interface", protocols),
            *params.items(),
        ]
        return import_block([own])


def _operated(verb: Verb, operations: _Operations, target: str) -> Code:
    given = [f"{name}=params.{field_name(name)}" for name in verb.params]
    return Code(f"return await {call(f'{operations.variable}.{target}', ['call', *given], 17, 4)}")


def _handled(target: str, *, passes_params: bool) -> Code:
    passed = ["params", "call"] if passes_params else ["call"]
    return Code(f"return await {call(f'handlers.{target}', passed, 17, 4)}")


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
