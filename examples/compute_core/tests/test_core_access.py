"""Keys, scopes and accounts: who is let in, and what they learn about others."""

from collections.abc import Callable

import httpx2
import pytest

from compute_core.testing import RunningCore

Connect = Callable[[str | None], httpx2.Client]
Quoted = Callable[..., str]

UNKNOWN = "0" * 26


@pytest.fixture
def service(shared_service: RunningCore) -> RunningCore:
    return shared_service


def test_a_key_learns_what_it_stands_for(service: RunningCore, connect: Connect) -> None:
    account = service.account()
    key = service.key(account, "compute:read", "compute:quote", subject="ada", expires_at=service.now + 60)
    reply = connect(key).get("/key")
    assert reply.json() == {
        "subject": "ada",
        "account": account,
        "scopes": ["compute:quote", "compute:read"],
        "exp": service.now + 60,
    }
    assert reply.headers["cache-control"] == "no-store"
    service.now += 60
    assert connect(key).get("/key").status_code == 401


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ([], False),
        ([("Authorization", "Bearer core_wrong")], True),
        ([("Authorization", "Basic {key}")], True),
        ([("Authorization", "{key}")], True),
        ([("Authorization", "Bearer")], True),
        ([("Authorization", "Bearer {key}"), ("Authorization", "Bearer {key}")], True),
        ([("X-Api-Key", "{key}")], False),
    ],
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/key"), ("POST", "/jobs"), ("POST", "/introspect")])
def test_without_a_key_nobody_gets_in(
    service: RunningCore, connect: Connect, method: str, path: str, headers: list[tuple[str, str]], error: bool
) -> None:
    key = service.key(service.account())
    sent = [(name, value.format(key=key)) for name, value in headers]
    reply = connect(None).request(method, path, headers=sent, content=b"{" if method == "POST" else None)
    assert (reply.status_code, reply.json()) == (401, {"error": {"code": "unauthorized"}})
    assert reply.headers["www-authenticate"].startswith('Bearer realm="compute-core"')
    assert ('error="invalid_token"' in reply.headers["www-authenticate"]) == error


def test_a_key_in_the_query_is_no_key(service: RunningCore, connect: Connect) -> None:
    key = service.key(service.account())
    assert connect(None).get("/key", params={"access_token": key}).status_code == 401


def test_the_scheme_is_read_in_any_case(service: RunningCore, connect: Connect) -> None:
    key = service.key(service.account())
    assert connect(None).get("/key", headers={"Authorization": f"bearer {key}"}).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "scope"),
    [
        ("/quotes", {"job": {"workflow": "triage@3", "source_digest": f"sha256:{'a' * 64}"}}, "compute:quote"),
        ("/jobs", {"quote": f"qt_{UNKNOWN}"}, "compute:run"),
        ("/batches", {"quotes": [f"qt_{UNKNOWN}"]}, "compute:run"),
        ("/approvals", {"quote": f"qt_{UNKNOWN}"}, "compute:approve"),
    ],
)
def test_a_scope_is_asked_for_after_the_body_was_read(
    service: RunningCore, connect: Connect, path: str, body: object, scope: str
) -> None:
    others = {"compute:quote", "compute:run", "compute:read", "compute:approve", "compute:introspect"} - {scope}
    client = connect(service.key(service.account(), *others))
    reply = client.post(path, json=body)
    assert (reply.status_code, reply.json()) == (403, {"error": {"code": "insufficient_scope"}})
    assert f'error="insufficient_scope", scope="{scope}"' in reply.headers["www-authenticate"]
    assert client.post(path, json={}).status_code == 422


@pytest.mark.parametrize("path", ["/jobs/{}", "/jobs/{}/result", "/results/{}", "/batches/{}"])
def test_reading_wants_its_scope(service: RunningCore, connect: Connect, path: str) -> None:
    client = connect(service.key(service.account(), "compute:run"))
    reply = client.get(path.format(f"jb_{UNKNOWN}"))
    assert (reply.status_code, reply.json()["error"]["code"]) == (403, "insufficient_scope")


def test_what_is_foreign_is_refused_like_what_is_unknown(
    service: RunningCore, client: httpx2.Client, connect: Connect, quoted: Quoted
) -> None:
    handles = {"qt": quoted(client), "jb": "", "bt": ""}
    handles["jb"] = client.post("/jobs", json={"quote": quoted(client)}).json()["handle"]
    handles["bt"] = client.post("/batches", json={"quotes": [quoted(client)]}).json()["handle"]
    stranger = connect(service.key(service.account()))
    for kind, handle in handles.items():
        for known in (handle, f"{kind}_{UNKNOWN}", "nothing"):
            for path in ("/quotes/{}", "/jobs/{}", "/jobs/{}/result", "/results/{}", "/batches/{}"):
                reply = stranger.get(path.format(known))
                assert (reply.status_code, reply.json()) == (404, {"error": {"code": "not_found"}})
    for handle in (handles["qt"], f"qt_{UNKNOWN}", handles["jb"]):
        for path in ("/jobs", "/approvals"):
            reply = stranger.post(path, json={"quote": handle})
            assert (reply.status_code, reply.json()) == (404, {"error": {"code": "not_found"}})
        reply = stranger.post("/batches", json={"quotes": [handle]})
        assert reply.json() == {"error": {"code": "not_found", "detail": {"path": "body.quotes.0"}}}


def test_an_account_id_is_the_keys_own(service: RunningCore, connect: Connect, quoted: Quoted) -> None:
    account, other = service.account(), service.account()
    client = connect(service.key(account))
    quote = quoted(client, account_id=account)
    job = {"workflow": "triage@3", "source_digest": f"sha256:{'a' * 64}"}
    foreign = [
        client.post("/quotes", json={"job": {**job, "account_id": other}}),
        client.post("/quotes", json={"job": {**job, "labels": {"account_id": other}}}),
        client.post("/jobs", json={"quote": quote, "account_id": other}),
        client.post("/approvals", json={"quote": quote, "account_id": other}),
        client.post("/batches", json={"quotes": [quote], "account_id": other}),
        client.get(f"/quotes/{quote}", params={"account_id": other}),
        client.get(f"/jobs/jb_{UNKNOWN}/result", params={"account_id": other}),
    ]
    assert [(reply.status_code, reply.json()) for reply in foreign] == [(403, {"error": {"code": "denied"}})] * 7
    started = client.post("/jobs", json={"quote": quote, "account_id": account})
    assert started.status_code == 201
    own = client.get(f"/jobs/{started.json()['handle']}", params={"account_id": account})
    assert own.json()["account"] == account


def test_introspection(service: RunningCore, connect: Connect) -> None:
    account = service.account()
    shown = service.key(account, "compute:run", "compute:read", subject="ada", expires_at=service.now + 9)
    lasting = service.key(account, "compute:run")
    client = connect(service.key(service.account(), "compute:introspect"))
    active = {"active": True, "token_type": "Bearer", "sub": "ada", "account": account}
    expected = {**active, "scope": "compute:read compute:run", "exp": service.now + 9}
    assert client.post("/introspect", data={"token": shown, "token_type_hint": "access_token"}).json() == expected
    assert "exp" not in client.post("/introspect", data={"token": lasting}).json()
    service.now += 9
    for token in (shown, "unknown"):
        assert client.post("/introspect", data={"token": token}).json() == {"active": False}


@pytest.mark.parametrize(
    ("body", "media_type", "status"),
    [
        (b"", "application/x-www-form-urlencoded", 400),
        (b"token=", "application/x-www-form-urlencoded", 400),
        (b"key=1", "application/x-www-form-urlencoded", 400),
        (b"token=1&token=2", "application/x-www-form-urlencoded", 400),
        (b"token=%ff", "application/x-www-form-urlencoded", 400),
        (b'{"token": "1"}', "application/json", 415),
        (b"token=" + b"1" * 5000, "application/x-www-form-urlencoded", 413),
    ],
)
def test_introspection_takes_one_token_in_a_form(
    client: httpx2.Client, body: bytes, media_type: str, status: int
) -> None:
    reply = client.post("/introspect", content=body, headers={"Content-Type": media_type})
    assert reply.status_code == status
    assert set(reply.json()["error"]) == {"code"}


def test_introspection_wants_its_scope(service: RunningCore, connect: Connect) -> None:
    client = connect(service.key(service.account(), "compute:read"))
    assert client.post("/introspect", data={"token": "x"}).json() == {"error": {"code": "insufficient_scope"}}
