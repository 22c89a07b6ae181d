"""The verifier of a server: whatever the spec, or whoever starts the server, says of how keys are verified."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Protocol

from .bearer import Verifier
from .binding import Bindings
from .http_sockets import StartError
from .keys_file import KeysFileError
from .registry import Registry
from .verify_backend import BackendSettings, Service, backend_verifier
from .verify_introspection import IntrospectionSettings, introspection_verifier
from .verify_jwt import JwtSettings, JwtVerifier
from .verify_keys import FileVerifier
from .verify_settings import KeysSettings, Settings, SettingsError, verify_settings


class OpenVerifier(Verifier, Protocol):
    """A verifier that may have connections of one event loop; there are none before it is first asked."""

    async def close(self) -> None:
        """Close the connections."""


def verifier_of(
    registry: Registry, told: str | None = None, environ: Mapping[str, str] = os.environ
) -> OpenVerifier | None:
    """The verifier of a server; None when nobody says that keys are verified.

    `told` takes the place of what the registry says, in one of the forms that `verify_settings` has. Raises StartError.
    """
    try:
        settings = verify_settings(registry.access, told, environ)
        return None if settings is None else _verifier(settings, registry)
    except (SettingsError, KeysFileError) as error:
        raise StartError(str(error)) from None


def _verifier(settings: Settings, registry: Registry) -> OpenVerifier:
    match settings:
        case KeysSettings():
            return FileVerifier(settings.file)
        case IntrospectionSettings():
            return introspection_verifier(settings)
        case JwtSettings():
            return JwtVerifier(settings)
        case BackendSettings():
            return backend_verifier(settings, _service(settings.backend, registry))


def _service(name: str, registry: Registry) -> Service:
    """A backend for the questions alone: they don't queue behind calls."""
    # By its name: servers without such a backend have no such module.
    backend_http = import_module(f"{__package__}.backend_http")
    service: Service = backend_http.HttpBackend(registry.backends[name], Bindings(f"{registry.server.package}.verbs"))
    return service
