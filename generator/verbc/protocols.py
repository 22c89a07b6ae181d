"""The protocols that hand-written code implements: one for each python backend."""

from collections.abc import Iterator

from .backends import JobsBackend, PythonBackend
from .contract import backend_and_target, is_spawn
from .ir import Handlers, Interface, Method
from .literals import Code, docstring, exported, signature, words
from .modelling import Models, import_block
from .names import argument_name, field_name, protocol_name
from .parse import Parsed
from .spec import Verb

# What hooks take and give, apart from parameters.
NAMES_OF_HOOKS = ("Ask", "End", "Launch", "RunRecord")


def interface_of(parsed: Parsed, models: Models, package: str) -> Interface | None:
    """The protocols of the python backends; None when there are none."""
    protocols = tuple(
        _protocol(name, backend, parsed, models)
        for name, backend in parsed.spec.backends.items()
        if isinstance(backend, PythonBackend)
    )
    if not protocols:
        return None
    code = words(" ".join(method.signature for protocol in protocols for method in protocol.methods))
    by_module: dict[str, set[str]] = {}
    for word in code & models.homes.keys():
        by_module.setdefault(f"{package}.models.{models.homes[word]}", set()).add(word)
    lines = import_block([list(by_module.items())], 4)
    typing = {"Any", "Protocol", *(["TYPE_CHECKING"] if lines else []), *(code & {"Literal"})}
    support = _support(package, hooked=bool(code & set(NAMES_OF_HOOKS)))
    names = ["Schema", *(name for _, imported in support for name in imported), *(item.protocol for item in protocols)]
    return Interface(import_block([[("typing", typing)], support]), lines, protocols, exported(names))


def _support(package: str, *, hooked: bool) -> list[tuple[str, tuple[str, ...]]]:
    """What hand-written code needs of the support modules, by the module it comes from."""
    needed: dict[str, tuple[str, ...]] = {"call": ("Call",), "refusal": ("Refusal",)}
    if hooked:
        needed |= {"job_hooks": ("Ask",), "launch": ("Launch",), "run_record": ("End", "RunRecord")}
    return [(f"{package}._support.{module}", names) for module, names in needed.items()]


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
    methods += [
        method
        for name, jobs in parsed.spec.backends.items()
        if isinstance(jobs, JobsBackend) and jobs.hooks == backend
        for method in _hooks(name, parsed, models)
    ]
    return Handlers(
        Code(backend),
        protocol_name(backend),
        Code(written.python.removesuffix(".py")),
        docstring(f"What the backend {backend} needs: a method for each of its verbs, and those that others call."),
        tuple(methods),
    )


def _hooks(jobs: str, parsed: Parsed, models: Models) -> Iterator[Method]:
    """The methods that a jobs backend calls."""
    spawned = [
        models.params.get(name, Code("None"))
        for name, verb in parsed.spec.verbs.items()
        if verb.unavailable is None and backend_and_target(verb)[0] == jobs and is_spawn(verb, parsed)
    ]
    params = " | ".join(dict.fromkeys(spawned)) or "None"
    for hook, given, returned, text in (
        (
            "prepare",
            ["launch: Launch", f"params: {params}", "call: Call"],
            "None",
            "Shape a run that is about to start; nothing of it exists yet. Raises Refusal.",
        ),
        (
            "ended",
            ["record: RunRecord", "ask: Ask | None"],
            "End | None",
            "What the command line says of the end of a run whose process is gone; without `ask`, from what is at hand.",
        ),
        (
            "settled",
            ["record: RunRecord"],
            "Schema | None",
            "Told once that the end of a run is on record; what comes back joins its details.",
        ),
        ("details", ["record: RunRecord"], "Schema", "What else is known of a run, for its status and its output."),
    ):
        yield Method(signature(f"    async def {jobs}_{hook}", ["self", *given], returned, 4), docstring(text))


def _method(name: str, verb: Verb, target: str, models: Models) -> Method:
    params = models.params.get(name)
    parameters = ["self", *([f"params: {params}"] if params else []), "call: Call"]
    head = signature(f"    async def {target}", parameters, _returned(models.results.get(name)), 4)
    return Method(head, docstring(verb.summary or ""))


def _returned(annotation: Code | None) -> Code:
    """What a method returns; one that has nothing to say is not held to returning `None`."""
    return Code("object") if annotation in (None, "None") else Code(annotation)
