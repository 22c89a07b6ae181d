"""The servers of the spec are registered, and that is put on record, in one transaction of the store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from . import audit, registrations
from .manifest import Manifest

_BY: Final = "spec"


def seed(connection: Connection, manifests: Sequence[Manifest], now: datetime) -> list[str]:
    """Register what the spec offers, as `registrations.seed` does; gives the ids that this has changed."""
    changed = registrations.seed(connection, manifests, now)
    if changed:
        audit.add(connection, *(audit.registry_row("seed", found.reference, _BY, now) for found in changed))
    return [found.server_id for found in changed]
