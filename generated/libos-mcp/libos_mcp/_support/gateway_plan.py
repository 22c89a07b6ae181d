"""What a call of the gateway needs before it may reach an upstream: rights, and a registration that allows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from .backend import Evidence, Plan
from .call import Call
from .manifest import Manifest, Stdio, Tool
from .quoting import quoted
from .refusal import Refusal
from .rights import Right
from .upstream_request import ToolRequests, call_cost, list_cost
from .validation import invalid

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from .registration_record import Registration
    from .upstream_call import UpstreamCalls

_RIGHTS: Final = ("read", "write", "execute")


@dataclass(frozen=True, slots=True)
class Bound:
    """What a call stands for: a server of the registry, perhaps a tool of it, and what goes there."""

    params: Any = None  # the typed view of the call's own arguments
    registration: Registration | None = None
    tool: Tool | None = None
    arguments: Mapping[str, Any] | None = None


def plan_list(call: Call, params: Any, limit: int | None, most: int) -> Plan:
    """A search of the registry, for at most `limit` servers."""
    refusal = None if limit is None or limit <= most else invalid([f"{quoted('limit')} must be at most {most}"])
    return Plan(call, Bound(params), refusal)


def plan_read(call: Call, params: Any) -> Plan:
    """A look at the registry."""
    return Plan(call, Bound(params))


def plan_refresh(
    call: Call, params: Any, server_id: str, registration: Registration | None, calls: UpstreamCalls
) -> Plan:
    """A look at the live tools of a server."""
    rights = (Right(("execute mcp_server", server_id)),)
    manifest = None if registration is None else registration.manifest
    if registration is None or manifest is None:
        return Plan(call, Bound(params), no_server(server_id, registration), rights=rights)
    return Plan(
        call,
        Bound(params, registration),
        rights=rights,
        outright=launch_rights(manifest),
        suspended=registration.suspended,
        target=registration.reference,
        cost=partial(list_cost, manifest),
        place=partial(calls.place, manifest, call),
        guard=partial(_stands, registration),
        evidence=Evidence(contacted=False),
    )


def plan_call(
    call: Call,
    params: Any,
    server_id: str,
    tool_id: str,
    arguments: Mapping[str, Any],
    registration: Registration | None,
    requests: ToolRequests,
    calls: UpstreamCalls,
) -> Plan:
    """A call of a tool of an upstream. One that is not there needs any right on it, and nobody is asked about it."""
    manifest = None if registration is None else registration.manifest
    tool = None if manifest is None else manifest.tool(tool_id)
    if registration is None or manifest is None or tool is None:
        return Plan(
            call,
            Bound(params),
            _no_tool(server_id, tool_id, registration),
            any_of=tuple(_right(right, server_id, tool_id) for right in _RIGHTS),
            # What is removed is told from what never was by nothing.
            suspended=registration is not None and manifest is not None and registration.suspended,
            target={"server_id": server_id, "tool_id": tool_id},
            arguments=arguments,
            cost=lambda: 0,
            evidence=Evidence(contacted=False),
        )
    return Plan(
        call,
        Bound(params, registration, tool, arguments),
        objection=partial(requests.refusal, manifest, tool, arguments),
        rights=(_right(tool.right, server_id, tool_id),),
        outright=launch_rights(manifest),
        suspended=registration.suspended,
        target={**registration.reference, "tool_id": tool_id},
        arguments=arguments,
        cost=partial(call_cost, manifest, tool, arguments),
        place=partial(calls.place, manifest, call),
        guard=partial(_stands, registration),
        evidence=Evidence(contacted=False),
    )


def launch_rights(manifest: Manifest) -> tuple[Right, ...]:
    """What it takes to start the program of a server; nothing where none is started."""
    transport = manifest.transport
    if not isinstance(transport, Stdio):
        return ()
    kind, _, digest = transport.authority.partition(":")
    return (Right(("write process", "spawn")), Right((f"execute {kind}", digest)))


def no_server(server_id: str, registration: Registration | None) -> Refusal:
    """The refusal for an id that has no usable registration."""
    return _unusable(registration) or Refusal("not_found", f"There is no server {quoted(server_id)}.")


def _no_tool(server_id: str, tool_id: str, registration: Registration | None) -> Refusal:
    message = f"There is no tool {quoted(tool_id)} of a server {quoted(server_id)}."
    return _unusable(registration) or Refusal("not_found", message)


def _unusable(registration: Registration | None) -> Refusal | None:
    if registration is None or registration.problem is None:
        return None
    sentence = f"The registration of {quoted(registration.server_id)} cannot be used; an operator has to replace it."
    return Refusal("unavailable", sentence)


def _right(right: str, server_id: str, tool_id: str) -> Right:
    return Right((f"{right} mcp", server_id, tool_id))


def _stands(registration: Registration, connection: Connection) -> bool:
    from .registrations import stands  # it needs the database

    return stands(
        connection, registration.server_id, registration.digest, registration.generation, registration.suspended
    )
