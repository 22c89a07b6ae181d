"""The log of a server that was spoken to in every way: lines of JSON, in which no key, no body and no result stands."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from .servers import serving
from .shapes import HANDLE, TOOLS, UNKNOWN, check_call
from .stub import Cut, always, reply, service
from .wire import REVISIONS, connected, initialize_of, message_of
from .world import SOURCE, World, job_of, running_world

MARK = "s3cret"
STRANGE_KEY = f"{MARK}-key-that-nobody-has"

ANSWERS: dict[str, bytes | None] = {
    "hangs up": None,
    "is no HTTP": Cut(b"s3cret\r\n\r\n"),
    "hangs up in the middle": Cut(b'HTTP/1.1 201 OK\r\nContent-Length: 99\r\n\r\n{"handle": "s3cret'),
    "no JSON": reply(201, b"s3cret"),
    "another result": reply(201, {"handle": MARK, "digest": MARK, "state": MARK, MARK: MARK}),
    "a result of another type": reply(201, [MARK]),
    "a refusal that it has no name for": reply(400, {"error": {"code": MARK, "detail": MARK}}),
    "no refusal": reply(500, b"<html>s3cret</html>"),
    "a header": reply(500, b"{}", X_S3cret="s3cret"),
    "a redirect": reply(302, {}, Location="http://s3cret.example/s3cret"),
    "too much": reply(201, b'"' + b"s3cret" * 400_000 + b'"'),
}


@dataclass(frozen=True, slots=True)
class Said:
    """What was logged, by server and service, and what must not stand in it; what was told to whom got a bad reply."""

    logs: dict[str, str]
    secrets: list[str]
    told: dict[str, dict[str, Any]]

    @property
    def entries(self) -> list[dict[str, Any]]:
        return [json.loads(line) for name in ("server", "faults") for line in self.logs[name].splitlines()]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Said:
    folder = tmp_path_factory.mktemp("lithi")
    with running_world(folder) as world, service(always(None)) as broken, serving(world.keys, broken.url) as faulty:
        results = speak(world)
        told = {}
        endpoint = faulty.endpoint(world.ada.key)
        for name, answer in ANSWERS.items():
            broken.answer = always(answer)
            told[name] = check_call(endpoint.call("lithi.run", {"quote": UNKNOWN["qt"], "idempotency_key": MARK}))
        assert world.server.terminate() == 0
        assert faulty.terminate() == 0
        logs = {
            "server": world.server.output.whole(),
            "faults": faulty.output.whole(),
            "service": "\n".join(world.heard.lines),
        }
        keys = [world.ada.key, world.bob.key, world.reader.key, STRANGE_KEY]
        accounts = [world.ada.account, world.bob.account]
    return Said(logs, [MARK, *keys, *accounts, *results, SOURCE, UNKNOWN["qt"], UNKNOWN["jb"]], told)


def speak(world: World) -> list[str]:
    """Say all that there is to say, rightly and wrongly; what came of it."""
    results: list[str] = []
    for revision in REVISIONS:
        endpoint = world.ada.endpoint
        endpoint.send(endpoint.request(revision, initialize_of()))
        endpoint.ask(revision, "tools/list")
        for caller in (world.ada, world.bob, world.reader):
            labels = {MARK: MARK}
            quote = caller.call("lithi.quote", {"job": job_of(labels=labels)}, revision)
            handle = check_call(quote).get("handle", UNKNOWN["qt"])
            run = caller.call("lithi.run", {"quote": handle}, revision)
            job = check_call(run).get("handle", UNKNOWN["jb"])
            world.core.work()
            replies = [
                quote,
                run,
                *(caller.call(tool, {"handle": job}, revision) for tool in ("lithi.status", "lithi.result")),
                caller.call("lithi.batch", {"quotes": [handle]}, revision),
            ]
            contents = [check_call(answer) for answer in replies]
            results += [content[name] for content in contents for name in ("handle", "digest") if name in content]
        for tool in (*TOOLS, MARK):
            for arguments in (
                {MARK: MARK},
                MARK,
                {"account_id": MARK},
                {"job": job_of(account_id="acct_s3crets3cret")},
            ):
                endpoint.call(tool, arguments, revision)
        good = endpoint.request(revision, message_of(revision, MARK, {MARK: MARK}))
        for request in (
            good,
            good.with_body(MARK),
            good.with_body(b'{"s3cret": \xff'),
            good.with_json([MARK]),
            good.with_body(MARK * 100_000),
            good.with_method("GET"),
            *(good.with_header(name, MARK) for name, _ in good.headers if name != "Connection"),
            good.with_header("Authorization", f"Bearer {STRANGE_KEY}"),
            good.with_header("Authorization", f"Basic {world.ada.key}"),
            good.with_header("Origin", f"http://{MARK}.example"),
        ):
            endpoint.send(request)
    with connected(world.server.port) as connection:
        connection.sendall(b"s3cret\r\n\r\n")
        connection.recv(65_536)
    return results


def test_much_was_done_and_much_was_refused(said: Said) -> None:
    assert sum(HANDLE.fullmatch(secret) is not None for secret in said.secrets) > 10
    assert {content["error"]["kind"] for content in said.told.values()} == {"unavailable", "internal", "invalid_input"}


@pytest.mark.parametrize("name", ["server", "faults", "service"])
def test_nothing_that_was_sent_or_answered_is_logged(said: Said, name: str) -> None:
    found = [secret for secret in said.secrets if secret.lower() in said.logs[name].lower()]
    assert found == []


def test_each_line_is_an_object_with_the_same_members(said: Said) -> None:
    for entry in said.entries:
        assert {"time", "level", "logger", "event"} <= set(entry)


def test_what_callers_do_wrong_is_no_fault_of_the_server(said: Said) -> None:
    levels = [json.loads(line)["level"] for line in said.logs["server"].splitlines()]
    assert "error" not in levels
    assert "critical" not in levels


def test_a_fault_is_found_in_the_log_under_the_id_that_was_told(said: Said) -> None:
    logged = {entry["correlation_id"] for entry in said.entries if "correlation_id" in entry}
    for name in ("another result", "a result of another type"):
        assert any(id_ in said.told[name]["error"]["message"] for id_ in logged), said.told[name]


@pytest.mark.parametrize(
    "name",
    [
        "hangs up",
        "is no HTTP",
        "hangs up in the middle",
        "no JSON",
        "another result",
        "a result of another type",
        "no refusal",
        "a header",
        "a redirect",
        "too much",
    ],
)
def test_what_a_broken_reply_said_is_not_told(said: Said, name: str) -> None:
    assert MARK not in json.dumps(said.told[name])


def test_no_trace_of_python_is_told(said: Said) -> None:
    for word in ("Traceback", "Error(", ".py"):
        assert word not in json.dumps(list(said.told.values()))
