"""A server over real pipes, with all that a client can do to it."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.warm_starts import start

from .raw_server import INITIALIZE, INITIALIZED, PATIENCE, RawServer, calling

PING = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}
BODY = 65536


@pytest.fixture(autouse=True)
def impatience() -> Iterator[None]:
    """A server that does not answer fails its test instead of stopping all of them."""

    def give_up(*_: object) -> None:
        raise AssertionError("the server does not answer")

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(int(2 * PATIENCE))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


@pytest.fixture
def server(package: Path, tmp_path: Path) -> Iterator[RawServer]:
    """A server of the test's own, which it may end."""
    with RawServer(package, tmp_path) as running:
        yield running.handshake()


@pytest.fixture(scope="module")
def shared(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawServer]:
    """A server that lives on, and that each test leaves without anything to answer."""
    with RawServer(package, tmp_path_factory.mktemp("shared")) as running:
        yield running.handshake()


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_the_sdks_client_is_served(package: Path, era: str) -> None:
    async def use() -> Any:
        parameters = StdioServerParameters(command=sys.executable, args=["-m", "sample_mcp"], cwd=package)
        async with Client(parameters, mode=era) as client:
            listed = await client.list_tools()
            result = await client.call_tool("item.show", {"id": "a", "count": 7})
            refused = await client.call_tool("item.show", {"id": ""})
            return len(listed.tools), result.structured_content, refused.is_error

    assert asyncio.run(use()) == (6, {"id": "a", "size": 7}, True)


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"garbage", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"', -32700, None),
        (b"\xff\xfe", -32700, None),
        (b"\xef\xbb\xbf{}", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"a":2}}', -32700, 1),
        (b'{"jsonrpc":"2.0","id":"x","method":"ping","params":{"a":"\\ud800"}}', -32700, "x"),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', -32700, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1e999}}', -32700, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"1" * 5000 + b"}}", -32700, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * 100 + b"]" * 100 + b"}}", -32700, 1),
        (b'{"jsonrpc":"2.0","id":' + b"1" * 5000 + b',"method":"ping"}', -32700, None),
        (b"[" * 30000 + b"]" * 30000, -32700, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b"7", -32600, None),
        (b"{}", -32600, None),
        (b'{"jsonrpc":"2.0","id":1}', -32600, 1),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, 1),
        (b'{"id":1,"method":"ping"}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32600, 1),
        (b'{"jsonrpc":"2.0","method":7}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"nope"}', -32601, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"free","arguments":[]}}', -32602, 1),
        (b" " * (BODY + 1), -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","a":"' + b"x" * 3 * BODY + b'"}', -32600, None),
    ],
)
def test_what_is_no_request_is_answered(shared: RawServer, line: bytes, code: int, request_id: Any) -> None:
    shared.send(line + b"\n", PING)
    answer = shared.receive()
    assert (answer["error"]["code"], answer["id"]) == (code, request_id)
    assert "pydantic" not in json.dumps(answer)
    assert "nope" not in json.dumps(answer)
    assert shared.receive() == {"jsonrpc": "2.0", "id": "ping", "result": {}}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"  \t\r",
        b'{"jsonrpc":"2.0","method":"notifications/unknown"}',
        b'{"jsonrpc":"2.0","id":9,"result":{}}',
        b'{"jsonrpc":"2.0","id":9,"result":7}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}',
    ],
)
def test_what_wants_no_answer_gets_none(shared: RawServer, line: bytes) -> None:
    shared.send(line + b"\n", PING)
    assert shared.receive()["id"] == "ping"


def test_a_message_of_just_the_limit_is_taken(shared: RawServer) -> None:
    text = json.dumps(calling(1, "item.show", {"id": "a"})).encode()
    shared.send(text + b" " * (BODY - len(text)) + b"\n")
    assert shared.receive()["result"]["structuredContent"] == {"id": "a", "size": 1}


def test_a_message_may_come_in_pieces_and_without_an_end(server: RawServer) -> None:
    text = json.dumps(PING).encode()
    for byte in text[:-1]:
        server.send(bytes([byte]))
    server.send(text[-1:])
    server.stdin.close()
    assert server.receive()["id"] == "ping"


def test_deep_arguments_get_the_answer_of_their_verb(shared: RawServer) -> None:
    deep: Any = []
    for _ in range(66):
        deep = [deep]
    shared.send(calling(1, "item.show", {"id": deep}))
    error = shared.receive()["result"]["structuredContent"]["error"]
    assert error["message"] == "the arguments object is nested too deeply"


def test_numbers_arrive_in_their_one_form(shared: RawServer) -> None:
    shared.send(b'{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"item.show",')
    shared.send(b'"arguments":{"id":"a","count":7.0}}}\n')
    answer = shared.receive()
    assert (answer["id"], answer["result"]["structuredContent"]) == (1, {"id": "a", "size": 7})


def test_stray_output_does_not_touch_the_wire(server: RawServer) -> None:
    server.send(calling(1, "item.show", {"id": "a"}))
    assert server.receive()["id"] == 1
    server.stdin.close()
    assert server.receive() is None
    assert server.ended() == 0
    for stray in ("a print at import", "a stray print", "from a child"):
        assert stray in server.errors()


def test_many_requests_at_once_are_all_answered(shared: RawServer) -> None:
    shared.send(*(calling(number, "item.show", {"id": "a"}) for number in range(600)))
    assert sorted(shared.receive()["id"] for _ in range(600)) == list(range(600))


def test_a_cancelled_request_is_ended_and_not_answered(shared: RawServer) -> None:
    shared.send(calling(1, "free"))
    shared.until_traced("started")
    shared.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    shared.until_traced("cleaned up")


# How it ends


def end(server: RawServer, how: str) -> None:
    if how == "eof":
        server.stdin.close()
    else:
        server.process.send_signal(signal.Signals[how])


@pytest.mark.parametrize("how", ["eof", "SIGTERM", "SIGINT", "SIGHUP"])
def test_what_runs_is_cancelled_and_cleaned_up_at_the_end(server: RawServer, how: str) -> None:
    server.send(calling(1, "free"))
    server.until_traced("started")
    end(server, how)
    assert server.ended() == 0
    assert server.trace.read_text() == "cleaned up"
    assert "Traceback" not in server.errors()


def test_a_hang_up_that_is_ignored_from_the_start_stays_so(package: Path, tmp_path: Path) -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        started = RawServer(package, tmp_path)
    finally:
        signal.signal(signal.SIGHUP, previous)
    with started as server:
        server.handshake()
        end(server, "SIGHUP")
        server.send(PING)
        assert server.receive()["id"] == "ping"
        server.stdin.close()
        assert server.ended() == 0


@pytest.mark.parametrize("how", ["eof", "SIGTERM"])
def test_a_thread_that_cannot_be_cancelled_keeps_nothing_alive(server: RawServer, how: str) -> None:
    server.send(calling(1, "spawn"))
    server.until_traced("started")
    end(server, how)
    assert server.process.wait(30) == 0  # the thread would take 60 seconds


@pytest.mark.parametrize("how", ["eof", "SIGTERM"])
def test_it_ends_before_the_first_message_too(package: Path, tmp_path: Path, how: str) -> None:
    with RawServer(package, tmp_path) as server:
        server.send(b"garbage\n")
        assert server.receive()["error"]["code"] == -32700  # it is up
        end(server, how)
        assert server.ended() == 0


def test_answers_that_are_ready_still_go_out_at_the_end(package: Path) -> None:
    lines = b"".join(
        json.dumps(message).encode() + b"\n"
        for message in (INITIALIZE, INITIALIZED, calling(1, "item.show", {"id": "a"}), PING)
    )
    finished = subprocess.run(
        [sys.executable, "-m", "sample_mcp"],
        cwd=package,
        input=lines,
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    answers = [json.loads(line) for line in finished.stdout.splitlines()]
    assert {answer["id"] for answer in answers if "result" in answer} == {0, 1, "ping"}


def test_a_client_that_stops_reading_stops_the_server_reading(server: RawServer) -> None:
    os.set_blocking(server.stdin.fileno(), False)
    line = json.dumps(calling(1, "play", {"playbook": "a"})).encode() + b"\n"
    sent = 0
    while takes_more(server):
        sent += os.write(server.stdin.fileno(), line[sent % len(line) :])
        assert sent < 100_000 * len(line)
    assert resident_bytes(server.process.pid) < 300_000_000
    os.set_blocking(server.stdin.fileno(), True)
    assert server.receive()["result"]["content"][0]["text"] == "x" * 50_000


def takes_more(server: RawServer) -> bool:
    """Whether the server goes on reading; one that takes nothing for three seconds does not."""
    return bool(select.select([], [server.stdin], [], 3)[1])


def resident_bytes(pid: int) -> int:
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def test_a_client_that_neither_reads_nor_writes_any_more_is_left(server: RawServer) -> None:
    server.send(*(calling(number, "play", {"playbook": "a"}) for number in range(300)))
    server.stdin.close()
    assert server.ended() == 0


def test_a_client_that_floods_with_garbage_and_leaves_is_left(server: RawServer) -> None:
    os.set_blocking(server.stdin.fileno(), False)
    while takes_more(server):
        os.write(server.stdin.fileno(), b"garbage\n" * 512)
    server.stdin.close()
    assert server.ended() == 0


def test_a_client_that_closes_the_servers_output_is_left(server: RawServer) -> None:
    server.stdout.close()
    server.send(calling(1, "play", {"playbook": "a"}))
    assert server.ended() == 0


# What stands at the other side


def test_files_can_stand_for_pipes(package: Path, tmp_path: Path) -> None:
    script = tmp_path / "in"
    script.write_bytes(b"".join(json.dumps(message).encode() + b"\n" for message in (INITIALIZE, INITIALIZED, PING)))
    with script.open("rb") as source, (tmp_path / "out").open("wb") as sink:
        assert start(["-m", "sample_mcp"], cwd=package, stdin=source, stdout=sink).wait(PATIENCE) == 0
    answers = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert [answer["id"] for answer in answers] == [0, "ping"]


def test_an_empty_input_ends_it_at_once(package: Path) -> None:
    command = [sys.executable, "-m", "sample_mcp"]
    finished = subprocess.run(command, cwd=package, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
    assert (finished.returncode, finished.stdout) == (0, b"")


def test_a_socket_can_stand_for_pipes(package: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, ours.makefile("rb") as lines:
        process = start(
            ["-m", "sample_mcp"],
            cwd=package,
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        for message in (INITIALIZE, INITIALIZED, PING):
            ours.sendall(json.dumps(message).encode() + b"\n")
        assert [json.loads(lines.readline())["id"] for _ in range(2)] == [0, "ping"]
        ours.shutdown(socket.SHUT_WR)
        assert process.wait(PATIENCE) == 0


def test_a_terminal_can_stand_for_the_input(package: Path) -> None:
    controlling, terminal = os.openpty()
    with os.fdopen(terminal, "rb") as stdin, os.fdopen(controlling, "wb", buffering=0) as keyboard:
        process = start(
            ["-m", "sample_mcp"], cwd=package, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert process.stdout is not None
        with process.stdout:
            keyboard.write(json.dumps(PING).encode() + b"\n")
            assert json.loads(process.stdout.readline())["id"] == "ping"
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
