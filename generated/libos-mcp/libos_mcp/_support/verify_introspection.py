"""Verifies keys by token introspection (RFC 7662): the service that issues them says which ones are active."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from .asked_keys import AskedKeys
from .bearer import Identity
from .identities import UnreadableError, identity, instant
from .outbound import Outbound, Outgoing
from .trusted_replies import MOST_BYTES, cannot_tell, document, reply

_SERVICE: Final = "the introspection service"


@dataclass(frozen=True, slots=True)
class IntrospectionSettings:
    """Where to ask, with which headers, and what the answer calls the parts of an identity."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)  # how this server tells who it is
    subject: str = "sub"
    account: str | None = None
    scopes: str = "scope"


def introspection_verifier(settings: IntrospectionSettings) -> AskedKeys:
    """A verifier that asks a service about each key, and asks again when an answer is 30 seconds old."""
    introspection = _Introspection(settings)
    return AskedKeys(introspection.ask, introspection.close)


class _Introspection:
    def __init__(self, settings: IntrospectionSettings) -> None:
        self._settings = settings
        self._outbound = Outbound()

    async def ask(self, key: str, seconds: float) -> Identity | None:
        deadline = asyncio.get_running_loop().time() + seconds
        received = await reply(_SERVICE, self._outbound.send(self._question(key), deadline=deadline, output=MOST_BYTES))
        answer = document(_SERVICE, received)
        active = answer.get("active")
        if not isinstance(active, bool):
            raise cannot_tell(f"the reply of {_SERVICE} does not say whether the key is active")
        return self._identity(answer) if active else None

    async def close(self) -> None:
        await self._outbound.close()

    def _question(self, key: str) -> Outgoing:
        # With every request, and in its body: addresses get into logs.
        form = urlencode({"token": key, "token_type_hint": "access_token"}).encode("ascii")
        headers = {**self._settings.headers, "content-type": "application/x-www-form-urlencoded"}
        return Outgoing("POST", self._settings.url, headers, form)

    def _identity(self, answer: Mapping[str, Any]) -> Identity | None:
        settings = self._settings
        try:
            known = identity(
                subject=answer.get(settings.subject),
                account=None if settings.account is None else answer.get(settings.account),
                scopes=answer.get(settings.scopes),
                expires=answer.get("exp"),
            )
            begins = instant(answer.get("nbf"))
        except UnreadableError as error:
            raise cannot_tell(f"the reply of {_SERVICE} is about nobody: {error}") from None
        return known if begins is None or begins <= time.time() else None
