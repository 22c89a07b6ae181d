"""The registry of the gateway as its calls see it; the servers of the spec are in it before the first look."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from . import log
from .manifest import read_manifest
from .own_variables import own_variables
from .registration_record import Readable, Registration
from .rights import Right

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from .state_store import StateStore

T = TypeVar("T")


class GatewayRegistry:
    """The servers in `store`, and those of the entry `backend` of the registry of verbs. `package` is this server's."""

    def __init__(self, store: StateStore, backend: Mapping[str, Any], package: str) -> None:
        self._store = store
        self._manifests = backend["manifests"]
        self._readable = Readable(tuple(backend["env"]), own_variables(package))
        self._seeding = asyncio.Lock()
        self._seeded = False
        self._remembered: dict[str, Registration] = {}

    def remembered(self, server_id: str) -> Registration | None:
        """What was on record of an id when it was last looked for, where it could be used then."""
        return self._remembered.get(server_id)

    async def find(self, server_id: str) -> Registration | None:
        """What is on record of an id; None when nothing is. Raises Refusal `unavailable`."""
        found = await self._found(server_id)
        self._remembered.pop(server_id, None)
        if found is not None and found.manifest is not None:
            self._remembered[server_id] = found  # of those alone that an operator has registered, so they are few
        return found

    async def search(
        self, text: str | None, limit: int, may: Callable[[Right], bool] | None = None
    ) -> tuple[list[Registration], bool]:
        """The first servers that hold `text`, and whether there are more. Raises Refusal `unavailable`.

        Where `may` says what the caller has a right to, others are as if they were not there.
        """
        from .registrations import search  # it needs the database

        def seen(server_id: str) -> bool:
            return may is None or may(Right(("read mcp_server", server_id)))

        return await self.read(partial(search, text=text, limit=limit, readable=self._readable, seen=seen))

    async def read(self, work: Callable[[Connection], T]) -> T:
        """What `work` finds in the store. Raises Refusal `unavailable`."""
        if not self._seeded:
            await self._seed()
        return await self._store.read(work)

    async def _found(self, server_id: str) -> Registration | None:
        from .registrations import find

        return await self.read(partial(find, server_id=server_id, readable=self._readable))

    async def _seed(self) -> None:
        from .registrations import needs_seeding
        from .seeding import seed

        async with self._seeding:
            if self._seeded:
                return
            manifests = [read_manifest(manifest, *self._readable) for manifest in self._manifests]
            if await self._store.read(lambda connection: needs_seeding(connection, manifests)):
                now = datetime.now(UTC)
                changed = await self._store.write("seed", lambda connection: seed(connection, manifests, now))
                log.event("info", "the servers of the spec were registered", servers=changed)
            self._seeded = True
