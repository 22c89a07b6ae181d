"""The registry of MCP servers: every question and every change, on the connection of a transaction of the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Final

from sqlalchemy import Connection, Row

from .fingerprint import canonical_json
from .manifest import Manifest
from .moments import as_number, readable_moment
from .quoting import quoted
from .registration_record import Readable, Registration, registration_of, seeded
from .registration_tables import ADD, ALL, CHANGE, COMPONENT, ONE, SEEDS, STANDING
from .right_forms import is_id

__all__ = [
    "ABSENT_DIGEST",
    "COMPONENT",
    "Readable",
    "Registration",
    "RegistrationError",
    "add",
    "confirm",
    "every",
    "find",
    "needs_seeding",
    "remove",
    "replace",
    "search",
    "seed",
    "stands",
]

ABSENT_DIGEST: Final = "0" * 64  # of what is not registered

_MOST_SEEDS: Final = 50  # digests that are remembered of one id
_NEVER_REGISTERED: Final = (ABSENT_DIGEST, 0, False)
_ANY_VARIABLE: Final = Readable(("*",))


class RegistrationError(Exception):
    """A change of the registry cannot be made; the text says why, in one sentence."""


def find(connection: Connection, server_id: str, readable: Readable = _ANY_VARIABLE) -> Registration | None:
    """What is on record of a server id; None when it never was registered."""
    row = _row(connection, server_id)
    return None if row is None else registration_of(row, readable)


def stands(connection: Connection, server_id: str, digest: str, generation: int, suspended: bool) -> bool:
    """Whether an id still is registered like this. ABSENT_DIGEST, 0 and False are what one is that never was."""
    row = connection.execute(STANDING, {"server": server_id}).first() if is_id(server_id) else None
    return (_NEVER_REGISTERED if row is None else tuple(row)) == (digest, generation, suspended)


def search(
    connection: Connection,
    text: str | None,
    limit: int,
    readable: Readable = _ANY_VARIABLE,
    seen: Callable[[str], bool] = lambda server_id: True,
) -> tuple[list[Registration], bool]:
    """The first `limit` usable registrations by id, and whether there are more, among those whose ids are `seen`.

    With a text, those whose manifest holds it, in any case; addresses, headers and variables are not looked at.
    """
    wanted = (text or "").casefold()
    usable = (found for found in every(connection, readable) if found.manifest and wanted in found.manifest.searched)
    found = list(islice((each for each in usable if seen(each.server_id)), limit + 1))
    return found[:limit], len(found) > limit


def every(connection: Connection, readable: Readable = _ANY_VARIABLE) -> list[Registration]:
    """All that is on record, by id, also what is removed or unusable."""
    rows = sorted(connection.execute(ALL), key=lambda row: str(row.server_id))
    return [registration_of(row, readable) for row in rows]


def needs_seeding(connection: Connection, manifests: Sequence[Manifest]) -> bool:
    """Whether `seed` would write anything."""
    known = {row.server_id: seeded(row.seed_digests) for row in connection.execute(SEEDS)}
    return any(manifest.digest not in known.get(manifest.server_id, ()) for manifest in manifests)


def seed(connection: Connection, manifests: Sequence[Manifest], now: datetime) -> list[Registration]:
    """Register what the spec offers, and give what this has changed.

    A manifest whose digest was ever offered before changes nothing. Another one takes the place of the one before,
    which suspends its grants; but what an operator has registered or removed since stays as it is.
    """
    changed = [manifest.server_id for manifest in manifests if _seed(connection, manifest, now)]
    return [_found(connection, server_id) for server_id in changed]


def add(connection: Connection, manifest: Manifest, by: str | None, now: datetime) -> Registration:
    """Register a server whose id is free. Raises RegistrationError.

    An id that had been removed stays suspended, so that nobody's old grants reach the new server.
    """
    row = _row(connection, manifest.server_id)
    if row is not None and row.manifest is not None:
        raise RegistrationError(
            f"There is a server {quoted(manifest.server_id)} already; replace it, or choose another id."
        )
    values = {**_registered(manifest, now), "origin": "operator", "registered_by": by, "created_at": as_number(now)}
    if row is None:
        connection.execute(ADD, {**values, "server_id": manifest.server_id, "generation": 1, "suspended": False})
    else:
        _change(connection, row, {**values, "suspended": True})
    return _found(connection, manifest.server_id)


def replace(connection: Connection, manifest: Manifest, by: str | None, now: datetime) -> Registration:
    """Put a manifest in the place of another one, and suspend its grants. Raises RegistrationError."""
    row = _registered_row(connection, manifest.server_id)
    values = {**_registered(manifest, now), "suspended": True, "origin": "operator", "registered_by": by}
    _change(connection, row, values)
    return _found(connection, manifest.server_id)


def remove(connection: Connection, server_id: str, by: str | None, now: datetime) -> Registration:
    """Take a server out of the registry, and suspend its grants. Raises RegistrationError."""
    row = _registered_row(connection, server_id)
    values = {"manifest": None, "digest": ABSENT_DIGEST, "suspended": True, "origin": "operator", "registered_by": by}
    _change(connection, row, {**values, "updated_at": as_number(now)})
    return _found(connection, server_id)


def confirm(connection: Connection, server_id: str, now: datetime, generation: int | None = None) -> Registration:
    """Let the grants that name a server have effect again, if it still is of `generation`. Raises RegistrationError."""
    row = _registered_row(connection, server_id)
    if generation is not None and row.generation != generation:
        raise RegistrationError(
            f"The generation of {quoted(server_id)} is {row.generation} and not {generation}; look again."
        )
    connection.execute(CHANGE, {"server": server_id, "suspended": False, "updated_at": as_number(now)})
    return _found(connection, server_id)


def _seed(connection: Connection, manifest: Manifest, now: datetime) -> bool:
    row = _row(connection, manifest.server_id)
    before = () if row is None else seeded(row.seed_digests)
    if manifest.digest in before:
        return False
    seeds = {"seed_digests": " ".join([*before, manifest.digest][-_MOST_SEEDS:])}
    values = {**_registered(manifest, now), **seeds, "origin": "spec", "registered_by": None}
    if row is None:
        fresh = {"server_id": manifest.server_id, "generation": 1, "suspended": False, "created_at": as_number(now)}
        connection.execute(ADD, {**values, **fresh})
        return True
    if row.origin != "spec":
        connection.execute(CHANGE, {"server": manifest.server_id, **seeds})
        return False
    _change(connection, row, {**values, "suspended": True})
    return True


def _registered(manifest: Manifest, now: datetime) -> dict[str, Any]:
    return {
        "manifest": canonical_json(manifest.data),
        "digest": manifest.digest,
        "updated_at": as_number(now),
    }


def _change(connection: Connection, row: Row[Any], values: dict[str, Any]) -> None:
    """Give a row other values, and with them the next generation, also where they are the same."""
    # Where it is damaged, the moment is more than any that there was.
    generation = row.generation + 1 if isinstance(row.generation, int) else values["updated_at"]
    created_at = values["updated_at"] if readable_moment(row.created_at) is None else row.created_at
    connection.execute(CHANGE, {"server": row.server_id, "generation": generation, "created_at": created_at, **values})


def _row(connection: Connection, server_id: str) -> Row[Any] | None:
    # What is no id can be anything, also a text that a database does not take.
    return connection.execute(ONE, {"server": server_id}).first() if is_id(server_id) else None


def _registered_row(connection: Connection, server_id: str) -> Row[Any]:
    row = _row(connection, server_id)
    if row is None:
        raise RegistrationError(f"There is no server {quoted(server_id)}.")
    if row.manifest is None:
        raise RegistrationError(f"The server {quoted(server_id)} is removed.")
    return row


def _found(connection: Connection, server_id: str) -> Registration:
    row = _row(connection, server_id)
    assert row is not None  # noqa: S101 - it was written a moment ago
    return registration_of(row, _ANY_VARIABLE)
