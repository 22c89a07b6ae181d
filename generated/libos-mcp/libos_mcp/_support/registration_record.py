"""What is on record of a registered MCP server, and how a row of the table is read as that."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from .manifest import Manifest, ManifestError, read_manifest
from .moments import EPOCH, readable_moment
from .strict_json import Unacceptable, parse

if TYPE_CHECKING:
    from sqlalchemy import Row

_PARSED_MANIFESTS: Final = 512


class Readable(NamedTuple):
    """The variables that a manifest may name, as `read_manifest` takes them."""

    allowed: tuple[str, ...]
    reserved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Registration:
    """What is on record of one server id. Without a manifest it is removed, or a `problem` says why it is unusable."""

    server_id: str
    manifest: Manifest | None
    digest: str
    generation: int  # rises with every change of what is registered
    suspended: bool  # grants that name it are without effect until it is confirmed
    origin: Literal["spec", "operator"]
    seed_digests: tuple[str, ...]  # of the manifests that the spec has offered, the last one last
    registered_by: str | None
    created_at: datetime
    updated_at: datetime
    problem: str | None = None  # a predicate, such as "is damaged"

    @property
    def reference(self) -> dict[str, Any]:
        """What tells it from all that its server id stood for before, as approvals and the record have it."""
        return {
            "server_id": self.server_id,
            "registration_digest": self.digest,
            "registration_generation": self.generation,
        }


def registration_of(row: Row[Any], readable: Readable) -> Registration:
    """What a row says. A damaged one, or a manifest that this server would not take now, is unusable, and nothing else."""
    created_at, updated_at = readable_moment(row.created_at), readable_moment(row.updated_at)
    whole = isinstance(row.generation, int) and isinstance(row.digest, str) and created_at and updated_at
    manifest, problem = _manifest(row, readable) if whole else (None, "cannot be read")
    return Registration(
        server_id=row.server_id,
        manifest=manifest,
        digest=str(row.digest),
        generation=row.generation if isinstance(row.generation, int) else 0,
        suspended=row.suspended,
        origin=row.origin,
        seed_digests=seeded(row.seed_digests),
        registered_by=row.registered_by,
        created_at=created_at or EPOCH,
        updated_at=updated_at or EPOCH,
        problem=problem,
    )


def seeded(kept: str | None) -> tuple[str, ...]:
    """The digests of the manifests that the spec has offered, the last one last."""
    return tuple(str(kept or "").split())


def _manifest(row: Row[Any], readable: Readable) -> tuple[Manifest | None, str | None]:
    if row.manifest is None:
        return None, None
    if not isinstance(row.manifest, str):
        return None, "cannot be read"
    try:
        manifest = _parsed(row.manifest, readable)
    except Unacceptable as error:
        return None, error.reason
    except ManifestError as error:
        return None, f"does not fit this version of the server: {error.problems[0].text}"
    if (manifest.server_id, manifest.digest) != (row.server_id, row.digest):
        return None, "is not what its digest says"
    return manifest, None


@lru_cache(_PARSED_MANIFESTS)
def _parsed(text: str, readable: Readable) -> Manifest:
    return read_manifest(parse(text), readable.allowed, readable.reserved)
