"""Who calls, told by a keys file that changes, by introspection, by signed tokens or by the service itself.

A verifier that fails is never a way in: what it cannot tell is 503, what it does not know is 401, and nothing is 500.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from compute_core.testing import running_core

from verbc.pipeline import compile_spec
from verbc.tree import write

from .servers import ROOT, Server, mint, run_command, serving
from .shapes import TOOLS, UNKNOWN, tools_of
from .stub import Answer, Cut, Heard, Service, always, reply, service
from .tokens import ACCOUNT, ALGORITHM, AUDIENCE, ISSUER, SUBJECT, Issuer, key_set
from .wire import MODERN, PATIENCE, REVISIONS, Endpoint, Reply
from .world import World, job_of

QUOTE = {"handle": UNKNOWN["qt"], "digest": f"sha256:{'0' * 64}", "state": "quoted", "p_next_action": "run"}
ACTIVE = {"active": True, "sub": "ada", "account": ACCOUNT, "scope": "compute:quote compute:run compute:read"}

_NUMBERS = count()


def fresh_key() -> str:
    """A key that nobody has seen before, nor one that begins so."""
    return f"s3cret-key-{next(_NUMBERS):06}-s3cret"


def quoted(endpoint: Endpoint, revision: str = MODERN) -> Reply:
    return endpoint.call("lithi.quote", {"job": job_of()}, revision)


def turned_away(answer: Reply, key: str, *statuses: int) -> None:
    """That a call was stopped at the door, in one of these ways, and its key not repeated."""
    assert answer.status in statuses, answer
    assert not answer.holds(key)
    if answer.status == 401:
        assert answer.json["error"] == "invalid_token"
        assert str(answer.header("www-authenticate")).startswith("Bearer")


@pytest.fixture(scope="module")
def backend() -> Iterator[Service]:
    """A service that gives everybody the same quote."""
    with service(always(reply(201, QUOTE))) as running:
        yield running


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


# Introspection


@pytest.fixture(scope="module")
def introspection() -> Iterator[Service]:
    """Somebody who tells what keys are good for, in whatever way a test wants."""
    with service(always(None)) as running:
        yield running


@pytest.fixture(scope="module")
def introspecting(introspection: Service, backend: Service) -> Iterator[Server]:
    way = json.dumps({"introspect": f"{introspection.url}/introspect", "account": "account"})
    with serving(None, backend.url, "--verify", way) as server:
        yield server


@pytest.fixture
def told(introspection: Service, introspecting: Server, backend: Service) -> Callable[[Answer], Endpoint]:
    """Where to ask with a new key, about which the service says this."""

    def ask(answer: Answer) -> Endpoint:
        introspection.answer = answer
        introspection.heard.clear()
        backend.heard.clear()
        return introspecting.endpoint(fresh_key())

    return ask


Told = Callable[[Answer], Endpoint]


@pytest.mark.parametrize("revision", REVISIONS)
def test_introspection_tells_who_it_is(told: Told, introspection: Service, backend: Service, revision: str) -> None:
    endpoint = told(always(reply(200, {**ACTIVE, "exp": int(time.time()) + 600})))
    assert quoted(endpoint, revision).work == QUOTE
    (heard,) = introspection.heard
    assert (heard.method, heard.target) == ("POST", "/introspect")
    assert heard.headers["content-type"] == "application/x-www-form-urlencoded"
    assert parse_qs(heard.body.decode())["token"] == [endpoint.key]
    assert str(endpoint.key) not in json.dumps([heard.target, dict(heard.headers)])
    assert backend.heard[0].headers["authorization"] == f"Bearer {endpoint.key}"


def test_scopes_and_account_of_introspection_hold(told: Told, backend: Service) -> None:
    endpoint = told(always(reply(200, {**ACTIVE, "scope": "compute:read"})))
    assert quoted(endpoint).refusal["kind"] == "insufficient_scope"
    endpoint = told(always(reply(200, {name: ACTIVE[name] for name in ("active", "sub", "account")})))
    assert quoted(endpoint).refusal["kind"] == "insufficient_scope"
    endpoint = told(always(reply(200, ACTIVE)))
    foreign = {"job": job_of(account_id="acct_zzzzzzzzzzzz")}
    assert endpoint.call("lithi.quote", foreign).refusal["kind"] == "denied"
    assert backend.heard == []
    assert endpoint.call("lithi.quote", {"job": job_of(account_id=ACCOUNT)}).work == QUOTE


FAILURES: dict[str, bytes | None] = {
    "hangs up": None,
    "hangs up in the middle": Cut(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"),
    "is no HTTP": Cut(b"zqmark\r\n\r\n"),
    **{f"status {status}": reply(status, ACTIVE) for status in (201, 400, 401, 403, 404, 429, 500, 502, 503)},
    "status 204": reply(204, b""),
    "redirects": reply(307, ACTIVE, Location="/elsewhere"),
    "redirects with 302": reply(302, ACTIVE, Location="/elsewhere"),
    "no JSON": reply(200, b"active"),
    "nothing": reply(200, b""),
    "half of it": reply(200, b'{"active": true, "sub": "ada"'),
    "a list": reply(200, [ACTIVE]),
    "text": reply(200, "active"),
    "true": reply(200, True),
    "null": reply(200, None),
    "an empty object": reply(200, {}),
    "active twice": reply(200, b'{"active": false, "active": true, "sub": "ada", "scope": "compute:quote"}'),
    "a very long answer": reply(200, {**ACTIVE, "padding": "x" * 8_000_000}),
    **{f"active as {value!r}": reply(200, {**ACTIVE, "active": value}) for value in ("true", 1, "yes", [True], None)},
}


@pytest.mark.parametrize("failure", FAILURES)
def test_an_introspection_that_fails(told: Told, introspection: Service, backend: Service, failure: str) -> None:
    endpoint = told(always(FAILURES[failure]))
    turned_away(quoted(endpoint), str(endpoint.key), 503)
    assert {heard.target for heard in introspection.heard} == {"/introspect"}
    assert backend.heard == []
    introspection.answer = always(reply(200, ACTIVE))
    assert quoted(endpoint).work == QUOTE


UNTELLING = ("hangs up", "is no HTTP", "status 500", "redirects", "no JSON", "a list", "an empty object")

DOUBTFUL = {
    "nobody": {"sub": None},
    "a subject that is a number": {"sub": 5},
    "an empty subject": {"sub": ""},
    "an account that is a number": {"account": 5},
    "scopes as a number": {"scope": 5},
    "an end that is text": {"exp": "never"},
    "an end in the past": {"exp": 1},
    "an end at once": {"exp": 0},
    "a beginning in the future": {"nbf": 4_000_000_000},
}


@pytest.mark.parametrize("doubt", DOUBTFUL)
def test_an_introspection_that_leaves_doubt(told: Told, backend: Service, doubt: str) -> None:
    whole = {name: value for name, value in {**ACTIVE, **DOUBTFUL[doubt]}.items() if value is not None}
    endpoint = told(always(reply(200, whole)))
    turned_away(quoted(endpoint), str(endpoint.key), 401, 503)
    assert backend.heard == []


def test_only_a_good_answer_is_kept(told: Told, introspection: Service) -> None:
    endpoint = told(always(reply(200, {"active": False})))
    for _ in range(2):
        turned_away(quoted(endpoint), str(endpoint.key), 401)
    assert len(introspection.heard) == 2
    introspection.answer = always(reply(200, ACTIVE))
    for _ in range(3):
        assert quoted(endpoint).work == QUOTE
    assert len(introspection.heard) == 3


def test_a_good_answer_about_one_key_is_none_about_another(told: Told, introspection: Service) -> None:
    endpoint = told(always(reply(200, ACTIVE)))
    assert quoted(endpoint).work == QUOTE
    introspection.answer = always(reply(200, {"active": False}))
    for other in (f"{endpoint.key}x", str(endpoint.key)[:-1], str(endpoint.key).upper()):
        turned_away(quoted(endpoint.with_key(other)), other, 401)
    assert quoted(endpoint).work == QUOTE


def test_a_good_answer_is_not_kept_beyond_the_end_of_the_key(told: Told, introspection: Service) -> None:
    endpoint = told(always(reply(200, {**ACTIVE, "exp": int(time.time()) + 2})))
    assert quoted(endpoint).status == 200
    introspection.answer = always(reply(200, {"active": False}))
    give_up = time.monotonic() + PATIENCE
    while (status := quoted(endpoint).status) == 200:
        assert time.monotonic() < give_up
    assert status == 401


def test_one_question_at_a_time_about_one_key(told: Told, introspection: Service) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def answer(heard: Heard) -> bytes:
        if b"other" not in heard.body:
            asked.set()
            assert go_on.wait(PATIENCE)
        return reply(200, ACTIVE)

    endpoint = told(answer)
    with ThreadPoolExecutor(8) as pool:
        replies = [pool.submit(quoted, endpoint) for _ in range(8)]
        assert asked.wait(PATIENCE)
        assert quoted(endpoint.with_key(f"other-{fresh_key()}")).work == QUOTE
        go_on.set()
        assert all(future.result(PATIENCE).work == QUOTE for future in replies)
    assert len([heard for heard in introspection.heard if b"other" not in heard.body]) == 1


def test_many_questions_that_fail_at_once(told: Told, backend: Service) -> None:
    endpoint = told(always(None))
    with ThreadPoolExecutor(8) as pool:
        statuses = set(pool.map(lambda _: quoted(endpoint).status, range(16)))
    assert statuses == {503}
    assert backend.heard == []


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
        json.dumps({**jwt_way("https://service.example/keys"), "algorithms": ["HS256"]}),
        json.dumps({**jwt_way("https://service.example/keys"), "algorithms": ["ES256", "none"]}),
        json.dumps({"jwt": "https://service.example/keys", "algorithms": ["ES256"]}),
        "none",
    ]
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(lambda way: run_command("--port", "0", "--verify", way, core="http://[::1]:9"), ways))
    assert all(done.returncode != 0 for done in ended)
    assert not any("Traceback" in done.stderr for done in ended)


# Signed tokens


def jwt_way(url: str) -> dict[str, Any]:
    return {"jwt": url, "algorithms": [ALGORITHM], "issuer": ISSUER, "audience": AUDIENCE, "account": "account"}


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(scope="module")
def published(issuer: Issuer) -> Iterator[Service]:
    with service(always(reply(200, key_set(issuer)))) as running:
        yield running


@pytest.fixture(scope="module")
def signed(published: Service, backend: Service) -> Iterator[Server]:
    with serving(None, backend.url, "--verify", json.dumps(jwt_way(f"{published.url}/keys"))) as server:
        yield server


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_token_tells_who_it_is(signed: Server, issuer: Issuer, backend: Service, revision: str) -> None:
    token = issuer.token()
    assert quoted(signed.endpoint(token), revision).work == QUOTE
    assert backend.heard[-1].headers["authorization"] == f"Bearer {token}"
    assert quoted(signed.endpoint(issuer.token(aud=["https://other.example", AUDIENCE])), revision).work == QUOTE


def test_scopes_and_account_of_a_token_hold(signed: Server, issuer: Issuer, backend: Service) -> None:
    backend.heard.clear()
    for scope in ("compute:read", "", None):
        assert quoted(signed.endpoint(issuer.token(scope=scope))).refusal["kind"] == "insufficient_scope"
    endpoint = signed.endpoint(issuer.token())
    foreign = {"job": job_of(account_id="acct_zzzzzzzzzzzz")}
    assert endpoint.call("lithi.quote", foreign).refusal["kind"] == "denied"
    assert backend.heard == []
    assert endpoint.call("lithi.quote", {"job": job_of(account_id=ACCOUNT)}).work == QUOTE
    homeless = signed.endpoint(issuer.token(account=None))
    assert homeless.call("lithi.quote", {"job": job_of(account_id=ACCOUNT)}).refusal["kind"] == "denied"


PAST, FUTURE = 1_000_000_000, 4_000_000_000

BAD_TOKENS: dict[str, Callable[[Issuer], str]] = {
    "of another key under the same id": lambda _: Issuer().token(),
    "of an unknown key": lambda _: Issuer("other").token(),
    "of a key that it brings along": lambda _: (stranger := Issuer()).token({"jwk": stranger.published}),
    "unsigned": lambda issuer: issuer.forged("none"),
    "unsigned, in capitals": lambda issuer: issuer.forged("NONE"),
    "signed with the public key as a secret": lambda issuer: issuer.forged("HS256", issuer.pem),
    "signed with the id as a secret": lambda issuer: issuer.forged("HS256", issuer.id.encode()),
    "with another algorithm": lambda issuer: issuer.forged("RS256", b"x"),
    "without its signature": lambda issuer: issuer.token().rpartition(".")[0] + ".",
    "with another body": lambda issuer: ".".join(
        [issuer.token().split(".")[0], issuer.token(sub="eve").split(".")[1], issuer.token().split(".")[2]]
    ),
    "with members that have to be understood": lambda issuer: issuer.token({"crit": ["s3cret"], "s3cret": 1}),
    "in two parts": lambda issuer: issuer.token().rpartition(".")[0],
    "in four parts": lambda issuer: issuer.token() + ".x",
    "no token": lambda _: "s3cret",
    "nothing but points": lambda _: "..",
    "expired": lambda issuer: issuer.token(exp=PAST),
    "without an end": lambda issuer: issuer.token(exp=None),
    "not good yet": lambda issuer: issuer.token(nbf=FUTURE),
    "of another issuer": lambda issuer: issuer.token(iss="https://other.example"),
    "of an issuer whose name begins so": lambda issuer: issuer.token(iss=f"{ISSUER}/"),
    "of nobody": lambda issuer: issuer.token(iss=None),
    "for somebody else": lambda issuer: issuer.token(aud="https://other.example"),
    "for several others": lambda issuer: issuer.token(aud=["https://other.example"]),
    "for nobody": lambda issuer: issuer.token(aud=None),
    "about nobody": lambda issuer: issuer.token(sub=None),
    "about nobody in particular": lambda issuer: issuer.token(sub=""),
}


@pytest.mark.parametrize("kind", BAD_TOKENS)
def test_a_token_that_is_not_good(
    signed: Server, issuer: Issuer, published: Service, backend: Service, kind: str
) -> None:
    assert quoted(signed.endpoint(issuer.token())).status == 200
    backend.heard.clear()
    token = BAD_TOKENS[kind](issuer)
    turned_away(quoted(signed.endpoint(token)), token, 401)
    assert backend.heard == []
    assert {heard.target for heard in published.heard} == {"/keys"}


def test_a_token_that_says_where_its_key_is(signed: Server, published: Service, backend: Service) -> None:
    backend.heard.clear()
    stranger = Issuer()
    with service(always(reply(200, key_set(stranger)))) as trap:
        for header in ({"jku": f"{trap.url}/keys"}, {"x5u": f"{trap.url}/keys"}, {"kid": f"{trap.url}/keys"}):
            token = stranger.token(header)
            turned_away(quoted(signed.endpoint(token)), token, 401)
        assert trap.heard == []
    assert backend.heard == []


def test_unknown_keys_do_not_make_it_ask_again_and_again(signed: Server, published: Service) -> None:
    before = len(published.heard)
    for number in range(30):
        token = Issuer(f"unknown-{number}").token()
        turned_away(quoted(signed.endpoint(token)), token, 401)
    assert len(published.heard) - before <= 2


def test_published_keys_that_cannot_be_had(backend: Service, issuer: Issuer) -> None:
    backend.heard.clear()
    with service(always(None)) as publishing:
        way = json.dumps(jwt_way(f"{publishing.url}/keys"))
        with serving(None, backend.url, "--verify", way) as server:
            for failure in UNTELLING:
                publishing.answer = always(FAILURES[failure])
                for token in (issuer.token(), Issuer("other").token()):
                    turned_away(quoted(server.endpoint(token)), token, 503)
        assert {heard.target for heard in publishing.heard} == {"/keys"}
    assert backend.heard == []


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


def test_no_log_has_a_key(
    world: World, introspecting: Server, signed: Server, asked_by_key: tuple[Server, Service]
) -> None:
    for server in (world.server, introspecting, signed, asked_by_key[0]):
        text = server.output.text
        assert "s3cret" not in text
        assert world.ada.key not in text
        assert "eyJ" not in text  # how tokens begin
