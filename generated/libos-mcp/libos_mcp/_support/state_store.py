"""What a governed server keeps: opened by its first use, never on the event loop, and what goes wrong as an answer."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from . import log
from .own_variables import store_variable
from .refusal import Refusal
from .registry import Registry
from .worker_threads import WorkerThreads

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from .database import Database
    from .store import Store

T = TypeVar("T")

_FILE: Final = "server.db"


class StateStore:
    """The store of a server. `components` are the names of modules beside this one that have tables.

    It is the database that `url` or the variable `<PACKAGE>_STORE` names, else a file in the state folder.
    """

    def __init__(
        self, registry: Registry, components: Sequence[str], *, state: Path | None = None, url: str | None = None
    ) -> None:
        self._registry = registry
        self._components = tuple(components)
        self._state = state
        self._url = url
        self._threads = WorkerThreads("store")
        self._opening = threading.Lock()
        self._opened: Store | None = None
        self._removing: asyncio.Future[None] | None = None  # traces of what was wiped
        self._closing = False

    async def read(self, work: Callable[[Connection], T]) -> T:
        """What `work` finds. Raises Refusal `unavailable` where the store cannot be used."""
        return await self._threads.read(lambda: self._answered(lambda: self.store().read(work)))

    async def write(self, name: str, work: Callable[[Connection], T]) -> T:
        """What `work` gives back, once it is on record; a cancellation has effect only then.

        Raises Refusal `unavailable` where the store cannot be used.
        """
        asked_at = time.monotonic()
        try:
            return await self._threads.write_to_the_end(
                lambda: self._answered(lambda: self.store().write(name, work, asked_at))
            )
        finally:
            self._clear_up()

    def store(self) -> Store:
        """The store itself, opened. Raises StoreError, StateFolderError."""
        if self._opened is None:
            with self._opening:
                if self._opened is None:
                    self._opened = self._open()
        return self._opened

    async def close(self) -> None:
        """Let go of it, once what is under way has ended."""
        self._closing = True
        await self._threads.close()
        if self._opened is not None:
            self._opened.close()

    def _clear_up(self) -> None:
        """Have traces of what was wiped removed, while nobody waits for that."""
        if self._opened is None or not self._opened.has_traces or self._closing:
            return
        if self._removing is None or self._removing.done():
            self._removing = self._threads.start(self._remove_traces)

    def _remove_traces(self) -> None:
        with suppress(Refusal):  # the log says why; the next write tries again
            self._answered(self.store().remove_traces)

    def _open(self) -> Store:
        from .store import Store

        components = [import_module(f"{__package__}.{name}").COMPONENT for name in self._components]
        return Store(self._database(), components)

    def _database(self) -> Database:
        url = self._url or os.environ.get(store_variable(self._registry.server.package))
        if url:
            from .postgresql import Postgresql

            return Postgresql(url)
        from .sqlite_file import SqliteFile
        from .state_folder import state_folder

        return SqliteFile(state_folder(self._registry.server.distribution, self._state) / _FILE)

    def _answered(self, work: Callable[[], T]) -> T:
        from .state_folder import StateFolderError
        from .store import StoreError

        try:
            return work()
        except (StateFolderError, StoreError) as error:
            log.event("error", "what the server keeps cannot be used", problem=str(error))
            raise Refusal("unavailable", "What this server keeps cannot be used now; its log says why.") from None
