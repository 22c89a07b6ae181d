"""Quotes: prices, signed terms that anyone can check, how they grow old, and approvals."""

import base64
import hashlib
import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from compute_core.testing import RunningCore

Connect = Callable[[str | None], httpx2.Client]
Quoted = Callable[..., str]

SOURCE = f"sha256:{'5e' * 32}"


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def test_a_quote_has_its_whole_terms_signed(service: RunningCore, client: httpx2.Client) -> None:
    job = {
        "workflow": "triage@3",
        "source_digest": SOURCE,
        "evidence": [f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"],
        "labels": {"team": "ünïcode"},
        "max_price": "3.05 EUR",
    }
    reply = client.post("/quotes", json={"job": job})
    quote = reply.json()
    assert reply.status_code == 201
    assert (quote["state"], quote["p_next_action"], quote["price"]) == ("quoted", "run", "3.05 EUR")
    assert reply.headers["location"] == f"/quotes/{quote['handle']}"
    terms = quote["terms"]
    assert terms["job"] == job
    assert terms["quote"] == quote["handle"]
    assert (terms["account"], terms["subject"]) == (quote["account"], "tester")
    assert (terms["price"], terms["expires_at"]) == (quote["price"], quote["expires_at"])
    assert quote["digest"] == f"sha256:{hashlib.sha256(canonical(terms)).hexdigest()}"
    assert client.get(f"/quotes/{quote['handle']}").json() == quote
    assert service.work() == 0


def test_the_signature_holds_for_these_terms_alone(connect: Connect, client: httpx2.Client, quoted: Quoted) -> None:
    quote = client.get(f"/quotes/{quoted(client)}").json()
    jwk = connect(None).get("/terms-key").json()
    assert (jwk["kty"], jwk["crv"], jwk["kid"]) == ("OKP", "Ed25519", quote["signature"]["kid"])
    thumbprint = hashlib.sha256(canonical({name: jwk[name] for name in ("crv", "kty", "x")})).digest()
    assert decoded(jwk["kid"]) == thumbprint
    key = Ed25519PublicKey.from_public_bytes(decoded(jwk["x"]))
    key.verify(decoded(quote["signature"]["value"]), canonical(quote["terms"]))
    with pytest.raises(InvalidSignature):
        key.verify(decoded(quote["signature"]["value"]), canonical({**quote["terms"], "price": "0.01 EUR"}))


def test_a_price_above_the_most_is_refused(client: httpx2.Client) -> None:
    job = {"workflow": "triage@3", "source_digest": SOURCE, "max_price": "2.49 EUR"}
    refused = client.post("/quotes", json={"job": job})
    assert refused.status_code == 409
    assert refused.json() == {"error": {"code": "price_above_max", "next": "quote", "detail": {"price": "2.50 EUR"}}}
    other = client.post("/quotes", json={"job": {**job, "max_price": "9.00 USD"}})
    assert other.status_code == 422
    problems = [{"path": "body.job.max_price", "expected": "an amount in EUR"}]
    assert other.json()["error"]["detail"]["problems"] == problems


def test_an_old_quote_starts_nothing_and_can_still_be_read(
    service: RunningCore, connect: Connect, quoted: Quoted
) -> None:
    client = connect(service.key(service.account("approve")))
    handle = quoted(client)
    service.now += 899
    assert client.post("/jobs", json={"quote": handle}).status_code == 403
    service.now += 1
    error = {"code": "quote_expired", "next": "quote"}
    for path in ("/jobs", "/approvals"):
        reply = client.post(path, json={"quote": handle})
        assert (reply.status_code, reply.json()) == (410, {"error": error})
    reply = client.post("/batches", json={"quotes": [handle]})
    assert (reply.status_code, reply.json()["error"]["detail"]) == (410, {"path": "body.quotes.0"})
    quote = client.get(f"/quotes/{handle}").json()
    assert (quote["state"], quote["p_next_action"], quote["terms"]["quote"]) == ("expired", "none", handle)


def test_nothing_runs_before_it_is_approved(service: RunningCore, connect: Connect, quoted: Quoted) -> None:
    account = service.account("approve")
    runner = connect(service.key(account, "compute:quote", "compute:run", "compute:read"))
    approver = connect(service.key(account, "compute:approve", subject="grace"))
    handle = quoted(runner)
    assert runner.get(f"/quotes/{handle}").json()["p_next_action"] == "approve"
    refused = runner.post("/jobs", json={"quote": handle}, headers={"Idempotency-Key": "k"})
    assert refused.status_code == 403
    assert refused.json() == {"error": {"code": "approval_required", "next": "approve"}}
    assert runner.post("/approvals", json={"quote": handle}).status_code == 403
    assert approver.get(f"/quotes/{handle}").json()["terms"]["quote"] == handle
    approved = approver.post("/approvals", json={"quote": handle})
    assert approved.status_code == 201
    assert {**approved.json(), "digest": "", "approved_at": ""} == {
        "handle": handle,
        "digest": "",
        "state": "quoted",
        "p_next_action": "run",
        "approved_by": "grace",
        "approved_at": "",
    }
    again = approver.post("/approvals", json={"quote": handle})
    assert (again.status_code, again.json()) == (200, approved.json())
    started = runner.post("/jobs", json={"quote": handle}, headers={"Idempotency-Key": "k"})
    assert (started.status_code, started.json()["state"]) == (201, "accepted")
    assert runner.get(f"/quotes/{handle}").json()["job"] == started.json()["handle"]


def test_an_approval_is_of_one_quote(service: RunningCore, connect: Connect, quoted: Quoted) -> None:
    client = connect(service.key(service.account("approve")))
    approved, other = quoted(client), quoted(client)
    client.post("/approvals", json={"quote": approved})
    assert client.post("/jobs", json={"quote": other}).status_code == 403
    assert client.post("/jobs", json={"quote": approved}).status_code == 201
