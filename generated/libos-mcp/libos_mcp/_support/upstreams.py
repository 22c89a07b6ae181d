"""The sessions with upstreams: so many at one time with each, some of them kept for the next call of the same caller."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from . import log
from .slots import take_place
from .upstream_errors import NotStartedError, UpstreamError
from .upstream_session import Channel, Session
from .upstream_stdio import open_stdio

if TYPE_CHECKING:
    from .manifest import Manifest
    from .upstream_http import HttpNetwork
    from .upstream_secrets import Secrets

# A session that nobody has used for so long is ended; and so is the one that waits longest when there are too many.
IDLE_SECONDS = 300.0
MOST_KEPT = 16

Key: TypeAlias = tuple[str, str, int, str, str]  # server, its digest and generation, digest of its secrets, subject


class Upstreams:
    """All of one backend, for use in one event loop."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[int, asyncio.Semaphore]] = {}
        self._programs: dict[str, tuple[int, asyncio.Semaphore]] = {}
        self._program_of: dict[Session, asyncio.Semaphore] = {}
        self._kept: OrderedDict[Session, tuple[Key, asyncio.TimerHandle]] = OrderedDict()
        self._ending: set[asyncio.Task[None]] = set()
        self._network: HttpNetwork | None = None
        self._closed = False

    @asynccontextmanager
    async def place(self, manifest: Manifest, deadline: float) -> AsyncIterator[None]:
        """One of the places that calls of a server have at one time. Raises Refusal `busy` at the deadline."""
        places = _places(self._places, manifest)
        await take_place(places, deadline, manifest.server_id)
        try:
            yield
        finally:
            places.release()

    @asynccontextmanager
    async def session(
        self,
        manifest: Manifest,
        *,
        generation: int,
        secrets: Secrets,
        subject: str,
        deadline: float,
        warm: bool,
        contacted: Callable[[], None],
    ) -> AsyncIterator[Session]:
        """A session, open, until the block ends. Whoever wants it has a place at the server.

        A `warm` one may have been kept, and is kept again when the block ends well; any other is ended then, in the
        background. `contacted` is called right before anything outside is begun or used.
        Raises UpstreamError, and Refusal `busy` when until the deadline as many of its programs run as may.
        """
        key = (manifest.server_id, manifest.digest, generation, secrets.digest, subject)
        session = self._taken(key, contacted) if warm else None
        if session is None:
            session = await self._opened(manifest, secrets, deadline, contacted)
        try:
            yield session
        except BaseException:
            self._end(session)
            raise
        if warm and session.usable and not self._closed:
            self._keep(key, session)
        else:
            self._end(session)

    async def close(self) -> None:
        """End all sessions that are kept, and wait until everything has ended."""
        self._closed = True
        for session in tuple(self._kept):
            self._drop(session)
        while self._ending:
            await asyncio.wait(tuple(self._ending))
        if self._network is not None:
            self._network.close()

    async def _opened(
        self, manifest: Manifest, secrets: Secrets, deadline: float, contacted: Callable[[], None]
    ) -> Session:
        contact = _Contact(contacted)
        session = Session(lambda: self._connected(manifest, secrets, contact))
        if manifest.transport_kind == "stdio":
            self._program_of[session] = await self._program(manifest, deadline)
        try:
            await session.open(deadline=deadline)
        except UpstreamError as error:
            self._end(session)
            if not contact.made:
                raise NotStartedError(error.error_type) from None
            raise
        except BaseException:
            self._end(session)
            raise
        return session

    async def _connected(self, manifest: Manifest, secrets: Secrets, contact: _Contact) -> Channel:
        if manifest.transport_kind == "stdio":
            return await open_stdio(manifest, secrets.values, contact)
        from .upstream_http import HttpNetwork, open_http  # the import costs more than most calls

        if self._network is None:
            self._network = HttpNetwork()
        return await open_http(manifest, secrets.values, self._network, contact)

    async def _program(self, manifest: Manifest, deadline: float) -> asyncio.Semaphore:
        """A place for a program of a server, which it has until it is gone; one that is only kept makes room."""
        places = _places(self._programs, manifest)
        idle = next((session for session, (key, _) in self._kept.items() if key[0] == manifest.server_id), None)
        if places.locked() and idle is not None:
            self._drop(idle)
        await take_place(places, deadline, manifest.server_id)
        return places

    def _taken(self, key: Key, contacted: Callable[[], None]) -> Session | None:
        """The session that was used last of those that are kept for this; those of its server before a change end."""
        for session, (other, _) in tuple(self._kept.items()):
            if not session.usable or (other[0] == key[0] and other[1:3] != key[1:3]):
                self._drop(session)
        found = next((session for session, (other, _) in reversed(self._kept.items()) if other == key), None)
        if found is not None:
            self._kept.pop(found)[1].cancel()
            found.take_up()
            contacted()
        return found

    def _keep(self, key: Key, session: Session) -> None:
        timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._drop, session)
        self._kept[session] = (key, timer)
        if len(self._kept) > MOST_KEPT:
            self._drop(next(iter(self._kept)))

    def _drop(self, session: Session) -> None:
        """End a session that is kept."""
        self._kept.pop(session)[1].cancel()
        self._end(session)

    def _end(self, session: Session) -> None:
        """End a session; nobody waits for it but `close`."""
        task = asyncio.ensure_future(_ended(session))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        if (program := self._program_of.pop(session, None)) is not None:
            task.add_done_callback(lambda _ended: program.release())


def _places(known: dict[str, tuple[int, asyncio.Semaphore]], manifest: Manifest) -> asyncio.Semaphore:
    """The places at a server; new ones when their number has changed."""
    most, places = known.get(manifest.server_id, (0, None))
    if places is None or most != manifest.concurrency:
        places = asyncio.Semaphore(manifest.concurrency)
        known[manifest.server_id] = (manifest.concurrency, places)
    return places


class _Contact:
    """Tells that something outside is begun, and remembers it."""

    def __init__(self, contacted: Callable[[], None]) -> None:
        self._contacted = contacted
        self.made = False

    def __call__(self) -> None:
        self.made = True
        self._contacted()


async def _ended(session: Session) -> None:
    try:
        await session.close()
    except Exception as error:
        log.failure("an upstream was not ended in order", error)
