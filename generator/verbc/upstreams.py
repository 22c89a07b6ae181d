"""The manifests of upstream servers as the compiled contract has them."""

from collections.abc import Iterator

from .backends import GatewayBackend, McpBackend
from .parse import Parsed
from .source import native
from .support.manifest import Manifest, read_manifest
from .support.own_variables import own_variables


def named_manifests(backend: object) -> tuple[str, ...]:
    """The manifests that a backend names."""
    if isinstance(backend, McpBackend):
        return (backend.mcp,)
    return backend.gateway if isinstance(backend, GatewayBackend) else ()


def upstream_backends(parsed: Parsed) -> Iterator[tuple[str, GatewayBackend | McpBackend]]:
    """The backends that stand before upstream servers."""
    for name, backend in parsed.spec.backends.items():
        if isinstance(backend, GatewayBackend | McpBackend):
            yield name, backend


def manifest_of(parsed: Parsed, backend: GatewayBackend | McpBackend, name: str, package: str) -> Manifest:
    """A manifest that a backend names. Raises ManifestError."""
    return read_manifest(native(parsed.manifests[name]), backend.env, own_variables(package))
