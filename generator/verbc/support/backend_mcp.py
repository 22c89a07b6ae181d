"""Runs verbs as calls of one MCP server's tools: each verb stands for one tool, and gives it its arguments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from .backend import Evidence, Plan
from .binding import Bindings
from .call import Call
from .manifest import Manifest, Tool, read_manifest
from .own_variables import own_variables
from .projection import projected
from .quoting import quoted
from .refusal import Refusal
from .registry import Registry
from .result_projection import Projected
from .strict_json import Unacceptable, parse
from .upstream_call import Order, UpstreamCalls
from .upstream_ends import Ended
from .upstream_request import ToolRequests, call_cost, changes_something

if TYPE_CHECKING:
    from .upstreams import Upstreams


@dataclass(frozen=True, slots=True)
class _Bound:
    """The tool of a call, and what it is given."""

    tool: Tool
    arguments: Mapping[str, Any]


class McpBackend:
    """The server whose manifest stands in the entry `name` of the registry.

    Nothing is opened before the first call. Secrets are read from `environ` for each call.
    """

    def __init__(
        self,
        registry: Registry,
        name: str,
        bindings: Bindings,
        *,
        environ: Mapping[str, str] = os.environ,
        upstreams: Upstreams | None = None,
    ) -> None:
        self._name = name
        self._entry = registry.backends[name]
        self._reserved = own_variables(registry.server.package)
        self._bindings = bindings
        self._requests = ToolRequests(names=registry.feedback == "names")
        self._calls = UpstreamCalls(upstreams, environ)

    async def plan(self, call: Call) -> Plan:
        """The arguments of the tool, and what speaks against them."""
        binding = self._bindings.of(call.verb)
        known = () if binding.params is None else (binding.params.model_validate(call.arguments),)
        try:
            arguments: dict[str, Any] = binding.function(*known)
        except Refusal as refusal:
            return Plan(call, refusal=refusal)
        tool = self._tool(call)
        return Plan(
            call,
            _Bound(tool, arguments),
            objection=partial(self._requests.refusal, self._manifest, tool, arguments),
            target={
                "server_id": self._manifest.server_id,
                "tool_id": tool.tool_id,
                "registration_digest": self._manifest.digest,
            },
            cost=partial(call_cost, self._manifest, tool, arguments),
            place=partial(self._calls.place, self._manifest, call),
            evidence=Evidence(contacted=False),
        )

    async def run(self, plan: Plan) -> Any:
        """Call the tool, once. Raises Refusal for whatever is no result."""
        call, bound = plan.call, plan.bound
        order = Order(self._manifest, 0, bound.tool, bound.arguments, warm=self._entry["warm"])
        ended = await self._calls.call(order, call, plan.evidence)
        if ended.status != "ok" or ended.result is None:
            raise self._refusal(ended, bound.tool, call)
        return self._value(ended.result, bound.tool, call)

    async def close(self) -> None:
        """End the sessions with the server."""
        await self._calls.close()

    @cached_property
    def _manifest(self) -> Manifest:
        return read_manifest(self._entry["manifest"], self._entry["env"], self._reserved)

    def _tool(self, call: Call) -> Tool:
        tool = self._manifest.tool(call.verb.run.target[0])
        if tool is None:
            raise KeyError("The manifest does not have the tool of a verb.")
        return tool

    def _value(self, result: Projected, tool: Tool, call: Call) -> Any:
        schema = call.verb.result
        if schema is None:
            return _undeclared(result)
        value = _data(result)
        if value is None:
            raise Refusal("internal", f"{self._called(tool)} returned no data.", _content(result))
        return projected(value[0], schema)

    def _refusal(self, ended: Ended, tool: Tool, call: Call) -> Refusal:
        if ended.status == "mcp_error" and ended.result is not None:
            return Refusal("conflict", f"{self._called(tool)} ended in an error.", _content(ended.result))
        message = self._message(ended, tool)
        if ended.call_started and (call.verb.effect != "read" or changes_something(tool)):
            message += " It is not known whether the tool did it."
        detail = {"code": ended.code, "error_type": ended.error_type, "correlation_id": ended.correlation_id}
        return Refusal("unavailable", message, detail)

    def _message(self, ended: Ended, tool: Tool) -> str:
        if ended.status == "invalid_response":
            name = quoted(tool.tool_id)
            return f"{quoted(self._name)} does not offer {name} as it is registered; nothing was called."
        if ended.status == "response_too_large":
            return f"The result of {self._called(tool)} has more than {self._manifest.max_response_bytes} bytes."
        if not ended.call_started:
            return f"{quoted(self._name)} cannot be reached; nothing was called."
        return f"The result of {self._called(tool)} did not come."

    def _called(self, tool: Tool) -> str:
        return f"{quoted(tool.tool_id)} of {quoted(self._name)}"


def _data(result: Projected) -> tuple[Any] | None:
    """What a result is as data: its structured content, or else the JSON that its only text is."""
    if result.structured is not None:
        return (result.structured,)
    text = _only_text(result)
    try:
        return None if text is None else (parse(text),)
    except Unacceptable:
        return None


def _undeclared(result: Projected) -> Any:
    if result.structured is not None:
        return result.structured
    text = _only_text(result)
    return {"content": result.content} if text is None else text


def _only_text(result: Projected) -> str | None:
    match result.content:
        case [{"type": "text", "text": str(text)}]:
            return text
    return None


def _content(result: Projected) -> dict[str, Any]:
    structured = {} if result.structured is None else {"structured_content": result.structured}
    return {"content": result.content, **structured}
