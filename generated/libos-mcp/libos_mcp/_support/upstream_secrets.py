"""The secrets of an upstream, read from the environment for one operation; a manifest only names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .fingerprint import digest
from .manifest_transport import Stdio
from .quoting import quoted
from .refusal import Refusal

if TYPE_CHECKING:
    from .manifest import Manifest

_HEADER_CHARACTERS = 8192


@dataclass(frozen=True, slots=True)
class Secrets:
    """By the variables of a program, or by headers as they are sent. The digest tells two sets apart; it is a secret, too."""

    values: Mapping[str, str] = field(repr=False)
    digest: str = field(repr=False)


def secrets_of(manifest: Manifest, environ: Mapping[str, str]) -> Secrets:
    """What the manifest names, as it is now. Raises Refusal `unavailable`, which names a variable and never holds a value."""
    transport = manifest.transport
    if isinstance(transport, Stdio):
        values = {child: _variable(environ, host, manifest.server_id, child) for child, host in transport.env.items()}
        for child, value in values.items():
            if "\0" in value:
                raise _unusable(transport.env[child], manifest.server_id, child)
    else:
        values = {}
        for name, header in transport.headers.items():
            value = header.prefix + _variable(environ, header.env, manifest.server_id, name) + header.suffix
            if not _is_header_value(value):
                raise _unusable(header.env, manifest.server_id, name)
            values[name] = value
    return Secrets(values, digest(values))


def _variable(environ: Mapping[str, str], host: str, server_id: str, needed_for: str) -> str:
    if (value := environ.get(host)) is None:
        message = f"{quoted(server_id)} needs the environment variable {quoted(host)} for {quoted(needed_for)}; set it."
        raise Refusal("unavailable", message)
    return value


def _unusable(host: str, server_id: str, needed_for: str) -> Refusal:
    what = f"The environment variable {quoted(host)} holds what cannot be {quoted(needed_for)} of {quoted(server_id)}"
    return Refusal("unavailable", f"{what}; set it to something else.")


def _is_header_value(value: str) -> bool:
    """Whether it goes over the wire as it is: no controls, nothing beyond ASCII, no blanks at its ends."""
    return len(value) <= _HEADER_CHARACTERS and value.isascii() and value.isprintable() and value == value.strip()
