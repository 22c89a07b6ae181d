"""Clients that are slow, or many, or that keep their connections: what each of them gets, and for how long."""

from __future__ import annotations

import asyncio
import copy
import json
import resource
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from verbc.support import http_connections
from verbc.support.call import Call
from verbc.support.http_connections import most_connections
from verbc.support.registry import from_data

from .http_servers import MODERN, OLDER, HttpThread, calling, listing, modern, post, until_refused
from .raw_server import PATIENCE
from .samples import DATA

BODY = json.dumps(listing()).encode()


@pytest.fixture
def server() -> Iterator[HttpThread]:
    with HttpThread(from_data(copy.deepcopy(DATA))) as running:
        yield running


def head(size: int, *lines: str) -> bytes:
    return post(b"", f"Content-Length: {size}", *lines, without=["content-length"])


def test_a_connection_is_kept(server: HttpThread) -> None:
    with server.connect() as connection:
        for request in (
            post(listing()),
            post(listing(), "Origin: null"),
            post(b"{"),
            post(modern(listing()), revision=MODERN),
        ):
            assert connection.exchange(request).header("connection") is None
        assert connection.exchange(post(listing())).status == 200


def test_answers_are_sent_at_once(server: HttpThread) -> None:
    with server.connect() as connection:
        assert connection.exchange(post(listing())).status == 200
        (held,) = server.server.server_state.connections
        accepted = held.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_a_connection_is_closed_where_the_client_wants_it(server: HttpThread) -> None:
    with server.connect() as connection:
        assert connection.exchange(post(listing(), "Connection: close")).header("connection") == "close"
        assert connection.is_over()


def test_requests_may_come_before_the_answers(server: HttpThread) -> None:
    with server.connect() as connection:
        connection.send(post(listing(1)) + post(listing(2), "Origin: null") + post(listing(3)))
        assert connection.reply().json["id"] == 1
        assert connection.reply().status == 403
        assert connection.reply().json["id"] == 3


def test_a_connection_without_anything_to_do_is_closed(server: HttpThread) -> None:
    with server.connect() as connection:
        assert connection.exchange(post(listing())).status == 200
        server.move_clock(59)
        assert connection.exchange(post(listing())).status == 200
        server.move_clock(61)
        assert connection.is_over()


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HT", post(listing())[:60]])
def test_a_head_that_does_not_come_is_not_waited_for(server: HttpThread, sent: bytes) -> None:
    with server.connect() as connection:
        connection.send(sent)
        server.turn()
        server.move_clock(11)
        assert connection.is_over()


def test_more_of_a_head_gives_it_no_more_time(server: HttpThread) -> None:
    with server.connect() as connection:
        for byte in (b"P", b"O", b"S"):
            connection.send(byte)
            server.turn()
            server.move_clock(4)
        assert connection.is_over()


def test_the_second_head_of_a_connection_has_its_time_too(server: HttpThread) -> None:
    with server.connect() as connection:
        assert connection.exchange(post(listing())).status == 200
        connection.send(b"POST")
        server.turn()
        server.move_clock(11)
        assert connection.is_over()


@pytest.mark.parametrize("chunks", [None, [1]])
def test_a_body_that_does_not_come_is_not_waited_for(server: HttpThread, chunks: list[int] | None) -> None:
    request = post(listing(), chunks=chunks)
    with server.connect() as connection:
        connection.send(request[:-20])
        server.turn()
        server.move_clock(11)
        server.turn()
        connection.send(request[-20:-10])
        server.turn()
        server.move_clock(20)
        assert connection.is_over()


def test_a_body_that_comes_in_time_is_read(server: HttpThread) -> None:
    with server.connect() as connection:
        connection.send(head(len(BODY)))
        for byte in BODY[:3]:
            connection.send(bytes([byte]))
            server.turn()
            server.move_clock(9)
        connection.send(BODY[3:])
        assert connection.reply().status == 200
        server.move_clock(40)
        assert connection.exchange(post(listing())).status == 200


def test_the_rest_of_a_refused_body_is_not_waited_for_long(server: HttpThread) -> None:
    with server.connect() as connection:
        connection.send(head(len(BODY), "Origin: null"))
        assert connection.reply().status == 403
        connection.send(BODY[:-1])
        server.turn()
        server.move_clock(6)
        assert connection.is_over()


def test_a_refused_body_that_comes_is_passed_over(server: HttpThread) -> None:
    with server.connect() as connection:
        assert connection.exchange(post(b"x" * 1_000_000)).status == 413
        assert connection.exchange(post(listing())).status == 200


@pytest.fixture
def held() -> Iterator[tuple[HttpThread, threading.Event, threading.Event]]:
    """A server with a call that has begun once the first event is set, and ends with the second."""
    started, go_on = threading.Event(), threading.Event()

    async def work(call: Call) -> Any:
        started.set()
        await asyncio.to_thread(go_on.wait, PATIENCE)
        return {}

    with HttpThread(from_data(with_timeout(10_000)), works={"free": work}) as running:
        try:
            yield running, started, go_on
        finally:
            go_on.set()


def test_work_takes_its_time_while_the_client_waits(
    held: tuple[HttpThread, threading.Event, threading.Event],
) -> None:
    server, started, go_on = held
    with server.connect() as connection:
        connection.send(post(calling("free")))
        assert started.wait(PATIENCE)
        server.move_clock(3000)
        server.turn()
        go_on.set()
        assert connection.reply().status == 200


def until_it_ends(server: HttpThread) -> None:
    """Tell it to end, and wait until it takes nobody new."""
    server.stop()
    until_refused(server.port)


@pytest.mark.parametrize("chunks", [None, [1]])
def test_who_is_still_sending_when_the_server_ends_is_not_waited_for(
    held: tuple[HttpThread, threading.Event, threading.Event], chunks: list[int] | None
) -> None:
    server, started, go_on = held
    with server.connect() as working, server.connect() as half, server.connect() as refused, server.connect() as head:
        working.send(post(calling("free")))
        assert started.wait(PATIENCE)
        half.send(post(listing(), chunks=chunks)[:-3])
        refused.send(post(listing(), "Origin: null", chunks=chunks)[:-3])
        assert refused.reply().status == 403
        head.send(b"POST /mcp HT")
        server.turn()
        until_it_ends(server)
        for connection in (half, refused, head):
            assert connection.is_over()
        go_on.set()  # what is worked on still has its time
        assert working.reply().status == 200


def test_a_request_that_is_nearly_there_when_the_server_ends_is_answered(
    server: HttpThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connections, "_LAST_SECONDS", 2 * PATIENCE)
    request = post(listing())
    with server.connect() as connection:
        connection.send(request[:-1])
        server.turn()
        until_it_ends(server)
        connection.send(request[-1:])
        assert connection.reply().status == 200
        assert connection.is_over()


def with_timeout(seconds: float) -> dict[str, Any]:
    data = copy.deepcopy(DATA)
    for verb in data["verbs"]:
        verb["limits"]["timeout"] = seconds
    return data


def test_there_is_an_end_to_how_many_are_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connections, "most_connections", lambda: 3)
    with HttpThread(from_data(copy.deepcopy(DATA))) as server:
        held = [server.connect() for _ in range(3)]
        for connection in held:
            assert connection.exchange(post(listing())).status == 200
        with server.connect() as one_more:
            reply = one_more.reply()
            assert (reply.status, reply.header("connection")) == (503, "close")
            assert one_more.is_over()
        assert held[0].exchange(post(listing())).status == 200
        held.pop().close()
        while server.connections > 2:  # the others are served meanwhile
            assert held[0].exchange(post(listing())).status == 200
        with server.connect() as next_one:
            assert next_one.exchange(post(listing())).status == 200
        for connection in held:
            connection.close()


def test_there_are_never_more_than_the_files_of_the_process_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, most in ((256, 128), (1024, 512), (1 << 20, 1000), (resource.RLIM_INFINITY, 1000)):
        monkeypatch.setattr(resource, "getrlimit", lambda _kind, limit=limit: (limit, limit))
        assert most_connections() == most


# More than what the system keeps for both sides of a connection.
LARGE = "x" * 16_000_000


@pytest.fixture
def talking() -> Iterator[HttpThread]:
    async def work(call: Call) -> Any:
        return LARGE

    data = copy.deepcopy(DATA)
    for verb in data["verbs"]:
        verb["limits"]["output"] = 2 * len(LARGE)
    with HttpThread(from_data(data), works={"free": work}) as running:
        yield running


@pytest.mark.parametrize("era", [OLDER, MODERN])
def test_a_client_that_does_not_read_is_cut_off(talking: HttpThread, era: str) -> None:
    message = modern(calling("free")) if era == MODERN else calling("free")
    with talking.connect(receive_buffer=4096) as connection:
        connection.send(post(message, revision=era))
        status, headers = connection.head()
        assert status == 200
        for _ in range(3):  # what the system still takes counts as read
            talking.turn()
            talking.move_clock(31)
        talking.turn()
        assert connection.rest() < int(headers["content-length"][0])


def test_a_client_that_reads_slowly_gets_all_of_it(talking: HttpThread) -> None:
    with talking.connect(receive_buffer=4096) as connection:
        connection.send(post(calling("free")))
        left = int(connection.head()[1]["content-length"][0])
        while left > 0:
            left -= len(connection.read(min(left, 4_000_000)))
            talking.turn()
            talking.move_clock(25)
        assert connection.is_over()  # as it had nothing else to do in all that time
