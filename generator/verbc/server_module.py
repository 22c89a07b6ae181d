"""The module `server`: what `create_server` takes, and the backends that it puts together."""

from collections.abc import Iterable

from .access_registry import is_governed
from .backends import CliBackend, GatewayBackend, HttpBackend, JobsBackend, McpBackend, PythonBackend
from .ir import ServerModule
from .literals import Code, bracketed, call, docstring, python, signature
from .modelling import import_block
from .names import protocol_name
from .parse import Parsed

# Which backends are made first: a jobs backend needs others.
ORDER = (CliBackend, HttpBackend, McpBackend, PythonBackend, JobsBackend, GatewayBackend)
# The support modules that have the classes of backends, which are called as they are here.
_MODULES = {
    "backend_cli": CliBackend,
    "backend_gateway": GatewayBackend,
    "backend_http": HttpBackend,
    "backend_jobs": JobsBackend,
    "backend_mcp": McpBackend,
    "backend_python": PythonBackend,
}
# The tables that a governed server keeps, by the modules that have them.
GOVERNANCE = "governance_tables"
REGISTRATIONS = "registration_tables"


def server_module(parsed: Parsed, package: str) -> ServerModule:
    """The module of a checked spec."""
    backends = parsed.spec.backends
    handlers = {
        name: backend.python.removesuffix(".py")
        for name, backend in backends.items()
        if isinstance(backend, PythonBackend)
    }
    kinds = [type(backend) for backend in backends.values()]
    governed = is_governed(parsed.spec)
    keeps_state = governed or JobsBackend in kinds
    given = [f"{name}: {protocol_name(name)} | None = None" for name in handlers]
    keywords = [
        "caller: Caller = LOCAL",
        *(["state: Path | None = None"] if keeps_state else []),
        *(["store: str | None = None", "policy: Path | None = None"] if governed else []),
        *given,
    ]
    parameters = ["surface: str | None = None", "*", *keywords]
    made = sorted(backends, key=lambda name: ORDER.index(type(backends[name])))
    return ServerModule(
        imports=_imports(package, kinds, {protocol_name(name) for name in handlers}, governed=governed),
        signature=signature("def create_server", parameters, "McpServer"),
        docstring=docstring(_text(keeps_state=keeps_state, governed=governed)),
        backends=tuple(_assignment(name, backends[name]) for name in made),
        tables=_tables(kinds, governed=governed),
        entries=tuple(Code(f"{python(name)}: {_variable(name)},") for name in backends),
        handlers=tuple(
            (Code(f"load_{name}"), protocol_name(name), Code(f"{package}.{module}"))
            for name, module in handlers.items()
        ),
    )


def _imports(package: str, kinds: list[type], protocols: set[str], *, governed: bool) -> tuple[Code, ...]:
    support = f"{package}._support"
    own: list[tuple[str, Iterable[str]]] = [
        *((f"{support}.{module}", {kind.__name__} if kind in kinds else ()) for module, kind in _MODULES.items()),
        (f"{support}.binding", {"Bindings"}),
        (f"{support}.call", {"LOCAL", "Caller"}),
        (f"{support}.client_consent", {"ClientConsents"} if governed else ()),
        (f"{support}.governor", {"Governor"} if governed else ()),
        (f"{support}.registry", {"load"}),
        (f"{support}.server_mcp", {"McpServer", "build_server"}),
        (f"{support}.state_store", {"StateStore"} if governed else ()),
        (f"{package}.interface", protocols),
    ]
    return import_block([[("pathlib", ("Path",))], own])


def _text(*, keeps_state: bool, governed: bool) -> str:
    text = (
        'The server of this package, on the surface "tools" or "request"; `caller` is who calls where nobody else tells'
    )
    text = f"{text}, `state` the folder that it keeps" if keeps_state else text
    more = "; `store` is the database to use instead of one in that folder, `policy` the file of the policy."
    return f"{text}{more}" if governed else f"{text}."


def _tables(kinds: list[type], *, governed: bool) -> Code:
    """The tables that the record of a governed server is kept in; empty for any other."""
    if not governed:
        return Code("")
    names = [python(name) for name in (GOVERNANCE, *([REGISTRATIONS] if GatewayBackend in kinds else []))]
    return Code(bracketed("(", names, ")", explode=True)) if names[1:] else Code(f"({names[0]},)")


def _variable(name: str) -> str:
    return f"{name}_backend"


def _assignment(name: str, backend: object) -> Code:
    target = f"{_variable(name)} = "
    match backend:
        case GatewayBackend():
            made = call("GatewayBackend", ["REGISTRY", python(name), "bindings", "kept"], len(target) + 4, 4)
        case McpBackend():
            made = call("McpBackend", ["REGISTRY", python(name), "bindings"], len(target) + 4, 4)
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
