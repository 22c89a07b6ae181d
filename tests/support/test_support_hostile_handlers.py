"""Handlers that do what none should: each harms its own call at most, and the server answers, and ends, as ever."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .raw_server import PATIENCE, RawServer, calling

HANDLERS = '''
import asyncio
import os
from contextlib import suppress
from pathlib import Path

from ._support import bounded_work

bounded_work.GRACE_SECONDS = 0.2


class PanicError(BaseException):
    """Such as native code raises."""


ERRORS = {
    error.__name__: error
    for error in (PanicError, GeneratorExit, KeyboardInterrupt, SystemExit, StopIteration, asyncio.CancelledError)
}


class Handlers:
    async def item_show(self, params, call):
        if params.id in ("nan", "text"):
            await call.progress({"nan": float("nan"), "text": "abc"}[params.id])
        return {"id": params.id}

    async def item_names(self, call):
        print("x" * 200_000)
        os.write(1, b"raw\\n")
        return ["a"]

    async def free(self, call):
        """Swallows every cancellation."""
        Path(os.environ["TRACE"]).write_text("started")
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    async def spawn(self, params, call):
        raise ERRORS[params.query[0]]("secret")

    async def play(self, params, call):
        deep(60)

    def params_for_playbook(self, value, call):
        return {}


def deep(left):
    try:
        if left:
            deep(left - 1)
        raise ValueError("secret")
    except ValueError as error:
        raise ValueError("secret") from error
'''
MODELS = "class Open(BaseModel):\n    query: list[str] = []\n"


@pytest.fixture(scope="module")
def hostile(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample package over these handlers."""
    folder = tmp_path_factory.mktemp("hostile")
    root = folder / "sample_mcp"
    shutil.copytree(package / "sample_mcp", root, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "handlers.py").write_text(HANDLERS, encoding="utf-8")
    verbs = root / "verbs" / "sample.py"
    verbs.write_text(verbs.read_text(encoding="utf-8").replace("class Open(BaseModel):\n", MODELS), encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def impatience() -> Iterator[None]:
    """A server that does not answer fails its test instead of stopping all of them."""

    def give_up(*_: object) -> None:
        raise AssertionError("the server does not answer")

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(int(PATIENCE))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


@pytest.fixture
def server(hostile: Path, tmp_path: Path) -> Iterator[RawServer]:
    with RawServer(hostile, tmp_path) as running:
        yield running.handshake()


def ask(server: RawServer, tool: str, arguments: Any = None, **meta: Any) -> Any:
    server.send(calling(1, tool, arguments, **meta))
    return server.receive()["result"]["structuredContent"]


@pytest.mark.parametrize(
    "error", ["CancelledError", "PanicError", "GeneratorExit", "KeyboardInterrupt", "SystemExit", "StopIteration"]
)
def test_whatever_is_raised_is_the_fault_of_one_call(server: RawServer, error: str) -> None:
    assert ask(server, "spawn", {"query": [error]})["error"]["kind"] == "internal"
    assert ask(server, "item.show", {"id": "a"}) == {"id": "a"}
    server.stdin.close()
    assert server.ended() == 0
    (entry,) = map(json.loads, server.errors().splitlines())
    assert (entry["event"], entry["verb"]) == ("a call failed", "spawn")
    assert "secret" not in json.dumps(entry)


@pytest.mark.parametrize("progress", ["nan", "text"])
def test_progress_that_is_no_number_is_not_sent(server: RawServer, progress: str) -> None:
    assert ask(server, "item.show", {"id": progress}, progressToken=1)["error"]["kind"] == "internal"


@pytest.mark.parametrize("how", ["eof", "SIGTERM"])
def test_a_handler_that_swallows_cancellation_keeps_nothing_alive(server: RawServer, how: str) -> None:
    server.send(calling(2, "free"))
    server.until_traced("started")
    if how == "eof":
        server.stdin.close()
    else:
        server.process.send_signal(signal.Signals[how])
    assert server.process.wait(PATIENCE / 2) == 0


def test_a_stderr_that_nobody_reads_holds_up_nothing(hostile: Path, tmp_path: Path) -> None:
    unread, stderr = os.pipe()
    try:
        with RawServer(hostile, tmp_path, stderr=stderr) as server:
            server.handshake()
            for _ in range(60):
                assert ask(server, "play", {"playbook": "a"})["error"]["kind"] == "internal"
            assert ask(server, "item.names") == {"result": ["a"]}
            assert ask(server, "item.show", {"id": "a"}) == {"id": "a"}
            server.stdin.close()
            assert server.ended() == 0
    finally:
        os.close(unread)
        os.close(stderr)
