"""One way to every upstream: a session, a look at its live tools, and then, if they are what was agreed on, the call."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .backend import Evidence
from .call import Call
from .live_tools import CheckedLists, by_name, live_view
from .result_projection import Projected, projected
from .upstream_ends import (
    FAILURES,
    Ended,
    RegistrationChangedError,
    Status,
    correlation,
    failure_of,
    log_failure,
    not_listed,
    not_started,
)
from .upstream_errors import NotStartedError
from .upstream_request import changes_something
from .upstream_secrets import secrets_of

if TYPE_CHECKING:
    from .manifest import Manifest, Tool
    from .upstream_session import Received, Session
    from .upstreams import Upstreams

# Larger results are gone through off the event loop.
_SMALL_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Order:
    """One call of a registered tool. `stands` says, right before it is sent, whether the registration still does."""

    manifest: Manifest
    generation: int
    tool: Tool
    arguments: Mapping[str, Any]
    warm: bool  # a session may be kept, as far as the tool allows it
    stands: Callable[[], Awaitable[bool]] | None = None


@dataclass(frozen=True, slots=True)
class Looked:
    """The live tools as callers see them, by the ids of the registered ones that they belong to."""

    tools: Mapping[str, dict[str, Any]]
    response_bytes: int


class UpstreamCalls:
    """Calls of the upstreams of one backend. Secrets are read from `environ` for each of them."""

    def __init__(self, upstreams: Upstreams | None = None, environ: Mapping[str, str] = os.environ) -> None:
        self._opened = upstreams
        self._environ = environ
        self._lists = CheckedLists()

    @asynccontextmanager
    async def place(self, manifest: Manifest, call: Call) -> AsyncIterator[None]:
        """One of the places that calls of a server have at one time. Raises Refusal `busy`."""
        async with self._upstreams().place(manifest, call.last_start):
            yield

    async def call(self, order: Order, call: Call, evidence: Evidence) -> Ended:
        """Look at the live tools, then call one, once. Raises Refusal, always before the call was sent."""
        clock = asyncio.get_running_loop().time
        began, progress = clock(), _Progress(evidence)
        result = None
        status: Status = "ok"
        error_type = None
        try:
            received = await self._received(order, call, progress, min(call.last_end, began + order.manifest.timeout_s))
            result = await _read(received, order.manifest)
            if result.failed:
                status, error_type = "mcp_error", "mcp_error"
        except NotStartedError as error:
            evidence.contacted = False
            raise not_started(order.manifest, call, error) from None
        except FAILURES as error:
            status, error_type = failure_of(error)
        evidence.status, evidence.error_type = status, error_type
        evidence.response_bytes = progress.whole
        ended = Ended(status, error_type, result, evidence.sent, progress.known, clock() - began, correlation(call))
        if status != "ok":
            log_failure(ended, order.manifest, order.tool, call)
        return ended

    async def look(self, manifest: Manifest, generation: int, call: Call, evidence: Evidence) -> Looked:
        """The live tools that are registered. Raises Refusal."""
        deadline = min(call.last_end, asyncio.get_running_loop().time() + manifest.timeout_s)
        progress = _Progress(evidence)
        try:
            async with self._session(manifest, generation, call, deadline, progress, warm=manifest.warm) as session:
                listed = await session.list_tools(deadline=deadline, page_limit=manifest.page_limit)
                progress.heard(listed.response_bytes)
                live = by_name(listed.tools)
            found = {
                tool.tool_id: live_view(live[tool.mcp_name], tool, manifest.max_response_bytes)
                for tool in manifest.tools
                if tool.mcp_name in live
            }
        except NotStartedError as error:
            evidence.contacted = False
            raise not_started(manifest, call, error) from None
        except FAILURES as error:
            status, error_type = failure_of(error)
            evidence.status, evidence.error_type, evidence.response_bytes = status, error_type, progress.whole
            raise not_listed(manifest, call, status, error_type) from None
        evidence.status, evidence.response_bytes = "ok", progress.whole
        return Looked(found, progress.known)

    async def close(self) -> None:
        """End all sessions."""
        if self._opened is not None:
            await self._opened.close()

    async def _received(self, order: Order, call: Call, progress: _Progress, deadline: float) -> Received:
        manifest, tool = order.manifest, order.tool
        warm = order.warm and (not changes_something(tool) or tool.warm_mutation == "allow")
        async with self._session(manifest, order.generation, call, deadline, progress, warm=warm) as session:
            listed = await session.list_tools(deadline=deadline, page_limit=manifest.page_limit)
            progress.heard(listed.response_bytes)
            self._lists.check(manifest, tool, listed.tools, listed.raw)
            if order.stands is not None and not await order.stands():
                raise RegistrationChangedError
            received = await session.call_tool(tool.mcp_name, order.arguments, deadline=deadline, sent=progress.send)
            progress.heard(received.response_bytes)
            return received

    def _session(
        self, manifest: Manifest, generation: int, call: Call, deadline: float, progress: _Progress, *, warm: bool
    ) -> AbstractAsyncContextManager[Session]:
        return self._upstreams().session(
            manifest,
            generation=generation,
            secrets=secrets_of(manifest, self._environ),
            subject=call.caller.subject,
            deadline=deadline,
            warm=warm,
            contacted=progress.contact,
        )

    def _upstreams(self) -> Upstreams:
        if self._opened is None:
            from .upstreams import Upstreams  # it starts programs, and what that needs is slow to load

            self._opened = Upstreams()
        return self._opened


class _Progress:
    """How far a call has come."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._answers: list[int] = []
        self._asked = 1  # the list

    def contact(self) -> None:
        self._evidence.contacted = True

    def send(self) -> None:
        self._evidence.sent = True
        self._asked = 2

    def heard(self, size: int) -> None:
        self._answers.append(size)

    @property
    def known(self) -> int:
        """The bytes that came back, as far as they were counted."""
        return sum(self._answers)

    @property
    def whole(self) -> int | None:
        """The bytes that came back; None when an answer is missing that may have been on its way."""
        return self.known if len(self._answers) == self._asked else None


async def _read(received: Received, manifest: Manifest) -> Projected:
    most = manifest.max_response_bytes
    if received.response_bytes <= _SMALL_BYTES:
        return projected(received.result, most)
    return await asyncio.to_thread(projected, received.result, most)
