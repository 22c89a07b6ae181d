"""The module `server`: what `create_server` takes, and the backends that it puts together."""

from .backends import CliBackend, HttpBackend, JobsBackend, PythonBackend
from .ir import ServerModule
from .literals import Code, call, docstring, python, signature
from .modelling import import_block
from .names import protocol_name
from .parse import Parsed

# Which backends are made first: a jobs backend needs others.
ORDER = (CliBackend, HttpBackend, PythonBackend, JobsBackend)


def server_module(parsed: Parsed, package: str) -> ServerModule:
    """The module of a checked spec."""
    backends = parsed.spec.backends
    handlers = {
        name: backend.python.removesuffix(".py")
        for name, backend in backends.items()
        if isinstance(backend, PythonBackend)
    }
    kinds = [type(backend) for backend in backends.values()]
    support = f"{package}._support"
    own = [
        (f"{support}.backend_cli", {"CliBackend"} if CliBackend in kinds else ()),
        (f"{support}.backend_http", {"HttpBackend"} if HttpBackend in kinds else ()),
        (f"{support}.backend_jobs", {"JobsBackend"} if JobsBackend in kinds else ()),
        (f"{support}.backend_python", {"PythonBackend"} if handlers else ()),
        (f"{support}.binding", {"Bindings"}),
        (f"{support}.call", {"LOCAL", "Caller"}),
        (f"{support}.registry", {"load"}),
        (f"{support}.server_mcp", {"McpServer", "build_server"}),
        (f"{package}.interface", {protocol_name(name) for name in handlers}),
    ]
    keeps_state = JobsBackend in kinds
    given = [f"{name}: {protocol_name(name)} | None = None" for name in handlers]
    keywords = ["caller: Caller = LOCAL", *(["state: Path | None = None"] if keeps_state else []), *given]
    parameters = ["surface: str | None = None", "*", *keywords]
    made = sorted(backends, key=lambda name: ORDER.index(type(backends[name])))
    return ServerModule(
        imports=import_block([[("pathlib", ("Path",))], own]),
        signature=signature("def create_server", parameters, "McpServer"),
        docstring=docstring(_text(keeps_state=keeps_state)),
        backends=tuple(_assignment(name, backends[name]) for name in made),
        entries=tuple(Code(f"{python(name)}: {_variable(name)},") for name in backends),
        handlers=tuple(
            (Code(f"load_{name}"), protocol_name(name), Code(f"{package}.{module}"))
            for name, module in handlers.items()
        ),
    )


def _text(*, keeps_state: bool) -> str:
    text = (
        'The server of this package, on the surface "tools" or "request"; `caller` is who calls where nobody else tells'
    )
    return f"{text}, `state` the folder that it keeps." if keeps_state else f"{text}."


def _variable(name: str) -> str:
    return f"{name}_backend"


def _assignment(name: str, backend: object) -> Code:
    target = f"{_variable(name)} = "
    match backend:
        case CliBackend() | HttpBackend():
            kind = type(backend).__name__
            made = call(kind, [f"REGISTRY.backends[{python(name)}]", "bindings"], len(target) + 4, 4)
        case JobsBackend():
            hooks = [f"hooks={_variable(backend.hooks)}.handlers"] if backend.hooks else []
            given = ["REGISTRY", python(name), _variable(backend.jobs), "bindings", *hooks, "state=state"]
            made = call("JobsBackend", given, len(target) + 4, 4)
        case _:
            made = call("PythonBackend", ["bindings", f"{name} or load_{name}"], len(target) + 4, 4)
    return Code(f"{target}{made}")
