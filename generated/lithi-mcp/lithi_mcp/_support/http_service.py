"""One REST service as the registry and the environment describe it: its address, its headers, and whose key it gets."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .environment import MissingVariableError, expand
from .http_request import HttpRequest
from .outbound import Outbound, Outgoing, Received
from .quoting import quoted
from .refusal import Refusal
from .service_address import AddressError, service_address

_HEADER_VALUE = re.compile(r"[!-~](?:[ \t!-~]*[!-~])?")
_KEY = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where requests go, with what. The environment may have filled in secrets."""

    address: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


class HttpService:
    """Sends requests to one service. `backend` is its entry in the registry."""

    def __init__(self, backend: Mapping[str, Any]) -> None:
        self._backend = backend
        self._outbound = Outbound()

    @property
    def forwards(self) -> bool:
        """Whether the service gets the key of whoever calls."""
        return bool(self._backend["credentials"] == "forward")

    async def send(
        self,
        request: HttpRequest,
        *,
        credentials: str | None = None,
        key: str | None = None,
        deadline: float,
        output: int,
    ) -> Received:
        """The reply to a request below the service's address, whatever its status.

        `credentials` are the caller's, `key` is an idempotency key, `deadline` is a time of the running loop, and
        `output` is how many bytes the reply may have. Raises OutboundError, and Refusal `internal` when the service is
        not configured as it has to be.
        """
        place = self._place()
        if not all(_KEY.fullmatch(secret) for secret in (credentials, key) if secret is not None):
            raise Refusal("internal", "The server has a key that no header can hold.")
        headers = {**place.headers}
        if credentials is not None:
            headers["authorization"] = f"Bearer {credentials}"
        if key is not None:
            headers["idempotency-key"] = key
        outgoing = Outgoing(request.method, place.address + request.target, headers, request.body)
        return await self._outbound.send(outgoing, deadline=deadline, output=output)

    async def close(self) -> None:
        """Close the connections."""
        await self._outbound.close()

    def _place(self) -> _Place:
        try:
            return self._configured
        except MissingVariableError as error:
            raise Refusal("internal", str(error)) from None
        except AddressError as error:
            raise Refusal("internal", f"The address {quoted(self._backend['url'])} {error}.") from None

    @cached_property
    def _configured(self) -> _Place:
        url: str = self._backend["url"]
        address = service_address(expand(url, os.environ), plain=url.startswith("http://"))
        return _Place(address, {name.lower(): _header(name, text) for name, text in self._backend["headers"].items()})


def _header(name: str, text: str) -> str:
    value = expand(text, os.environ)
    if not _HEADER_VALUE.fullmatch(value):
        raise Refusal("internal", f"The header {quoted(name)} is configured with what no header can hold.")
    return value
