"""Runs the operations of the gateway: reads of the registry of servers, and calls of what is registered there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .backend import Plan
from .binding import Bindings
from .call import Call
from .gateway_operations import GatewayOperations
from .gateway_plan import plan_call, plan_list, plan_read, plan_refresh
from .gateway_registry import GatewayRegistry
from .registry import Registry
from .upstream_call import UpstreamCalls
from .upstream_request import ToolRequests

if TYPE_CHECKING:
    from .state_store import StateStore
    from .upstreams import Upstreams


class GatewayBackend:
    """The gateway that the entry `name` of the registry describes, over the servers in `store`.

    Nothing is opened before the first call that needs it. Secrets are read from `environ` for each call.
    """

    def __init__(
        self,
        registry: Registry,
        name: str,
        bindings: Bindings,
        store: StateStore,
        *,
        environ: Mapping[str, str] = os.environ,
        upstreams: Upstreams | None = None,
    ) -> None:
        entry = registry.backends[name]
        self._bindings = bindings
        self._most: int = entry["list"]
        self._servers = GatewayRegistry(store, entry, registry.server.package)
        self._requests = ToolRequests(names=registry.feedback == "names")
        self._calls = UpstreamCalls(upstreams, environ)

    async def plan(self, call: Call) -> Plan:
        """What a call needs: for one that leads to an upstream, what is registered of it now."""
        binding = self._bindings.of(call.verb)
        params: Any = None if binding.params is None else binding.params.model_validate(call.arguments)
        operation = call.verb.run.target[0]
        if operation == "servers":
            return plan_list(call, params, _given(params, "limit"), self._most)
        if operation == "call":
            return await self._plan_call(call, params)
        if operation == "tools" and _given(params, "refresh"):
            return plan_refresh(call, params, params.server_id, await self._servers.find(params.server_id), self._calls)
        return plan_read(call, params)

    async def run(self, plan: Plan) -> Any:
        """Do what an operation says. Raises Refusal."""
        operations = GatewayOperations(plan, self._servers, self._calls, self._most)
        params = plan.bound.params
        given = () if params is None else (params,)
        return await self._bindings.of(plan.call.verb).function(operations, *given, plan.call)

    async def close(self) -> None:
        """End the sessions with upstreams. The store belongs to whoever opened it."""
        await self._calls.close()

    async def _plan_call(self, call: Call, params: Any) -> Plan:
        arguments = _given(params, "arguments")
        remembered = None if call.fresh else self._servers.remembered(params.server_id)
        plan = plan_call(
            call,
            params,
            params.server_id,
            params.tool_id,
            {} if arguments is None else arguments,
            remembered or await self._servers.find(params.server_id),
            self._requests,
            self._calls,
        )
        return plan if remembered is None else replace(plan, remembered=True)


def _given(params: Any, name: str) -> Any:
    """A parameter that the verb may have left out of its operation; None then."""
    return getattr(params, name, None)
