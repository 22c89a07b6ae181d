"""Manifests, and stand-ins for upstreams, that the tests of the gateway and mcp backends share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, StaticPool, create_engine

from verbc.support import governance_tables, registrations
from verbc.support.call import Call, Caller
from verbc.support.fingerprint import canonical_json
from verbc.support.manifest import Manifest, Tool, read_manifest
from verbc.support.refusal import Refusal
from verbc.support.registration_record import Registration
from verbc.support.registrations import ABSENT_DIGEST
from verbc.support.registry import Registry, Verb
from verbc.support.upstream_session import Listed, Received

from .programs import FOR_EVER

T = TypeVar("T")

EVENT: dict[str, Any] = {
    "type": "object",
    "properties": {"event_id": {"type": "string"}, "at": {"type": "number", "minimum": 1}},
    "required": ["event_id"],
    "additionalProperties": False,
}


def tool_data(tool_id: str, mcp_name: str, **changes: Any) -> dict[str, Any]:
    """A tool of a manifest: it reads, and its schema is pinned."""
    return {
        "tool_id": tool_id,
        "mcp_name": mcp_name,
        "right": "read",
        "rollback_class": "no_rollback_required",
        "state_mutation": False,
        "information_flow": True,
        "input_schema": EVENT,
        **changes,
    }


GET = tool_data("event_get", "cal.get")
PUT = tool_data("event_put", "cal.put", right="write", rollback_class="irreversible", state_mutation=True)
STDIO: dict[str, Any] = {"transport": "stdio", "stdio": {"command": "calendar", "args": ["--serve"]}}
HTTP: dict[str, Any] = {"transport": "streamable_http", "http": {"url": "https://calendar.example.org/mcp"}}


def manifest(**changes: Any) -> Manifest:
    """The server `calendar`, which is started as a program, with a tool that reads and one that writes."""
    return read_manifest(
        {"server_id": "calendar", "tools": [GET, PUT], **({} if "transport" in changes else STDIO), **changes},
        ["CAL_*"],
    )


def tool(**changes: Any) -> Tool:
    """The tool `event_get`, with changes."""
    found = manifest(tools=[{**GET, **changes}]).tool("event_get")
    assert found is not None
    return found


def offered(name: str = "cal.get", **changes: Any) -> dict[str, Any]:
    """A tool as an upstream lists it."""
    return {"name": name, "description": "One event.", "inputSchema": EVENT, **changes}


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def registration(found: Manifest | None, **changes: Any) -> Registration:
    """What is on record of `calendar`."""
    about: dict[str, Any] = {
        "server_id": "calendar",
        "manifest": found,
        "digest": ABSENT_DIGEST if found is None else found.digest,
        "generation": 3,
        "suspended": False,
        "origin": "operator",
        "seed_digests": (),
        "registered_by": "operator",
        "created_at": NOW,
        "updated_at": NOW,
    }
    return Registration(**{**about, **changes})


def a_call(verb: Verb, arguments: dict[str, Any], registry: Registry, *, seconds: float = FOR_EVER) -> Call:
    """A call of a verb, made now, by `ann`, that is planned with nothing that is only remembered."""
    deadline = asyncio.get_running_loop().time() + seconds
    return Call(verb, arguments, Caller("ann"), "corr_0123456789abcdef", registry, NOW, deadline, fresh=True)


class Heap:
    """A store in memory, with the calls of a server's own."""

    def __init__(self) -> None:
        self._engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
        self.reads = self.writes = 0
        self.problem: Refusal | None = None
        with self._engine.begin() as connection:
            for step in (*registrations.COMPONENT.steps, *governance_tables.COMPONENT.steps):
                step(connection)

    async def read(self, work: Callable[[Connection], T]) -> T:
        self.reads += 1
        return self.now(work)

    async def write(self, name: str, work: Callable[[Connection], T]) -> T:
        self.writes += 1
        return self.now(work)

    def now(self, work: Callable[[Connection], T]) -> T:
        """Do something to it at once."""
        if self.problem is not None:
            raise self.problem
        with self._engine.begin() as connection:
            return work(connection)

    def close(self) -> None:
        self._engine.dispose()


@dataclass
class Upstream:
    """An upstream that answers as it is told, and keeps count of what it hears."""

    tools: Any = field(default_factory=lambda: [offered(), offered("cal.put")])
    result: Any = field(default_factory=lambda: {"content": [{"type": "text", "text": "done"}]})
    starting: Exception | None = None  # raised before anything is contacted
    connecting: Exception | None = None  # raised once it is
    answering: Exception | None = None  # raised once the call is sent
    listing: Callable[[], None] = lambda: None  # done with the list
    calling: Callable[[], None] = lambda: None  # done before the call is sent
    sessions: list[dict[str, Any]] = field(default_factory=list)
    lists: int = 0
    calls: list[tuple[str, Any]] = field(default_factory=list)
    kept: list[bool] = field(default_factory=list)
    closed: bool = False

    @asynccontextmanager
    async def session(
        self, manifest: Manifest, *, contacted: Callable[[], None], **about: Any
    ) -> AsyncIterator[_Scripted]:
        if self.starting is not None:
            raise self.starting
        self.sessions.append({"manifest": manifest, **about})
        contacted()
        if self.connecting is not None:
            raise self.connecting
        try:
            yield _Scripted(self)
        except BaseException:
            self.kept.append(False)
            raise
        self.kept.append(about["warm"])

    async def close(self) -> None:
        self.closed = True


@dataclass
class _Scripted:
    of: Upstream

    async def list_tools(self, *, deadline: float, page_limit: int) -> Listed:
        self.of.lists += 1
        self.of.listing()
        if isinstance(self.of.tools, Exception):
            raise self.of.tools
        return Listed(self.of.tools, 200, repr(self.of.tools).encode())

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], *, deadline: float, sent: Callable[[], None]
    ) -> Received:
        self.of.calling()
        sent()
        self.of.calls.append((name, arguments))
        if self.of.answering is not None:
            raise self.of.answering
        return Received(self.of.result, len(canonical_json(self.of.result)))
