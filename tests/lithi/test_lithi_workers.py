"""Four processes behind one port: any of them answers anybody, the rest go on when one is killed, and all end well."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import cycle

import pytest

from .processes import children, only, wait_for_end, watched
from .servers import Server, mint, run_command, serving
from .shapes import TOOLS, check_work, tools_of
from .stub import Heard, reply, service
from .wire import LEGACY, MODERN, PATIENCE, REVISIONS, Reply, connected, initialize_of, message_of, read_reply
from .world import World, job_of, running_world

WORKERS = 4

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are told apart through /proc")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Four workers behind one port."""
    with running_world(tmp_path_factory.mktemp("lithi"), "--workers", str(WORKERS)) as running:
        yield running


@pytest.fixture
def workers(world: World) -> list[int]:
    """The processes that serve now."""
    pids = children(world.server.process.pid)
    assert len(pids) == WORKERS
    return pids


def test_one_line_of_the_log_tells_the_one_address(world: World) -> None:
    lines = [line for line in world.server.output.text.splitlines() if '"urls"' in line]
    assert len(lines) == 1


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_worker_answers_each_request_of_a_client(world: World, workers: list[int], revision: str) -> None:
    """The whole work of one client, every time with another worker for the next step."""
    for first in range(WORKERS):
        turn = cycle(workers[first:] + workers[:first])
        if revision == LEGACY:
            with only(next(turn), workers):
                request = world.ada.endpoint.request(LEGACY, initialize_of())
                assert world.ada.endpoint.send(request).result["protocolVersion"] == LEGACY
            with only(next(turn), workers):
                told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                assert world.ada.endpoint.send(world.ada.endpoint.request(LEGACY, told)).status == 202
        with only(next(turn), workers):
            assert set(tools_of(world.ada.endpoint, revision)) == set(TOOLS)
        with only(next(turn), workers):
            quote = world.ada.call("lithi.quote", {"job": job_of()}, revision).work["handle"]
        with only(next(turn), workers):
            job = world.ada.call("lithi.run", {"quote": quote}, revision).work["handle"]
        with only(next(turn), workers):
            assert world.ada.call("lithi.run", {"quote": quote}, revision).work["handle"] == job
        with only(next(turn), workers):
            check_work(world.ada.call("lithi.status", {"handle": job}, revision).work)


def test_a_key_that_was_added_or_revoked_is_so_for_each_worker(world: World, workers: list[int]) -> None:
    newcomer = world.caller("open", subject="newcomer")
    for worker in workers:
        with only(worker, workers):
            assert newcomer.call("lithi.quote", {"job": job_of()}).work
    world.revoke(newcomer)
    for worker in workers:
        with only(worker, workers):
            assert newcomer.call("lithi.quote", {"job": job_of()}).status == 401


def test_many_clients_at_once(world: World) -> None:
    callers = [world.ada, world.bob]
    barrier = threading.Barrier(16)

    def work(number: int) -> list[Reply]:
        barrier.wait(PATIENCE)
        caller = callers[number % 2]
        return [caller.call("lithi.quote", {"job": job_of()}, REVISIONS[turn % 2]) for turn in range(5)]

    with ThreadPoolExecutor(16) as pool:
        replies = [reply for replies in pool.map(work, range(16)) for reply in replies]
    assert len({reply.work["handle"] for reply in replies}) == len(replies) == 80


def test_the_others_go_on_when_a_worker_is_killed_and_another_takes_its_place(world: World, workers: list[int]) -> None:
    killed = workers[1]
    with watched(killed) as descriptors:
        os.kill(killed, signal.SIGKILL)
        wait_for_end(descriptors)
    for turn in range(20):
        assert world.ada.call("lithi.quote", {"job": job_of()}, REVISIONS[turn % 2]).work
    give_up = threading.Event()
    timer = threading.Timer(PATIENCE, give_up.set)
    timer.start()
    try:
        while len(now := set(children(world.server.process.pid)) - {killed}) < WORKERS:
            assert not give_up.is_set(), "no worker took its place"
            assert world.ada.call("lithi.status", {"handle": "jb_" + "0" * 26}).refusal["kind"] == "not_found"
    finally:
        timer.cancel()
    assert len(now - set(workers)) == 1
    (replacement,) = now - set(workers)
    with only(replacement, sorted(now)):
        assert world.ada.call("lithi.quote", {"job": job_of()}).work


# The end


@contextmanager
def busy(world: World, *words: str) -> Iterator[tuple[Server, threading.Event, threading.Event]]:
    """A server whose service holds a quote back: an event when it has one, and one that lets it go."""
    waiting, go_on = threading.Event(), threading.Event()

    def answer(_heard: Heard) -> bytes:
        waiting.set()
        go_on.wait(PATIENCE)
        return reply(201, {"handle": f"qt_{'1' * 26}", "digest": f"sha256:{'1' * 64}", "state": "quoted"})

    with service(answer) as slow:
        try:
            with serving(world.keys, slow.url, *words) as server:
                yield server, waiting, go_on
        finally:
            go_on.set()


@pytest.mark.parametrize(("count", "number"), [(1, signal.SIGTERM), (1, signal.SIGINT), (WORKERS, signal.SIGTERM)])
def test_a_server_that_is_told_to_end_answers_what_it_has_taken(
    world: World, count: int, number: signal.Signals
) -> None:
    with busy(world, "--workers", str(count)) as (server, waiting, go_on), connected(server.port) as connection:
        endpoint = server.endpoint(world.ada.key)
        request = endpoint.call_request(MODERN, "lithi.quote", {"job": job_of()}).with_header("Connection")
        connection.sendall(request.encoded())
        assert waiting.wait(PATIENCE)
        with watched(*children(server.process.pid)) as descriptors:
            server.process.send_signal(number)
            go_on.set()
            assert read_reply(connection).work["handle"] == f"qt_{'1' * 26}"
            assert server.process.wait(PATIENCE) == 0
            wait_for_end(descriptors)
        assert '"level": "error"' not in server.output.whole()


def test_connections_that_say_nothing_do_not_keep_a_server_from_its_end(world: World) -> None:
    with serving(world.keys, world.core.url, "--workers", "2") as server:
        request = server.endpoint(world.ada.key).request(MODERN, message_of(MODERN, "tools/list"))
        with connected(server.port) as quiet, connected(server.port) as half, connected(server.port) as used:
            half.sendall(request.with_header("Connection").encoded()[:-1])
            used.sendall(request.with_header("Connection").encoded())
            assert read_reply(used).status == 200
            assert server.terminate() == 0
            assert quiet.recv(1) == b""
            with suppress(ConnectionResetError):
                assert half.recv(1) == b""
        assert '"level": "error"' not in server.output.whole()  # such as that something had to be given up
        with pytest.raises(ConnectionRefusedError), connected(server.port):
            pass


def test_workers_end_when_their_parent_was_killed(world: World) -> None:
    with (
        serving(world.keys, world.core.url, "--workers", "2") as server,
        watched(*children(server.process.pid)) as descriptors,
    ):
        server.process.kill()
        server.process.wait(PATIENCE)
        wait_for_end(descriptors)


def test_a_port_that_is_taken_is_told(world: World) -> None:
    done = run_command("--port", str(world.server.port), "--workers", "2", keys=world.keys, core=world.core.url)
    assert done.returncode not in (0, -signal.SIGSEGV)
    assert "Traceback" not in done.stderr
    assert str(world.server.port) in done.stderr


def test_a_keys_file_is_needed_at_the_start(world: World) -> None:
    missing = world.keys.with_name("missing.json")
    done = run_command("--port", "0", "--workers", "2", keys=missing, core=world.core.url)
    assert done.returncode not in (0, -signal.SIGSEGV)
    assert "Traceback" not in done.stderr
    assert mint(missing, "ada")
