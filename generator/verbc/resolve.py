"""Spec → Package: everything the templates see, decided."""

from collections.abc import Mapping
from typing import Any

from .access_registry import authority_of, is_governed
from .contract import package_of, registry_of
from .functions import verb_modules
from .ir import Package
from .literals import Code, code_address, code_path, docstring, markdown, toml
from .modelling import Models
from .parse import Parsed
from .protocols import interface_of
from .server_module import server_module
from .starter_policy import policy_lines
from .support.command_options import operating
from .support.registry import from_data
from .support_set import support_modules
from .tables import needs, tables

DEPENDENCIES = ("jsonschema-rs>=0.61", "mcp>=2.3,<3", "pydantic>=2.12")
OF_POLICY = ("pyyaml>=6.0.2", "sqlalchemy>=2.1,<3")  # read the policy; keep approvals, budgets and the record
OF_BACKEND = {
    "gateway": ("httpx2>=2",),  # speaks to upstream servers
    "http": ("httpx2>=2",),  # speaks to services
    "mcp": ("httpx2>=2",),
    "jobs": ("sqlalchemy>=2.1,<3",),  # keeps what outlives a server
}
OF_HTTP = ("starlette>=1", "uvicorn>=0.50")  # serve over HTTP
OF_VERIFIER = {"introspect": ("httpx2>=2",), "jwt": ("httpx2>=2", "pyjwt[crypto]>=2.15,<3")}


def resolve(parsed: Parsed, name: str, carried: Mapping[str, str]) -> Package:
    """The package of a checked spec. `name` is where the spec lies, `carried` its hand-written files."""
    registry = registry_of(parsed)
    server = parsed.spec.server
    package = Code(package_of(parsed))
    models = Models.of(parsed, package)
    kinds = sorted({backend["kind"] for backend in registry["backends"].values()})
    governed = is_governed(parsed.spec)
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
        dependencies=toml(sorted({*dependencies(registry), *server.dependencies})),
        needs=needs(registry),
        registry=registry,
        models=models.modules,
        exports=models.exports,
        verbs=verb_modules(parsed, models, package),
        interface=interface_of(parsed, models, package),
        server=server_module(parsed, package),
        keeps_state="jobs" in kinds or governed,
        policy=_policy(registry),
        operating=tuple(Code(word) for word in operating(from_data(registry))),
        serves_stdio=registry["serve"]["stdio"],
        address=_address(registry["serve"]["http"]),
        verifies=bool(registry["access"] and registry["access"]["verify"]),
        tables=tables(registry),
        carried=carried,
        support=support_modules(kinds, http=registry["serve"]["http"] is not None, governed=governed),
    )


def dependencies(registry: Mapping[str, Any]) -> set[str]:
    """What a package needs to be installed."""
    kinds = {backend["kind"] for backend in registry["backends"].values()}
    verify = (registry["access"] or {}).get("verify") or {}
    return {
        *DEPENDENCIES,
        *(need for kind in kinds for need in OF_BACKEND.get(kind, ())),
        *(OF_POLICY if (registry["access"] or {}).get("policy") is not None else ()),
        *(OF_HTTP if registry["serve"]["http"] else ()),
        *(need for way, needs in OF_VERIFIER.items() if way in verify for need in needs),
    }


def _policy(registry: Mapping[str, Any]) -> tuple[Code, ...]:
    subjects = (registry["access"] or {}).get("policy")
    return () if subjects is None else policy_lines(subjects)


def _address(http: Mapping[str, Any] | None) -> Code:
    return Code("") if http is None else code_address(f"{authority_of(http)}{http['path']}")
