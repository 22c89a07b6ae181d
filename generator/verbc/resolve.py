"""Spec → Package: everything the templates see, decided."""

from collections.abc import Mapping

from .backends import CliBackend, PythonBackend
from .contract import package_of, registry_of
from .functions import interface_of, verb_modules
from .ir import Package, ServerModule
from .literals import Code, code_path, docstring, markdown, python, signature, toml
from .modelling import Models, import_block
from .names import protocol_name
from .parse import Parsed
from .support_set import support_modules
from .tables import needs, tables

DEPENDENCIES = ("jsonschema-rs>=0.61", "mcp>=2.3,<3", "pydantic>=2.12")


def resolve(parsed: Parsed, name: str, carried: Mapping[str, str]) -> Package:
    """The package of a checked spec. `name` is where the spec lies, `carried` its hand-written files."""
    registry = registry_of(parsed)
    server = parsed.spec.server
    package = Code(package_of(parsed))
    models = Models.of(parsed, package)
    return Package(
        spec=code_path(name),
        title=markdown(server.title or server.name),
        summary=markdown(server.summary),
        summary_toml=toml(server.summary),
        docstring=docstring(server.summary),
        package=package,
        distribution=Code(registry["server"]["distribution"]),
        server_name=Code(server.name),
        version=Code(server.version),
        dependencies=toml(sorted({*DEPENDENCIES, *server.dependencies})),
        needs=needs(registry),
        registry=registry,
        models=models.modules,
        exports=models.exports,
        verbs=verb_modules(parsed, models, package),
        interface=interface_of(parsed, models, package),
        server=_server_module(parsed, package),
        tables=tables(registry),
        carried=carried,
        support=support_modules(sorted({backend["kind"] for backend in registry["backends"].values()})),
    )


def _server_module(parsed: Parsed, package: str) -> ServerModule:
    backends = parsed.spec.backends
    handlers = {
        name: backend.python.removesuffix(".py")
        for name, backend in backends.items()
        if isinstance(backend, PythonBackend)
    }
    has_cli = any(isinstance(backend, CliBackend) for backend in backends.values())
    support = f"{package}._support"
    own = [
        (f"{support}.backend_cli", {"CliBackend"} if has_cli else ()),
        (f"{support}.backend_python", {"PythonBackend"} if handlers else ()),
        (f"{support}.binding", {"Bindings"}),
        (f"{support}.registry", {"load"}),
        (f"{support}.server_mcp", {"McpServer", "build_server"}),
        (f"{package}.interface", {protocol_name(name) for name in handlers}),
    ]
    given = [f"{name}: {protocol_name(name)} | None = None" for name in handlers]
    parameters = ["surface: str | None = None", *(["*", *given] if given else [])]
    return ServerModule(
        imports=import_block([[("pathlib", ("Path",))], own]),
        signature=signature("def create_server", parameters, "McpServer"),
        backends=tuple(_backend(name, backends[name]) for name in backends),
        handlers=tuple(
            (Code(f"load_{name}"), protocol_name(name), Code(f"{package}.{module}"))
            for name, module in handlers.items()
        ),
    )


def _backend(name: str, backend: object) -> Code:
    if isinstance(backend, CliBackend):
        return Code(f"{python(name)}: CliBackend(REGISTRY.backends[{python(name)}], bindings),")
    return Code(f"{python(name)}: PythonBackend(bindings, {name} or load_{name}),")
