"""The public keys that tokens are signed with, as whoever issues them publishes them: a JSON Web Key Set (RFC 7517)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from .bearer import VerifierError
from .outbound import Outbound, Outgoing
from .trusted_replies import MOST_BYTES, cannot_tell, document, reply

if TYPE_CHECKING:
    from jwt import PyJWK

_SERVICE: Final = "the service that publishes keys"
_ANSWER_SECONDS = 5.0
# A key that is withdrawn is taken for no longer than this.
_FRESH_SECONDS = 600.0
# Tokens that name a key which is not there make for no more requests than one in this time.
_PATIENCE_SECONDS = 60.0
# When there was no answer, there is the next try after this time.
_PAUSE_SECONDS = 1.0
_MOST_KEYS = 100
# By the first two letters of an algorithm; and what of such a key is public.
_KINDS: Final = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_PUBLIC: Final = ("kty", "crv", "x", "y", "n", "e")


@dataclass(frozen=True, slots=True)
class PublishedKey:
    """One key, ready for each of the algorithms that it may be used with."""

    id: str | None
    ready: Mapping[str, PyJWK] = field(repr=False)


class PublishedKeys:
    """The keys at a URL, for these algorithms; read when they are needed and not known, or known for too long."""

    def __init__(self, url: str, algorithms: Collection[str]) -> None:
        self._url = url
        self._algorithms = tuple(algorithms)
        self._outbound = Outbound()
        self._reading = asyncio.Lock()
        self._keys: tuple[PublishedKey, ...] = ()
        self._read_at: float | None = None  # times of the running loop
        self._tried_at: float | None = None
        self._failed = False

    async def find(self, key_id: str | None, algorithm: str) -> PyJWK | None:
        """The one key of this id that is for this algorithm; without an id, the only one that is.

        Raises VerifierError when the keys cannot be read.
        """
        if not self._answers(key_id):
            async with self._reading:
                if not self._answers(key_id):
                    await self._read()
        found = [key for key in self._keys if key_id in (None, key.id) and algorithm in key.ready]
        return found[0].ready[algorithm] if len(found) == 1 else None

    async def close(self) -> None:
        """Close the connections."""
        await self._outbound.close()

    @property
    def _is_fresh(self) -> bool:
        return self._read_at is not None and _now() - self._read_at < _FRESH_SECONDS

    def _answers(self, key_id: str | None) -> bool:
        """Whether what is known is enough to tell."""
        return self._is_fresh and (key_id is None or any(key.id == key_id for key in self._keys))

    async def _read(self) -> None:
        """Read the keys again, unless it is too soon for that. Raises VerifierError."""
        tried_at, now = self._tried_at, _now()
        if tried_at is not None and now - tried_at < (_PATIENCE_SECONDS if self._is_fresh else _PAUSE_SECONDS):
            if self._failed or not self._is_fresh:
                raise VerifierError(f"{_SERVICE} failed a moment ago")
            return
        self._tried_at, self._failed = now, True
        try:
            self._keys = await self._asked_for(now + _ANSWER_SECONDS)
        except asyncio.CancelledError:
            self._tried_at = tried_at  # whoever wanted to know has gone, which says nothing about the service
            raise
        self._read_at, self._failed = now, False

    async def _asked_for(self, deadline: float) -> tuple[PublishedKey, ...]:
        sending = self._outbound.send(Outgoing("GET", self._url), deadline=deadline, output=MOST_BYTES)
        return _usable(document(_SERVICE, await reply(_SERVICE, sending)), self._algorithms)


def _usable(found: Mapping[str, Any], algorithms: Collection[str]) -> tuple[PublishedKey, ...]:
    """The keys of a set that tokens can be checked with. Raises VerifierError when there are none."""
    entries = found.get("keys")
    if not isinstance(entries, list) or len(entries) > _MOST_KEYS:
        raise cannot_tell(f"the reply of {_SERVICE} has no list of keys, or too many")
    keys = tuple(_published(entry, algorithms) for entry in entries if _is_for_signatures(entry))
    if not (usable := tuple(key for key in keys if key.ready)):
        raise cannot_tell(f"the reply of {_SERVICE} has no key for the algorithms that are taken")
    return usable


def _is_for_signatures(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("kid"), str | None):
        return False
    operations = entry.get("key_ops", ["verify"])
    return entry.get("use", "sig") == "sig" and isinstance(operations, list) and "verify" in operations


def _published(entry: Mapping[str, Any], algorithms: Collection[str]) -> PublishedKey:
    return PublishedKey(entry.get("kid"), dict(_ready(entry, algorithms)))


def _ready(entry: Mapping[str, Any], algorithms: Collection[str]) -> Iterator[tuple[str, PyJWK]]:
    """The key, for each algorithm that it may be used with."""
    from jwt import PyJWK, PyJWTError

    public = {name: entry[name] for name in _PUBLIC if name in entry}
    for algorithm in algorithms:
        if entry.get("kty") != _KINDS[algorithm[:2]] or entry.get("alg", algorithm) != algorithm:
            continue
        try:
            key = PyJWK(public, algorithm)
            prepared = key.Algorithm.prepare_key(key.key)
        except (PyJWTError, ValueError, TypeError):
            continue  # of another curve, or broken
        if key.Algorithm.check_key_length(prepared) is None:
            yield algorithm, key


def _now() -> float:
    return asyncio.get_running_loop().time()
