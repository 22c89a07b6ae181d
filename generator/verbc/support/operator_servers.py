"""What an operator sees and changes of the registered MCP servers; each change is on record as soon as it is made."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from . import audit, registrations
from .manifest import MANIFEST_BYTES, Manifest, ManifestError, read_manifest
from .operator_access import GOVERNANCE, CommandError, Operator
from .own_variables import own_variables
from .quoting import quoted
from .registrations import Readable, Registration, RegistrationError
from .registry import JsonObject, Registry
from .seeding import seed
from .strict_yaml import YamlError, load_yaml

if TYPE_CHECKING:
    from sqlalchemy import Connection

COMPONENTS: Final = (*GOVERNANCE, "registration_tables")


class Servers:
    """The registered servers, once those that the spec offers are among them."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._readable = readable_of(operator.registry)
        self._offered = offered_by(operator.registry, self._readable)
        if operator.store.read(lambda connection: registrations.needs_seeding(connection, self._offered)):
            operator.store.write("seed", lambda connection: seed(connection, self._offered, _now()))

    def all(self) -> list[Registration]:
        """All that are on record, by id; also those that are removed or cannot be used."""
        return self._operator.store.read(lambda connection: registrations.every(connection, self._readable))

    def found(self, server_id: str) -> Registration:
        """What is on record of an id. Raises CommandError where nothing ever was."""
        found = self._operator.store.read(lambda connection: registrations.find(connection, server_id, self._readable))
        if found is None:
            raise CommandError(f"There is no server {quoted(server_id)}.")
        return found

    def usable(self, server_id: str) -> tuple[Registration, Manifest]:
        """What is registered of an id, with its manifest. Raises CommandError where there is none to use."""
        found = self.found(server_id)
        if found.problem is not None:
            raise CommandError(
                f"The registration of {quoted(server_id)} {found.problem.removesuffix('.')}; replace it."
            )
        if found.manifest is None:
            raise CommandError(f"The server {quoted(server_id)} is removed.")
        return found, found.manifest

    def offered(self, server_id: str) -> Manifest | None:
        """The manifest that the spec has for an id."""
        return next((manifest for manifest in self._offered if manifest.server_id == server_id), None)

    def read(self, text: bytes, name: str) -> Manifest:
        """The manifest in a text of YAML or JSON, which messages call `name`. Raises CommandError."""
        if len(text) > MANIFEST_BYTES:
            raise CommandError(f"{name} is too large for a manifest; it may have {MANIFEST_BYTES} bytes.")
        try:
            return self.taken(load_yaml(text.decode("utf-8")), name)
        except UnicodeDecodeError:
            raise CommandError(f"{name} is not UTF-8.") from None
        except YamlError as error:
            raise CommandError(f"{name} cannot be read, {error}.") from None

    def taken(self, value: object, name: str) -> Manifest:
        """The manifest that a JSON value is. Raises CommandError."""
        try:
            return read_manifest(value, self._readable.allowed, self._readable.reserved)
        except ManifestError as error:
            raise CommandError(
                "\n  ".join([f"{name} is no manifest that can be registered:", *str(error).split("\n")])
            ) from None

    def add(self, manifest: Manifest) -> Registration:
        """Register a server. Raises CommandError."""
        return self._change("add", lambda connection, now: registrations.add(connection, manifest, self._by, now))

    def replace(self, manifest: Manifest, seen: Registration | None = None) -> Registration:
        """Put another manifest in the place of the registered one, which must still be `seen`. Raises CommandError."""

        def work(connection: Connection, now: datetime) -> Registration:
            if seen is not None and not registrations.stands(
                connection, seen.server_id, seen.digest, seen.generation, seen.suspended
            ):
                raise RegistrationError(
                    f"The registration of {quoted(seen.server_id)} has changed meanwhile; look again."
                )
            return registrations.replace(connection, manifest, self._by, now)

        return self._change("replace", work)

    def remove(self, server_id: str) -> Registration:
        """Take a server out of the registry. Raises CommandError."""
        return self._change(
            "remove", lambda connection, now: registrations.remove(connection, server_id, self._by, now)
        )

    def confirm(self, server_id: str, generation: int | None = None) -> Registration:
        """Let what a policy grants on a server count again, if it still is of `generation`. Raises CommandError."""
        return self._change(
            "confirm", lambda connection, now: registrations.confirm(connection, server_id, now, generation)
        )

    @property
    def _by(self) -> str:
        return self._operator.name

    def _change(self, what: str, work: Callable[[Connection, datetime], Registration]) -> Registration:
        def recorded(connection: Connection) -> Registration:
            now = _now()
            changed = work(connection, now)
            audit.add(connection, audit.registry_row(what, changed.reference, self._by, now))
            return changed

        try:
            return self._operator.store.write(what, recorded)
        except RegistrationError as error:
            raise CommandError(str(error)) from None


def readable_of(registry: Registry) -> Readable:
    """The variables here that manifests may name: those of the gateways of the spec, and never the server's own."""
    allowed = tuple(pattern for gateway in _gateways(registry) for pattern in gateway["env"])
    return Readable(allowed, own_variables(registry.server.package))


def offered_by(registry: Registry, readable: Readable) -> list[Manifest]:
    """The manifests that the spec has."""
    return [read_manifest(value, *readable) for gateway in _gateways(registry) for value in gateway["manifests"]]


def _gateways(registry: Registry) -> list[JsonObject]:
    return [backend for backend in registry.backends.values() if backend["kind"] == "gateway"]


def _now() -> datetime:
    return datetime.now(UTC)
