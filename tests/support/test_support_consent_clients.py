"""The SDK's own client asks its user: over stdio in both eras, and over HTTP, where several processes may answer."""

from __future__ import annotations

import asyncio
import copy
import os
import secrets
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client import ClientRequestContext
from mcp.client.stdio import StdioServerParameters
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult

from verbc.support import http_app
from verbc.support.client_consent import ClientConsents
from verbc.support.http_direct import DirectCalls
from verbc.support.registry import Registry
from verbc.support.server_mcp import build_server

from . import http_servers, kept_approvals
from .clients import structured
from .http_processes import HttpProcess, varied
from .http_servers import CAPABILITIES, MODERN, OLDER, HttpThread, Reply, calling, modern, post
from .kept_approvals import ASKED, KeptApprovals
from .raw_server import PATIENCE
from .samples import DATA

ARGUMENTS = {"id": "a"}
FOLDER = "APPROVALS"
VARIABLE = "SAMPLE_MCP_STATE_KEYS"
EXPECTED = {"accept": (None, ["used"]), "decline": ("denied", ["rejected"]), "cancel": ("pending", ["pending"])}

SERVER = """
import os
from pathlib import Path

from ._support.backend_python import PythonBackend
from ._support.binding import Bindings
from ._support.call import LOCAL
from ._support.client_consent import ClientConsents
from ._support.registry import load
from ._support.server_mcp import build_server
from .approvals import KeptApprovals


def create_server(*, surface=None, caller=LOCAL):
    registry = load(Path(__file__).with_name("registry.json"))
    backend = PythonBackend(Bindings("sample_mcp.verbs"), load_local)
    approvals = KeptApprovals(Path(os.environ["APPROVALS"]))
    return build_server(registry, {"local": backend}, surface, caller, approvals, ClientConsents(registry))


def load_local():
    from .handlers import Handlers

    return Handlers()
"""
HANDLERS = """
import os


class Handlers:
    async def item_show(self, params, call):
        return {"id": params.id, "size": os.getpid()}
"""


@pytest.fixture(scope="module")
def served(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with approvals; it tells which process has run a call."""
    folder = varied(package, tmp_path_factory.mktemp("served"), copy.deepcopy(DATA), HANDLERS)
    text = Path(kept_approvals.__file__).read_text(encoding="utf-8")
    own = text.replace("from verbc.support.", "from ._support.")
    assert own != text
    (folder / "sample_mcp" / "approvals.py").write_text(own, encoding="utf-8")
    (folder / "sample_mcp" / "server.py").write_text(SERVER, encoding="utf-8")
    return folder


@pytest.fixture
def approvals(tmp_path: Path) -> KeptApprovals:
    return KeptApprovals(tmp_path)


def environment(approvals: KeptApprovals, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != VARIABLE}
    return {**kept, FOLDER: str(approvals.folder), **more}


def serving(registry: Registry, approvals: KeptApprovals, replies: str = "json") -> HttpThread:
    """A server over HTTP that asks."""
    asking_server = partial(build_server, governing=approvals, consents=ClientConsents(registry, {}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_servers, "build_server", asking_server)
        return HttpThread(registry, replies=replies)


def with_client(server: Any, era: str, answer: str, use: Callable[[Client], Awaitable[Any]]) -> tuple[Any, int]:
    """What `use` makes of a client whose user gives this answer, and how often he was asked."""
    asked: list[ElicitRequestParams] = []

    async def person(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params)
        return ElicitResult.model_validate({"action": answer})

    async def connected() -> Any:
        async with asyncio.timeout(PATIENCE), Client(server, mode=era, elicitation_callback=person) as client:
            return await use(client)

    return asyncio.run(connected()), len(asked)


async def ask(client: Client) -> CallToolResult:
    return await client.call_tool(ASKED, ARGUMENTS)


def kind(result: CallToolResult) -> str | None:
    """The kind of a refusal, None for a result."""
    error = structured(result).get("error", {"kind": None})
    return None if error["kind"] is None else str(error["kind"])


@pytest.mark.parametrize("answer", EXPECTED)
@pytest.mark.parametrize("era", ["legacy", "auto", MODERN])
def test_over_stdio(served: Path, approvals: KeptApprovals, era: str, answer: str) -> None:
    process = StdioServerParameters(
        command=sys.executable, args=["-m", "sample_mcp"], env=environment(approvals), cwd=served
    )
    result, asked = with_client(process, era, answer, ask)
    assert (kind(result), approvals.states) == EXPECTED[answer]
    assert asked == 1


def test_over_stdio_other_calls_go_on_while_somebody_is_asked(served: Path, approvals: KeptApprovals) -> None:
    """In the older era the call waits in the server, and the person may take his time."""

    async def person(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        begun.set()
        await listed.wait()
        return ElicitResult(action="accept")

    async def use() -> Any:
        async with asyncio.timeout(PATIENCE), Client(process, mode="legacy", elicitation_callback=person) as client:
            calling = asyncio.create_task(ask(client))
            await begun.wait()
            assert len((await client.list_tools()).tools) == 6
            listed.set()
            return await calling

    begun, listed = asyncio.Event(), asyncio.Event()
    process = StdioServerParameters(
        command=sys.executable, args=["-m", "sample_mcp"], env=environment(approvals), cwd=served
    )
    assert kind(asyncio.run(use())) is None
    assert approvals.states == ["used"]


@pytest.mark.parametrize("answer", EXPECTED)
@pytest.mark.parametrize("replies", ["json", "stream"])
@pytest.mark.parametrize("era", ["auto", MODERN])
def test_over_http_in_the_newer_era(
    registry: Registry, approvals: KeptApprovals, era: str, replies: str, answer: str
) -> None:
    with serving(registry, approvals, replies) as server:
        result, asked = with_client(server.url, era, answer, ask)
    assert (kind(result), approvals.states) == EXPECTED[answer]
    assert asked == 1


@pytest.mark.parametrize("replies", ["json", "stream"])
def test_over_http_in_the_older_era_nobody_is_asked(registry: Registry, approvals: KeptApprovals, replies: str) -> None:
    with serving(registry, approvals, replies) as server:
        result, asked = with_client(server.url, "legacy", "accept", ask)
    assert (kind(result), approvals.states, asked) == ("pending", ["pending"], 0)


def asking(capabilities: Any, item: str = "a", **params: Any) -> bytes:
    """A call of the newer era from a client with these capabilities."""
    message = modern(calling(ASKED, {"id": item}))
    message["params"].update(params)
    message["params"]["_meta"][CAPABILITIES] = capabilities
    return post(message, revision=MODERN)


FORMS: dict[str, Any] = {"elicitation": {}}


@pytest.mark.parametrize("replies", ["json", "stream"])
@pytest.mark.parametrize(
    ("capabilities", "asked"),
    [
        ({}, False),
        (FORMS, True),
        ({"elicitation": {"form": {}}}, True),
        ({"elicitation": {"form": {}, "url": {}}}, True),
        ({"elicitation": {"url": {}}}, False),
    ],
)
def test_only_clients_that_can_show_a_form_are_asked(
    registry: Registry, approvals: KeptApprovals, replies: str, capabilities: Any, asked: bool
) -> None:
    with serving(registry, approvals, replies) as server:
        result = server.exchange(asking(capabilities)).result
    assert result["resultType"] == ("input_required" if asked else "complete")
    assert ("requestState" in result) is asked


def test_over_http_without_an_era_of_its_own_nobody_is_asked(registry: Registry, approvals: KeptApprovals) -> None:
    """A client of the older era cannot answer, whatever it sends along."""
    message = calling(ASKED, ARGUMENTS)
    message["params"] |= {"requestState": "x", "inputResponses": {"approval": {"action": "accept"}}}
    with serving(registry, approvals) as server:
        result = server.post(message, revision=OLDER).result
    assert result["structuredContent"]["error"]["kind"] == "pending"


def answered(first: Reply) -> dict[str, Any]:
    """What a call is sent again with, after a person has said yes."""
    result = first.result
    (key,) = result["inputRequests"]
    return {"requestState": result["requestState"], "inputResponses": {key: {"action": "accept"}}}


@pytest.mark.parametrize("direct", [True, False])
def test_what_is_asked_and_answered_goes_straight_to_the_sdk(
    registry: Registry, approvals: KeptApprovals, direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the SDK's own transport would say the same."""
    ways: list[bool] = []

    class Noting(DirectCalls):
        async def answer(self, *request: Any) -> bool:
            ways.append(direct and await super().answer(*request))
            return ways[-1]

    monkeypatch.setattr(http_app, "DirectCalls", Noting)
    with serving(registry, approvals) as server:
        first = server.exchange(asking(FORMS))
        second = server.exchange(asking(FORMS, **answered(first)))
    assert set(first.result) == {"_meta", "inputRequests", "requestState", "resultType"}
    assert (first.result["resultType"], second.result["structuredContent"]) == ("input_required", ARGUMENTS)
    assert ways == [direct, direct]


def test_each_of_several_processes_takes_the_answer(served: Path, approvals: KeptApprovals) -> None:
    """Without keys as well, since they come from one process."""
    items = [str(number) for number in range(20)]
    with HttpProcess(served, "--http", "--workers", "2", environment=environment(approvals)) as server:

        def each(requests: list[bytes]) -> list[Reply]:
            """The replies, over connections that are open at the same time, so that no process has them all."""
            connections = [server.connect() for _ in requests]
            for connection, request in zip(connections, requests, strict=True):
                connection.send(request)
            replies = [connection.reply() for connection in connections]
            for connection in connections:
                connection.close()
            return replies

        asked = each([asking(FORMS, item) for item in items])
        again = [asking(FORMS, item, **answered(reply)) for item, reply in zip(items, asked, strict=True)]
        ran = [reply.result["structuredContent"] for reply in each(again)]
    assert [result["id"] for result in ran] == items
    assert len({result["size"] for result in ran}) == 2
    assert approvals.states == ["used"] * len(items)


@pytest.mark.parametrize("same", [True, False])
def test_servers_of_their_own_take_the_answer_where_they_have_the_same_keys(
    served: Path, approvals: KeptApprovals, same: bool
) -> None:
    key, other = secrets.token_hex(32), secrets.token_hex(32)
    ring = {VARIABLE: f"{other},{key}"} if same else {}
    with (
        HttpProcess(served, "--http", environment=environment(approvals, **{VARIABLE: key})) as one,
        HttpProcess(served, "--http", environment=environment(approvals, **ring)) as two,
    ):
        with one.connect() as connection:
            first = connection.exchange(asking(FORMS))
        with two.connect() as connection:
            result = connection.exchange(asking(FORMS, **answered(first))).result
    assert result["isError"] is not same
    if not same:
        assert result["structuredContent"]["error"]["kind"] == "invalid_input"
    assert approvals.states == (["used"] if same else ["pending"])
