"""Who calls, told by a keys file that changes, or by the service itself, in one way or another.

A verifier that fails is never a way in: what it cannot tell is 503, what it does not know is 401, and nothing is 500.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from compute_core.testing import running_core

from verbc.pipeline import compile_spec
from verbc.tree import write

from .servers import ROOT, Server, mint, run_command, serving
from .shapes import TOOLS, UNKNOWN, tools_of
from .stub import Service, always, reply, service
from .tokens import ACCOUNT, SUBJECT
from .verifying import FAILURES, QUOTE, UNTELLING, fresh_key, jwt_way, quoted, turned_away
from .wire import MODERN, PATIENCE, REVISIONS
from .world import World, job_of

# A keys file


def test_a_new_key_works_and_a_revoked_one_does_not_any_more(world: World) -> None:
    for revision in REVISIONS:
        newcomer = world.caller("open", subject="new")
        assert quoted(newcomer.endpoint, revision).work
        world.revoke(newcomer)
        turned_away(quoted(newcomer.endpoint, revision), newcomer.key, 401)
        assert quoted(world.ada.endpoint, revision).work


def test_a_key_that_has_expired(world: World) -> None:
    key = mint(world.keys, "late", world.ada.account, ("compute:read",), "--expires", "30d")
    endpoint = world.server.endpoint(key)
    assert len(tools_of(endpoint)) == len(TOOLS)
    (expires,) = [entry["expires"] for entry in read(world.keys)["keys"] if entry["subject"] == "late"]
    world.keys.write_text(world.keys.read_text().replace(expires, "2020-01-01T00:00:00Z"))
    turned_away(endpoint.ask(MODERN, "tools/list"), key, 401)


def test_the_file_has_no_key(world: World) -> None:
    assert world.ada.key not in world.keys.read_text()
    assert world.keys.stat().st_mode & 0o077 == 0
    assert world.ada.key not in run_command("keys", "list", keys=world.keys).stdout


def test_a_key_has_at_least_128_bits(tmp_path: Path) -> None:
    keys = {mint(tmp_path / "keys.json", "ada") for _ in range(3)}
    assert len(keys) == 3
    assert all(len(key) >= 22 for key in keys)  # of 6 bits each


def read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text()))


@contextmanager
def put_back(path: Path) -> Iterator[str]:
    """The text of a file, which stands there again in the end."""
    text = path.read_text()
    try:
        yield text
    finally:
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(text)


@pytest.mark.parametrize(
    "broken",
    ["", "{", "null", "[]", '{"keys": {}}', '{"keys": [{}]}', '{"keys": [null]}', '{"keys": [], "keys": []}', "\x00"],
)
def test_a_keys_file_that_is_broken(world: World, broken: str) -> None:
    with put_back(world.keys):
        world.keys.write_text(broken)
        for key in (world.ada.key, "nobody"):
            turned_away(quoted(world.server.endpoint(key)), key, 503)
    assert quoted(world.ada.endpoint).work


def test_a_keys_file_with_one_entry_that_is_broken(world: World) -> None:
    with put_back(world.keys) as text:
        for change in ({"sha256": "S3CRET"}, {"scopes": "compute:run"}, {"expires": "soon"}, {"subject": 5}, {"x": 1}):
            whole = json.loads(text)
            whole["keys"][-1].update(change)
            world.keys.write_text(json.dumps(whole))
            turned_away(quoted(world.ada.endpoint), world.ada.key, 503)
    assert quoted(world.ada.endpoint).work


def test_a_keys_file_that_is_gone_a_folder_or_open_to_others(world: World) -> None:
    with put_back(world.keys) as text:
        world.keys.unlink()
        turned_away(quoted(world.ada.endpoint), world.ada.key, 503)
        world.keys.mkdir()
        turned_away(quoted(world.ada.endpoint), world.ada.key, 503)
        world.keys.rmdir()
        world.keys.write_text(text)
        for mode in (0o644, 0o620, 0o602):
            world.keys.chmod(mode)
            turned_away(quoted(world.ada.endpoint), world.ada.key, 503)
    assert quoted(world.ada.endpoint).work


def test_without_a_key_a_broken_file_is_of_no_interest(world: World) -> None:
    with put_back(world.keys):
        world.keys.write_text("{")
        turned_away(quoted(world.server.endpoint(None)), "s3cret", 401, 503)


def test_a_file_that_is_replaced_while_many_ask(world: World) -> None:
    """Whoever reads it in the middle must see the old one or the new one."""
    ended = threading.Event()

    def ask(_number: int) -> set[int]:
        statuses = set()
        while not ended.is_set():
            statuses.add(quoted(world.ada.endpoint).status)
        return statuses

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, number) for number in range(4)]
        try:
            for _ in range(3):
                world.revoke(world.caller("open", subject="short"))
        finally:
            ended.set()
        assert set().union(*(future.result(PATIENCE) for future in asked)) == {200}


# Introspection by the service


def test_the_service_itself_tells_about_its_keys(world: World) -> None:
    spy = world.core.key(world.core.account(), "compute:introspect", subject="lithi")
    asking = {
        "introspect": f"{world.core.url}/introspect",
        "headers": {"Authorization": "Bearer ${SPY}"},
        "account": "account",
    }
    with serving(None, world.core.url, "--verify", json.dumps(asking), more={"SPY": spy}) as server:
        account = world.core.account("open")
        worker, reader = world.core.key(account), world.core.key(account, "compute:read")
        assert quoted(server.endpoint(worker)).work["state"] == "quoted"
        assert quoted(server.endpoint(reader)).refusal["kind"] == "insufficient_scope"
        for named, kind in ((account, None), (world.ada.account, "denied")):
            answer = server.endpoint(worker).call("lithi.quote", {"job": job_of(account_id=named)})
            assert answer.result["structuredContent"].get("error", {}).get("kind") == kind
        turned_away(quoted(server.endpoint("s3cret")), "s3cret", 401)
        assert spy not in server.output.text


def test_an_introspection_that_is_not_there(backend: Service, tmp_path: Path) -> None:
    with running_core(tmp_path / "core.db") as core:
        key = core.key(core.account())
    with serving(None, backend.url, "--verify", f"introspect={core.url}/introspect") as server:
        for revision in REVISIONS:
            turned_away(quoted(server.endpoint(key), revision), key, 503)


def test_ways_that_no_server_starts_with() -> None:
    ways = [
        "introspect=http://service.example/introspect",
        json.dumps(jwt_way("http://service.example/keys")),
        json.dumps({**jwt_way("https://service.example/keys"), "algorithms": ["ES256", "HS256", "none"]}),
    ]
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(lambda way: run_command("--port", "0", "--verify", way, core="http://[::1]:9"), ways))
    assert all(done.returncode != 0 for done in ended)
    assert not any("Traceback" in done.stderr for done in ended)


# The service, asked with the key itself


@pytest.fixture(scope="module")
def asked_by_key(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Service]]:
    """A server that is compiled from the same spec with another way to verify, and the service that it asks."""
    folder = tmp_path_factory.mktemp("compiled")
    spec = (ROOT / "specs" / "lithi.yaml").read_text()
    own = 'verify: {keys: "${LITHI_KEYS}"}'
    assert own in spec
    changed = folder / "lithi.yaml"
    changed.write_text(
        spec.replace(own, "verify: {core: GET /key, subject: /subject, account: /account, scopes: /scopes}")
    )
    name, files = compile_spec(changed, "specs/lithi.yaml")
    write(files, folder / name)
    with (
        service(always(None)) as asked,
        serving(None, asked.url, more={"PYTHONPATH": str(folder / name)}) as server,
    ):
        yield server, asked


def test_an_operation_of_the_service_tells_who_it_is(world: World, asked_by_key: tuple[Server, Service]) -> None:
    server, asked = asked_by_key
    told = {"subject": SUBJECT, "account": ACCOUNT, "scopes": ["compute:quote"], "exp": None}
    asked.answer = lambda heard: reply(200, told) if heard.target == "/key" else reply(201, QUOTE)
    endpoint = server.endpoint(fresh_key())
    assert quoted(endpoint).work == QUOTE
    assert [heard.target for heard in asked.heard] == ["/key", "/quotes"]
    assert {heard.headers["authorization"] for heard in asked.heard} == {f"Bearer {endpoint.key}"}
    assert endpoint.call("lithi.status", {"handle": UNKNOWN["jb"]}).refusal["kind"] == "insufficient_scope"
    foreign = {"job": job_of(account_id="acct_zzzzzzzzzzzz")}
    assert endpoint.call("lithi.quote", foreign).refusal["kind"] == "denied"


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_the_service_does_not_take(asked_by_key: tuple[Server, Service], status: int) -> None:
    server, asked = asked_by_key
    asked.heard.clear()
    asked.answer = always(reply(status, {}))
    endpoint = server.endpoint(fresh_key())
    turned_away(quoted(endpoint), str(endpoint.key), 401, 503)
    assert {heard.target for heard in asked.heard} == {"/key"}


@pytest.mark.parametrize("failure", UNTELLING)
def test_a_service_that_cannot_tell(asked_by_key: tuple[Server, Service], failure: str) -> None:
    server, asked = asked_by_key
    asked.heard.clear()
    asked.answer = always(FAILURES[failure])
    endpoint = server.endpoint(fresh_key())
    turned_away(quoted(endpoint), str(endpoint.key), 503)
    assert {heard.target for heard in asked.heard} == {"/key"}


def test_no_log_has_a_key(world: World, asked_by_key: tuple[Server, Service]) -> None:
    for server in (world.server, asked_by_key[0]):
        assert "s3cret" not in server.output.text
        assert world.ada.key not in server.output.text
