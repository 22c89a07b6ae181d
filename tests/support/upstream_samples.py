"""Manifests of upstreams for tests, and visits to them: open a session, list, call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from verbc.support.manifest import Manifest, read_manifest
from verbc.support.upstream_secrets import secrets_of
from verbc.support.upstream_session import Listed, Received, Session
from verbc.support.upstreams import Upstreams

from .programs import FOR_EVER
from .upstream_programs import COMMAND

TOOL = {
    "tool_id": "again",
    "mcp_name": "echo",
    "right": "read",
    "rollback_class": "no_rollback_required",
    "state_mutation": False,
    "information_flow": True,
}


def program(
    script: Mapping[str, Any] | None = None, *, stdio: Mapping[str, Any] | None = None, **fields: Any
) -> Manifest:
    """The manifest of a stub that runs a script; `stdio` are changes to its block, `fields` to the rest."""
    block = {"command": COMMAND[0], "args": [*COMMAND[1:], json.dumps(dict(script or {}))], **(stdio or {})}
    data = {"server_id": "stub", "transport": "stdio", "stdio": block, "tools": [TOOL], "warm": True, **fields}
    return read_manifest(data, ["*"])


def service(url: str, headers: Mapping[str, Any] | None = None, **fields: Any) -> Manifest:
    """The manifest of a server at an address of this machine."""
    block = {"url": url, "headers": dict(headers or {})}
    data = {"server_id": "stub", "transport": "streamable_http", "http": block, "tools": [TOOL], "warm": True, **fields}
    return read_manifest(data, ["*"])


@dataclass
class Visits:
    """The visits of a test to its upstreams, and what was told about them."""

    upstreams: Upstreams = field(default_factory=Upstreams)
    contacted: int = 0
    sent: int = 0

    @asynccontextmanager
    async def session(
        self,
        manifest: Manifest,
        *,
        warm: bool = False,
        subject: str = "me",
        generation: int = 1,
        environ: Mapping[str, str] | None = None,
        deadline: float | None = None,
    ) -> AsyncIterator[Session]:
        until = far() if deadline is None else deadline
        async with (
            self.upstreams.place(manifest, until),
            self.upstreams.session(
                manifest,
                generation=generation,
                secrets=secrets_of(manifest, environ or {}),
                subject=subject,
                deadline=until,
                warm=warm,
                contacted=self._contact,
            ) as session,
        ):
            yield session

    async def call(self, manifest: Manifest, arguments: Mapping[str, Any] | None = None, **options: Any) -> Received:
        """List and call in a session of its own."""
        async with self.session(manifest, **options) as session:
            await self.listed(session, manifest)
            return await self.called(session, arguments)

    async def seen(self, manifest: Manifest, **options: Any) -> dict[str, Any]:
        """What a stub says about itself when it is called."""
        found: dict[str, Any] = (await self.call(manifest, **options)).result["structuredContent"]
        return found

    async def listed(self, session: Session, manifest: Manifest) -> Listed:
        return await session.list_tools(deadline=far(), page_limit=manifest.page_limit)

    async def called(self, session: Session, arguments: Mapping[str, Any] | None = None) -> Received:
        return await session.call_tool("echo", arguments or {}, deadline=far(), sent=self._send)

    async def __aenter__(self) -> Visits:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.upstreams.close()
        for _turn in range(5):
            await asyncio.sleep(0)  # services of the same loop close their side a few turns later

    def _contact(self) -> None:
        self.contacted += 1

    def _send(self) -> None:
        self.sent += 1


def far() -> float:
    """A deadline that no test lives to see, unless it moves the clock."""
    return asyncio.get_running_loop().time() + FOR_EVER
