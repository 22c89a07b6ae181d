"""Verifies keys by a file of their digests, which is read again when it has changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import log
from .bearer import Identity, VerifierError
from .key_entries import key_digest
from .keys_file import KeysFileError, read_keys
from .trusted_file import Stamp, stamp


@dataclass(frozen=True, slots=True)
class _Content:
    """What was read of the file, and which file it was. With a problem, nothing in it counts."""

    stamp: Stamp
    identities: Mapping[str, Identity] = field(repr=False)  # by the SHA-256 of the key
    problem: str | None = None


class FileVerifier:
    """Knows the keys that stand in a file. Raises KeysFileError when that cannot be used to begin with."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._content = _read(self._path)
        self._reading = asyncio.Lock()
        if self._content.problem is not None:
            raise KeysFileError(self._content.problem)

    async def verify(self, key: str) -> Identity | None:
        """Whom the key stands for, by the file as it is now. Raises VerifierError while it cannot be used."""
        content = await self._current()
        if content.problem is not None:
            raise VerifierError(content.problem)
        # The keys are too long to be guessed, so how long it takes to find a digest or none tells nobody anything.
        found = content.identities.get(key_digest(key))
        expired = found is not None and found.expires_at is not None and found.expires_at <= time.time()
        return None if expired else found

    async def close(self) -> None:
        """Nothing is kept open."""

    async def _current(self) -> _Content:
        # On the loop, unlike the reading: to hand this to a thread would take many times as long as it takes itself.
        if stamp(self._path) != self._content.stamp:
            async with self._reading:
                if stamp(self._path) != self._content.stamp:
                    self._content = await asyncio.to_thread(_read_and_tell, self._path)
        return self._content


def _read(path: Path) -> _Content:
    # The stamp first: what changes meanwhile is read once more.
    taken = stamp(path)
    try:
        return _Content(taken, {entry.sha256: entry.identity for entry in read_keys(path)})
    except KeysFileError as error:
        return _Content(taken, {}, str(error))


def _read_and_tell(path: Path) -> _Content:
    content = _read(path)
    if content.problem is None:
        log.event("info", "the keys file was read again", keys=len(content.identities))
    else:
        log.event("error", "the keys file cannot be used", problem=content.problem)
    return content
