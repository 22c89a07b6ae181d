"""The SDK's client, and the person in front of it who may be asked."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from mcp import Client, StdioServerParameters, types
from mcp.client.stdio import stdio_client

from .places import SUBJECT, Place
from .replies import Reply
from .scripted import PATIENCE

Use = Callable[[Client], Awaitable[None]]


@dataclass(slots=True)
class Person:
    """Who is asked, and what was heard of it."""

    action: str = "accept"
    heard: list[types.ElicitRequestParams] = field(default_factory=list)

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.heard.append(params)
        assert isinstance(params, types.ElicitRequestFormParams)
        properties = params.requested_schema.get("properties", {})
        content = {name: True for name, schema in properties.items() if schema.get("type") == "boolean"}
        accepted = self.action == "accept"
        return types.ElicitResult.model_validate({"action": self.action, **({"content": content} if accepted else {})})


def reply(result: types.CallToolResult) -> Reply:
    return Reply.of({"result": result.model_dump(by_alias=True, exclude_none=True)})


def over_stdio(place: Place, era: str, person: Person | None, use: Use) -> None:
    """Use a client of this era, that was started with the server; without a person it says that it cannot ask."""
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "libos_mcp", *place.words, "--as", SUBJECT],
        env=place.variables,
        cwd=place.folder,
    )

    async def connected() -> None:
        with (place.folder / f"server-{era}.log").open("a") as log:
            async with Client(stdio_client(command, errlog=log), mode=era, elicitation_callback=person) as client:
                await asyncio.wait_for(use(client), PATIENCE)

    asyncio.run(connected())


def over_http(url: str, era: str, person: Person | None, use: Use) -> None:
    """The same over HTTP."""

    async def connected() -> None:
        async with Client(url, mode=era, elicitation_callback=person) as client:
            await asyncio.wait_for(use(client), PATIENCE)

    asyncio.run(connected())
