"""Which revisions of the protocol a server speaks with a client over stdio, and what it tells the others."""

from __future__ import annotations

import asyncio
import copy
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from verbc.support.protocols import Offer

from .http_processes import HANDLERS, varied
from .http_servers import CAPABILITIES, MODERN, NAMED, OLDER, initializing, listing, modern
from .raw_server import INITIALIZED, PATIENCE, RawServer
from .samples import DATA

MARK = "sub-mitted"
DISCOVER = {"jsonrpc": "2.0", "id": "d", "method": "server/discover"}


@pytest.fixture(scope="module")
def packages(package: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], Path]:
    """The package, by what it offers."""

    def offering(*revisions: str) -> Path:
        data = {**copy.deepcopy(DATA), "feedback": "shapes"}
        data["serve"]["protocols"] = list(revisions)
        return varied(package, tmp_path_factory.mktemp("offering"), data, HANDLERS)

    return {offer: offering(*offer) for offer in ((MODERN, OLDER), (OLDER,), (MODERN,), ("2025-11-25", "2025-03-26"))}


@pytest.mark.parametrize(
    ("offer", "mode", "settled"),
    [
        ((MODERN, OLDER), "legacy", OLDER),
        ((MODERN, OLDER), "auto", MODERN),
        ((OLDER,), "auto", OLDER),
        ((MODERN,), "auto", MODERN),
        ((MODERN,), MODERN, MODERN),
    ],
)
def test_the_sdks_client_settles_on_what_is_offered(
    packages: dict[tuple[str, ...], Path], offer: tuple[str, ...], mode: str, settled: str
) -> None:
    async def use() -> Any:
        parameters = StdioServerParameters(command=sys.executable, args=["-m", "sample_mcp"], cwd=packages[offer])
        async with asyncio.timeout(PATIENCE), Client(parameters, mode=mode) as client:
            return client.protocol_version, len((await client.list_tools()).tools)

    assert asyncio.run(use()) == (settled, 6)


@pytest.mark.parametrize(
    ("offer", "settled"),
    [
        ((MODERN, OLDER), {"2025-11-25": OLDER, OLDER: OLDER, "2024-11-05": OLDER, MODERN: OLDER, "junk": OLDER}),
        (("2025-11-25", "2025-03-26"), {OLDER: "2025-11-25", "2025-03-26": "2025-03-26", MODERN: "2025-11-25"}),
    ],
)
def test_a_handshake_settles_on_what_is_offered(
    packages: dict[tuple[str, ...], Path], tmp_path: Path, offer: tuple[str, ...], settled: dict[str, str]
) -> None:
    with RawServer(packages[offer], tmp_path) as server:
        for asked, revision in settled.items():
            server.send(initializing(asked), INITIALIZED, listing())
            assert server.receive()["result"]["protocolVersion"] == revision
            assert len(server.receive()["result"]["tools"]) == 6


def test_a_handshake_still_has_to_be_one(packages: dict[tuple[str, ...], Path], tmp_path: Path) -> None:
    wrong = initializing()
    wrong["params"]["protocolVersion"] = 7
    with RawServer(packages[(MODERN, OLDER)], tmp_path) as server:
        server.send(wrong, initializing())
        assert server.receive()["error"]["code"] == -32602
        assert server.receive()["result"]["protocolVersion"] == OLDER


def test_a_server_of_the_older_era_says_so_and_then_takes_a_handshake(
    packages: dict[tuple[str, ...], Path], tmp_path: Path
) -> None:
    with RawServer(packages[(OLDER,)], tmp_path) as server:
        for message in (modern(DISCOVER), modern(listing())):
            server.send(message)
            answer = server.receive()
            assert answer["id"] == message["id"]
            assert answer["error"]["code"] == -32022
            assert answer["error"]["data"] == {"supported": [OLDER], "requested": MODERN}
        server.send(initializing(), INITIALIZED, listing())
        assert server.receive()["result"]["protocolVersion"] == OLDER
        assert len(server.receive()["result"]["tools"]) == 6
        server.send(modern(listing(7)))
        assert server.receive()["error"]["code"] == -32022


def test_a_server_of_the_newer_era_says_so_and_then_takes_what_is_of_it(
    packages: dict[tuple[str, ...], Path], tmp_path: Path
) -> None:
    with RawServer(packages[(MODERN,)], tmp_path) as server:
        server.send(initializing())
        answer = server.receive()
        assert (answer["id"], answer["error"]["code"]) == (0, -32022)
        assert answer["error"]["data"] == {"supported": [MODERN], "requested": OLDER}
        server.send(listing())
        assert server.receive()["error"]["code"] == -32602
        server.send(modern(DISCOVER), modern(listing()))
        assert server.receive()["result"]["supportedVersions"] == [MODERN]
        assert len(server.receive()["result"]["tools"]) == 6
        server.send(initializing("2024-11-05"))
        assert server.receive()["error"]["data"]["supported"] == [MODERN]


def test_a_revision_that_is_not_offered_is_told_without_what_was_sent(
    packages: dict[tuple[str, ...], Path], tmp_path: Path
) -> None:
    revisions: list[Any] = ["2099-01-01", OLDER, "", MARK, 7, None, {MARK: 1}, [MARK]]
    with RawServer(packages[(MODERN, OLDER)], tmp_path) as server:
        for revision in revisions:
            server.send({**DISCOVER, "params": {"_meta": {NAMED: revision, CAPABILITIES: {}}}})
            error = server.receive()["error"]
            assert error["code"] == -32022
            told = revision if revision in revisions[:2] else "*"
            assert error["data"] == {"supported": [MODERN, OLDER], "requested": told}
        server.send(modern(DISCOVER))
        assert server.receive()["result"]["supportedVersions"] == [MODERN, OLDER]


@pytest.mark.parametrize(
    ("requested", "names", "told"),
    [
        ("2099-01-01", False, "2099-01-01"),
        ("v999.0.0", False, "*"),
        ("v999.0.0", True, "v999.0.0"),
        ("x" * 64, True, "x" * 64),
        ("x" * 65, True, "*"),
        ("a b", True, "*"),
        ("\u202e", True, "*"),
        ("2099-01-01\n", False, "*"),
        ("", True, "*"),
        (None, True, "*"),
        (7, True, "*"),
    ],
)
def test_what_was_asked_for_is_only_told_where_names_are(requested: Any, names: bool, told: str) -> None:
    error = Offer((MODERN, OLDER), names).unsupported(requested)
    assert error.data == {"supported": [MODERN, OLDER], "requested": told}
