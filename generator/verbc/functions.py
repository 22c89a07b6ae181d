"""The modules of `verbs/`: one typed function for each verb, and the protocols that hand-written code implements."""

from collections.abc import Iterable, Mapping

from .backends import CliBackend, PythonBackend
from .contract import backend_and_target
from .conventions import Argument, arguments
from .ir import Function, Handlers, Interface, Method, VerbModule
from .literals import Code, bracketed, call, docstring, exported, imports, python, signature, words
from .modelling import Models, import_block, verbs_by_module
from .names import argument_name, field_name, function_name, protocol_name
from .parse import Parsed
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
        if isinstance(backend, CliBackend):
            head = signature(f"def {own}", [f"params: {params}"] if params else [], "list[str]")
            body = self._command(verb, backend, target)
        else:
            given = [f"params: {params}"] if params else []
            head = signature(
                f"async def {own}", [f"handlers: {protocol_name(backend_name)}", *given, "call: Call"], "object"
            )
            passed = ["params", "call"] if params else ["call"]
            body = Code(f"return await {call(f'handlers.{target}', passed, 17, 4)}")
        return Function(head, docstring(verb.summary or ""), body, Code(f"{python(name)}: {entry},"))

    def _command(self, verb: Verb, backend: CliBackend, target: str) -> Code:
        assert verb.run is not None  # noqa: S101 - the rules saw to it
        made = arguments(verb, verb.run, self.types)
        words = [python(word) for word in [*target.split(), *backend.args]]
        flags = [_flag(argument) for argument in made if argument.form != "positional"]
        further = [Code("*extras(params)")] if verb.varies_with else []
        last = [f"params.{field_name(argument.parameter)}" for argument in made if argument.form == "positional"]
        positional = [call("*positionals", last, 8, 8)] if last else []
        return Code(f"return {bracketed('[', [*words, *flags, *further, *positional], ']', 4, explode=True)}")

    def imports(self, verbs: Mapping[str, Verb], functions: tuple[Function, ...]) -> tuple[Code, ...]:
        backends = {backend_and_target(verb)[0] for verb in verbs.values()}
        protocols = {
            protocol_name(name) for name in backends if isinstance(self.parsed.spec.backends[name], PythonBackend)
        }
        code = "".join(function.body for function in functions)
        words = {name for name in ("extras", "flag", "json_flag", "positionals", "switch") if f"*{name}(" in code}
        params: dict[str, set[str]] = {}
        for name in verbs:
            if model := self.models.params.get(name):
                params.setdefault(f"{self.package}.models.{self.models.homes[model]}", set()).add(model)
        own: list[tuple[str, Iterable[str]]] = [
            (f"{self.package}._support.argv", words),
            (f"{self.package}._support.binding", {"Binding"}),
            (f"{self.package}._support.call", {"Call"} if protocols else ()),
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


def interface_of(parsed: Parsed, models: Models, package: str) -> Interface | None:
    """The protocols of the python backends; None when there are none."""
    protocols = tuple(
        _protocol(name, backend, parsed, models)
        for name, backend in parsed.spec.backends.items()
        if isinstance(backend, PythonBackend)
    )
    if not protocols:
        return None
    by_module: dict[str, set[str]] = {}
    for name, verb in parsed.spec.verbs.items():
        if verb.unavailable is None and isinstance(parsed.spec.backends[backend_and_target(verb)[0]], PythonBackend):
            for annotation in (models.params.get(name, ""), models.results.get(name, "")):
                for word in words(annotation):
                    if word in models.homes:
                        by_module.setdefault(f"{package}.models.{models.homes[word]}", set()).add(word)
    names = ["Call", "Refusal", "Schema", *(protocol.protocol for protocol in protocols)]
    lines = import_block([list(by_module.items())], 4)
    code = words(" ".join(method.signature for protocol in protocols for method in protocol.methods))
    typing = {"Any", "Protocol", *(["TYPE_CHECKING"] if lines else []), *(code & {"Literal"})}
    return Interface(imports("typing", typing), lines, protocols, exported(names))


def _protocol(backend: str, written: PythonBackend, parsed: Parsed, models: Models) -> Handlers:
    methods = [
        _method(name, verb, backend_and_target(verb)[1], models)
        for name, verb in parsed.spec.verbs.items()
        if verb.unavailable is None and backend_and_target(verb)[0] == backend
    ]
    varying = sorted(
        {
            parameter
            for verb in parsed.spec.verbs.values()
            for parameter, home in verb.varies_with.items()
            if home == backend
        }
    )
    for parameter in varying:
        head = f"    async def params_for_{field_name(parameter)}"
        text = f'The further parameters that a value of `{parameter}` brings: {{"properties": ..., "required": [...]}}.'
        methods.append(
            Method(
                signature(head, ["self", f"{argument_name(parameter)}: str", "call: Call"], "Schema", 4),
                docstring(text),
            )
        )
    return Handlers(
        Code(backend),
        protocol_name(backend),
        Code(written.python.removesuffix(".py")),
        docstring(f"What the backend {backend} needs: a method for each of its verbs."),
        tuple(methods),
    )


def _method(name: str, verb: Verb, target: str, models: Models) -> Method:
    params = models.params.get(name)
    parameters = ["self", *([f"params: {params}"] if params else []), "call: Call"]
    head = signature(f"    async def {target}", parameters, _returned(models.results.get(name)), 4)
    return Method(head, docstring(verb.summary or ""))


def _returned(annotation: Code | None) -> Code:
    """What a method returns; one that has nothing to say is not held to returning `None`."""
    return Code("object") if annotation in (None, "None") else Code(annotation)
