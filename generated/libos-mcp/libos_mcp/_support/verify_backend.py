"""Verifies keys by a backend: it is asked, with the key of whoever calls, whom that key stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

from .asked_keys import AskedKeys
from .bearer import Identity
from .http_request import HttpRequest
from .identities import UnreadableError, identity
from .outbound import Received
from .pointer import Missing, look_up
from .refusal import Refusal
from .trusted_replies import cannot_tell, document, reply

_NOT_GOOD: Final = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class BackendSettings:
    """Which backend is asked for what, and where its reply has the parts of an identity, as JSON pointers."""

    backend: str
    target: tuple[str, str]  # method and path
    subject: str
    account: str | None = None
    scopes: str | None = None
    expires: str | None = None


class Service(Protocol):
    """What is asked: a backend."""

    async def ask(self, request: HttpRequest, *, credentials: str | None, seconds: float) -> Received:
        """The reply, whatever its status. Raises OutboundError, and Refusal when it is not configured as it has to be."""

    async def close(self) -> None:
        """Close its connections."""


def backend_verifier(settings: BackendSettings, service: Service) -> AskedKeys:
    """A verifier that asks `service` about each key, and asks again when an answer is 30 seconds old."""
    return AskedKeys(_Backend(settings, service).ask, service.close)


class _Backend:
    def __init__(self, settings: BackendSettings, service: Service) -> None:
        self._settings = settings
        self._service = service
        self._name = f"the backend `{settings.backend}`"

    async def ask(self, key: str, seconds: float) -> Identity | None:
        request = HttpRequest(*self._settings.target)
        try:
            received = await reply(self._name, self._service.ask(request, credentials=key, seconds=seconds))
        except Refusal as refusal:
            raise cannot_tell(f"{self._name} cannot be asked: {refusal.message}") from None
        return None if received.status in _NOT_GOOD else self._identity(document(self._name, received))

    def _identity(self, answer: dict[str, Any]) -> Identity:
        settings = self._settings
        try:
            return identity(
                subject=_at(answer, settings.subject),
                account=_at(answer, settings.account),
                scopes=_at(answer, settings.scopes),
                expires=_at(answer, settings.expires),
            )
        except UnreadableError as error:
            raise cannot_tell(f"the reply of {self._name} is about nobody: {error}") from None


def _at(answer: dict[str, Any], pointer: str | None) -> Any:
    """What stands at a pointer; None for nothing, and without a pointer."""
    value = None if pointer is None else look_up(answer, pointer)
    return None if isinstance(value, Missing) else value
