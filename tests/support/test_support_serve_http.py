"""A server over HTTP as a process, and as several behind one port."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.warm_starts import Run
from tests.warm_starts import run as run_warm

from .http_processes import HANDLERS, HttpProcess, varied
from .http_servers import calling, initializing, listing, modern, post, until_refused
from .raw_server import PATIENCE, RawServer
from .samples import DATA

MARK = "sub-mitted"


def registry(**serve: Any) -> dict[str, Any]:
    data = copy.deepcopy(DATA)
    data["serve"].update(serve)
    return data


@pytest.fixture(scope="module")
def served(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, which over HTTP says who calls and which process answers."""
    return varied(package, tmp_path_factory.mktemp("served"), registry())


@pytest.fixture(scope="module")
def http_alone(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return varied(package, tmp_path_factory.mktemp("alone"), registry(stdio=False))


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """What the handlers wait at."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


def waiting_at(gate: Path) -> dict[str, str]:
    return {**os.environ, "GATE": str(gate)}


def answer(server: HttpProcess) -> tuple[str, int]:
    """Who calls, and the process that says so."""
    result = server.post(calling("item.names")).result["structuredContent"]["result"]
    return result[0], int(result[1])


def run(package: Path, *arguments: str) -> Run:
    return run_warm(["-m", "sample_mcp", *arguments], cwd=package, timeout=PATIENCE)


@pytest.mark.parametrize(
    ("workers", "number"),
    [
        ([], signal.SIGTERM),
        ([], signal.SIGINT),
        ([], signal.SIGHUP),
        (["--workers", "2"], signal.SIGTERM),
        (["--workers", "2"], signal.SIGINT),
    ],
)
def test_it_says_where_it_serves_and_nothing_more(served: Path, workers: list[str], number: signal.Signals) -> None:
    with HttpProcess(served, "--http", *workers) as server:
        assert (server.started["level"], server.started["event"]) == ("info", "serving over HTTP")
        assert (server.started["workers"], server.started["replies"]) == (len(workers) or 1, "json")
        assert server.url == f"http://127.0.0.1:{server.port}/mcp"
        for message in (
            initializing(),
            listing(),
            calling("item.names"),
            {"jsonrpc": "2.0", "method": "notifications/x"},
        ):
            assert server.post(message).status in (200, 202)
        assert server.post(b"{").status == 400
        with server.connect() as kept:
            assert kept.exchange(post(listing())).status == 200
            server.tell(number)
            assert server.ended() == (0, "", "")


def test_where_nothing_else_is_offered_it_is_served_over_http(http_alone: Path) -> None:
    with HttpProcess(http_alone) as server:
        assert server.post(listing()).status == 200


def test_all_is_told_of_what_nobody_may_read(served: Path) -> None:
    """Nothing that was sent is in the log, whatever was wrong with it."""
    with HttpProcess(served, "--http") as server:
        for message in (MARK.encode(), [MARK], calling(MARK), modern(calling(MARK)), initializing(MARK), listing()):
            server.post(message, f"Authorization: Bearer {MARK}", f"X-{MARK}: {MARK}", f"Mcp-Method: {MARK}")
            server.post(message, f"Origin: https://{MARK}.example")
            server.post(message, target=f"/{MARK}?{MARK}={MARK}")
            server.post(message, revision=MARK)
            server.post(message, f"Host: {MARK}", without=["host"])
        with server.connect() as connection:
            connection.exchange(f"{MARK} / HTTP/1.1\r\n{MARK} : {MARK}\r\n\r\n".encode())
        server.tell()
        code, out, log = server.ended()
    assert (code, out) == (0, "")
    assert MARK not in log


@pytest.mark.parametrize(
    ("workers", "number"),
    [([], signal.SIGTERM), (["--workers", "2"], signal.SIGTERM), (["--workers", "2"], signal.SIGINT)],
)
def test_what_runs_when_it_is_told_to_stop_is_answered(
    served: Path, gate: Path, workers: list[str], number: signal.Signals
) -> None:
    with (
        HttpProcess(served, "--http", *workers, environment=waiting_at(gate)) as server,
        server.connect() as connection,
    ):
        connection.send(post(calling("free")))
        with gate.open("w"):  # which waits for somebody who reads
            server.tell_all(number)
            until_refused(server.port)
        assert connection.reply().result["structuredContent"] == {}
        assert server.ended() == (0, "", "")


def test_when_it_is_told_again_it_ends_at_once(served: Path, gate: Path) -> None:
    with HttpProcess(served, "--http", environment=waiting_at(gate)) as server, server.connect() as connection:
        connection.send(post(calling("spawn")))  # in a thread, which nothing can cancel
        with gate.open("w"):
            server.tell()
            until_refused(server.port)
            server.tell()
            assert server.ended()[:2] == (0, "")
        assert connection.reply().error == (503, -32603)
        assert connection.is_over()


def test_when_it_is_told_again_all_processes_end_at_once(served: Path, gate: Path) -> None:
    with (
        HttpProcess(served, "--http", "--workers", "2", environment=waiting_at(gate)) as server,
        server.connect() as connection,
    ):
        connection.send(post(calling("free")))
        with gate.open("w"):
            server.tell()
            until_refused(server.port)
            server.tell()
            assert server.ended() == (0, "", "")
        assert connection.is_over()


def test_any_process_answers_any_request(served: Path) -> None:
    async def use() -> Any:
        answers = []
        for mode in ("legacy", "auto", "2026-07-28"):
            async with Client(server.url, mode=mode) as client:
                listed = await client.list_tools()
                result = await client.call_tool("item.names", {})
                answers.append((len(listed.tools), (result.structured_content or {})["result"][0]))
        return answers

    with HttpProcess(served, "--http", "--workers", "4") as server:
        held = [server.connect() for _ in range(40)]
        processes = set()
        for connection in held:
            connection.send(post(calling("item.names")))
        for connection in held:
            processes.add(connection.reply().result["structuredContent"]["result"][1])
            connection.close()
        assert len(processes) > 1
        assert asyncio.run(use()) == 3 * [(6, "local")]
        server.tell()
        assert server.ended() == (0, "", "")


def test_a_process_that_ends_is_replaced(served: Path) -> None:
    with HttpProcess(served, "--http", "--workers", "2") as server:
        _, gone = answer(server)
        os.kill(gone, signal.SIGKILL)
        told = json.loads(server.log.readline())
        assert (told["event"], told["code"], told["served"]) == ("a worker ended", -9, True)
        processes = {answer(server)[1] for _ in range(20)}
        assert gone not in processes
        server.tell()
        assert server.ended() == (0, "", "")


def test_the_processes_end_with_the_one_that_started_them(served: Path) -> None:
    with HttpProcess(served, "--http", "--workers", "2") as server:
        assert answer(server)[0] == "local"
        server.tell(signal.SIGKILL)
        code, out, log = server.ended()  # which needs the end of all that have its output
        assert (code, out, log) == (-9, "", "")
        until_refused(server.port)


@pytest.mark.parametrize("workers", [[], ["--workers", "2"]])
def test_a_server_that_cannot_be_built_is_not_started(package: Path, tmp_path: Path, workers: list[str]) -> None:
    folder = varied(package, tmp_path, registry())
    module = folder / "sample_mcp" / "server.py"
    module.write_text(f"def create_server(**_):\n    raise RuntimeError({MARK!r})\n", encoding="utf-8")
    finished = run(folder, "--http", "--port", "0", *workers)
    assert (finished.returncode, finished.stdout) == (1, "")
    assert "serving over HTTP" not in finished.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--host", "0.0.0.0"], "Nothing checks who calls, so it is served on this machine alone"),
        (["--verify", "magic"], "How keys are verified is told as"),
        (["--hosts", "a.example,https://b.example"], "`https://b.example` is no host."),
        (["--origins", "null"], "`null` is no origin."),
    ],
)
def test_what_prevents_the_start_is_told_in_one_sentence(served: Path, arguments: list[str], sentence: str) -> None:
    finished = run(served, "--http", "--port", "0", *arguments)
    assert (finished.returncode, finished.stdout) == (1, "")
    (line,) = finished.stderr.splitlines()
    assert line.startswith("sample-mcp: ")
    assert sentence in line


def test_wrong_names_in_the_registry_are_told(package: Path, tmp_path: Path) -> None:
    data = registry()
    data["serve"]["http"]["origins"] = ["null"]
    finished = run(varied(package, tmp_path, data), "--http", "--port", "0")
    assert (finished.returncode, finished.stderr) == (1, "sample-mcp: `null` is no origin.\n")


def test_hosts_and_origins_can_be_told_at_the_start(package: Path, tmp_path: Path) -> None:
    """Behind a proxy, only who starts the server knows by which name it is called; then no other name is left."""
    names = {"hosts": ["built.example"], "origins": ["https://built.example"]}
    folder = varied(package, tmp_path, registry(http={**DATA["serve"]["http"], **names}))
    told = ["--hosts", "one.example,two.example:8443", "--hosts", "three.example", "--origins", "https://one.example"]
    with HttpProcess(folder, "--http", *told) as server:

        def status(host: str, *lines: str) -> int:
            return server.post(listing(), f"Host: {host}", *lines, without=["host"]).status

        own = f"127.0.0.1:{server.port}"
        for host in ("one.example", "one.example:1", "two.example:8443", "three.example", own):
            assert status(host) == 200, host
        for host in ("built.example", "two.example", "two.example:8444", "one.example,two.example"):
            assert status(host) == 421, host
        assert status("one.example", "Origin: https://one.example") == 200
        assert status(own, f"Origin: http://{own}") == 200
        for origin in ("https://built.example", "https://three.example", "http://one.example"):
            assert status("one.example", f"Origin: {origin}") == 403, origin


def test_a_port_that_is_taken_is_told(served: Path) -> None:
    with HttpProcess(served, "--http") as server:
        finished = run(served, "--http", "--port", str(server.port))
    assert finished.returncode == 1
    assert finished.stderr == f"sample-mcp: Cannot listen on `127.0.0.1`, port {server.port}: Address already in use.\n"


def test_a_server_of_stdio_alone_has_no_keys(package: Path, tmp_path: Path) -> None:
    assert run(varied(package, tmp_path, registry(http=None)), "keys", "list").returncode == 2


def test_wrong_usage_is_told(served: Path) -> None:
    finished = run(served, "--port", "1")
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr.endswith("sample-mcp: error: --port goes with --http.\n")


def test_who_calls_can_be_named(served: Path, tmp_path: Path) -> None:
    with HttpProcess(served, "--http", "--as", "some body") as server:
        assert answer(server)[0] == "some body"
    with RawServer(served, tmp_path, "--as", "some body") as stdio:
        stdio.handshake().send(calling("item.names"))
        assert stdio.receive()["result"]["structuredContent"]["result"][0] == "some body"


def test_keys_are_verified_by_all_processes(served: Path, tmp_path: Path) -> None:
    keys = str(tmp_path / "keys.json")
    (tmp_path / "keys.json").touch(mode=0o600)
    (tmp_path / "keys.json").write_text('{"keys": []}')
    added = run(served, "keys", "add", "--subject", "some body", "--file", keys)
    assert added.returncode == 0
    key = added.stdout.strip()
    with HttpProcess(served, "--http", "--verify", f"keys={keys}", "--workers", "2") as server:
        for lines, status in (([], 401), (["Authorization: Basic eDp5"], 401), (["Authorization: Bearer x"], 401)):
            reply = server.post(listing(), *lines)
            assert (reply.status, reply.json["error"]) == (status, "invalid_token")
            assert (reply.header("www-authenticate") or "").startswith("Bearer")
        reply = server.post(calling("item.names"), f"authorization: bearer {key}")
        assert reply.result["structuredContent"]["result"][0] == "some body"
        os.chmod(keys, 0o644)
        assert server.post(listing(), f"Authorization: Bearer {key}").error == (503, -32603)
        server.tell()
        code, out, log = server.ended()
    assert (code, out) == (0, "")
    assert key not in log


def test_where_keys_are_verified_others_may_call(served: Path, tmp_path: Path) -> None:
    (tmp_path / "keys.json").touch(mode=0o600)
    (tmp_path / "keys.json").write_text('{"keys": []}')
    with HttpProcess(served, "--http", "--host", "0.0.0.0", "--verify", f"keys={tmp_path / 'keys.json'}") as server:
        assert server.started["urls"] == [f"http://0.0.0.0:{server.port}/mcp"]
        assert server.post(listing()).status == 401


@pytest.mark.parametrize("arguments", [["verbs"], ["--version"], ["--help"]])
def test_what_needs_no_server_loads_none(served: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "sample_mcp", *arguments]
    loaded = subprocess.run(command, cwd=served, capture_output=True, text=True, timeout=PATIENCE, check=True).stderr
    for heavy in ("mcp_types", "pydantic", "asyncio", "uvicorn", "starlette", "sample_mcp._support.serve_http"):
        assert f" {heavy}\n" not in loaded


def test_a_server_over_stdio_loads_nothing_of_http(served: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "sample_mcp"]
    finished = subprocess.run(
        command, cwd=served, input=json.dumps(initializing()) + "\n", capture_output=True, text=True, timeout=PATIENCE
    )
    assert json.loads(finished.stdout)["result"]["protocolVersion"] == "2025-06-18"
    assert " sample_mcp._support.serve_stdio\n" in finished.stderr
    for module in ("http_", "serve_http", "bearer", "verif", "keys_"):
        assert f" sample_mcp._support.{module}" not in finished.stderr


def test_the_handlers_of_these_tests_are_python() -> None:
    compile(HANDLERS, "handlers.py", "exec")
