"""Runs verbs as requests to a REST service: one request per call, built by the verb's function, and sent only once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from . import log
from .backend import Plan
from .binding import Bindings
from .call import Call
from .http_reply import read_http_reply
from .http_request import HttpRequest
from .http_service import HttpService
from .idempotency import PARAMETER, IdempotencyKey, idempotency_key
from .outbound import LateReplyError, OutboundError, Received, UnreachableError
from .projection import projected
from .quoting import quoted
from .refusal import Refusal

# The most that the service may say in answer to a question of the server's own.
_ANSWER_BYTES = 1 << 20
# A gateway replied in the place of the service, which may have done what it was asked.
_OF_GATEWAYS: Final = frozenset({502, 504})


class HttpBackend:
    """The verbs of one REST service. `backend` is its entry in the registry."""

    def __init__(self, backend: Mapping[str, Any], bindings: Bindings) -> None:
        self._service = HttpService(backend)
        self._bindings = bindings

    async def plan(self, call: Call) -> Plan:
        """The request of a call, without the service's address, and what speaks against it."""
        binding = self._bindings.of(call.verb)
        known = () if binding.params is None else (binding.params.model_validate(call.arguments),)
        try:
            request: HttpRequest = binding.function(*known)
        except Refusal as refusal:
            return Plan(call, refusal=refusal)
        return Plan(call, request, self._refusal(call))

    async def run(self, plan: Plan) -> Any:
        """Send the request and read its reply. Raises Refusal."""
        key = idempotency_key(plan.call, forwarded=self._service.forwards)
        told = {} if key is None else key.told
        try:
            result = await self._result(plan, key)
        except Refusal as refusal:
            if told:
                refusal.detail = {**(refusal.detail or {}), **told}
            raise
        return {**result, **told} if isinstance(result, dict) else result

    async def ask(self, request: HttpRequest, *, credentials: str | None, seconds: float) -> Received:
        """The reply to a request that is no verb's, whatever its status; `credentials` are sent as they are.

        Raises OutboundError, and Refusal `internal` when the service is not configured as it has to be.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        return await self._service.send(request, credentials=credentials, deadline=deadline, output=_ANSWER_BYTES)

    async def close(self) -> None:
        """Close the connections to the service."""
        await self._service.close()

    def _refusal(self, call: Call) -> Refusal | None:
        if self._service.forwards and call.caller.credentials is None:
            name = quoted(call.verb.run.backend)
            return Refusal("denied", f"{name} wants the key of whoever calls, and this call came without one.")
        return None

    async def _result(self, plan: Plan, key: IdempotencyKey | None) -> Any:
        call, registry = plan.call, plan.call.registry
        received = await self._received(call, plan.bound, key)
        try:
            result = read_http_reply(received, call.verb.run, registry.kinds, feedback=registry.feedback)
        except Refusal as refusal:
            raise _doubted(refusal, call, key) if received.status in _OF_GATEWAYS else refusal from None
        return result if call.verb.result is None else projected(result, call.verb.result)

    async def _received(self, call: Call, request: HttpRequest, key: IdempotencyKey | None) -> Received:
        try:
            return await self._service.send(
                request,
                credentials=call.caller.credentials if self._service.forwards else None,
                key=None if key is None else key.sent,
                deadline=call.last_end,
                output=call.verb.limits.output,
            )
        except OutboundError as error:
            log.event(
                "warning",
                "a service did not reply",
                backend=call.verb.run.backend,
                verb=call.verb.name,
                how=type(error).__name__,
                cause=error.cause,
                correlation_id=call.correlation_id,
            )
            raise _without_reply(error, call, key) from None


def _without_reply(error: OutboundError, call: Call, key: IdempotencyKey | None) -> Refusal:
    if isinstance(error, UnreachableError):
        return Refusal("unavailable", f"{quoted(call.verb.run.backend)} cannot be reached; nothing was sent to it.")
    name = quoted(" ".join(call.verb.run.target))
    if isinstance(error, LateReplyError):
        message = f"{name} did not answer within {call.verb.limits.patience}."
    else:
        message = f"The reply of {name} was lost."
    return _doubted(Refusal("unavailable", message), call, key)


def _doubted(refusal: Refusal, call: Call, key: IdempotencyKey | None) -> Refusal:
    """A refusal that says what is not known, and how to find out; reading changes nothing, so there it is left alone."""
    if call.verb.effect == "read":
        return refusal
    how = "."
    if key is not None:
        again = f"the same call again, with this {quoted(PARAMETER)}," if key.told else "the same call again"
        how = f"; {again} gives the same result."
    message = f"{refusal.message} It is not known whether the service did it{how}"
    return Refusal(refusal.kind, message, refusal.detail)
