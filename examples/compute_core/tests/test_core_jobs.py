"""Jobs and batches: started once whatever happens, all or none, with results that can be checked."""

import base64
import hashlib
import json
import socket
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from compute_core.testing import RunningCore, connected, running_core
from compute_core.worker import CLAIM_SECONDS, claim_next, finish

Connect = Callable[[str | None], httpx2.Client]
Quoted = Callable[..., str]

SOURCE = f"sha256:{'5e' * 32}"
WORK_MEMBERS = ("handle", "digest", "state", "p_next_action")


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def count(service: RunningCore, table: str) -> int:
    with service.core.store.read() as db:
        return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 - a name of the test's own


def test_a_job_runs_to_a_result_that_can_be_checked(
    service: RunningCore, client: httpx2.Client, quoted: Quoted
) -> None:
    evidence = [f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"]
    quote = quoted(client, evidence=evidence, labels={"team": "ops"})
    started = client.post("/jobs", json={"quote": quote})
    job = started.json()
    handle = job["handle"]
    assert (started.status_code, started.headers["location"]) == (201, f"/jobs/{handle}")
    assert [job[name] for name in WORK_MEMBERS] == [handle, digest(canonical(job["record"])), "accepted", "wait"]
    assert (job["quote"], job["price"]) == (quote, "3.05 EUR")
    assert client.get(f"/jobs/{handle}").json() == job

    claim = claim_next(service.core)
    assert claim is not None
    assert client.get(f"/jobs/{handle}").json() == {**job, "state": "running"}
    for path in (f"/jobs/{handle}/result", f"/results/{handle}"):
        early = client.get(path)
        assert (early.status_code, early.json()) == (409, {"error": {"code": "not_ready", "next": "wait"}})

    assert finish(service.core, claim)
    ended = client.get(f"/jobs/{handle}").json()
    assert {**ended, "finished_at": ""} == {
        **job,
        "state": "succeeded",
        "p_next_action": "read_result",
        "finished_at": "",
    }
    result = client.get(f"/jobs/{handle}/result").json()
    assert (result["handle"], result["state"], result["p_next_action"]) == (handle, "succeeded", "none")
    content = client.get(f"/results/{handle}")
    assert result["digest"] == digest(content.content)
    assert result["size"] == len(content.content)
    shown = base64.b64encode(bytes.fromhex(result["digest"].removeprefix("sha256:"))).decode("ascii")
    assert content.headers["repr-digest"] == f"sha-256=:{shown}:"

    chain = [digest(canonical(["triage@3", SOURCE, {"team": "ops"}]))]
    for item in evidence:
        chain.append(digest(canonical([chain[-1], item])))
    assert content.json() == {
        "job": handle,
        "quote": quote,
        "workflow": "triage@3",
        "state": "succeeded",
        "chain": chain,
        "outcome": chain[-1],
    }


def test_a_job_that_fails_has_a_result_as_well(service: RunningCore, client: httpx2.Client, quoted: Quoted) -> None:
    handle = client.post("/jobs", json={"quote": quoted(client, evidence=[SOURCE])}).json()["handle"]
    assert service.work() == 1
    assert client.get(f"/jobs/{handle}").json()["state"] == "failed"
    assert client.get(f"/jobs/{handle}/result").json()["state"] == "failed"
    assert client.get(f"/results/{handle}").json()["reason"] == "source_as_evidence"


def test_a_quote_starts_one_job(service: RunningCore, client: httpx2.Client, quoted: Quoted) -> None:
    quote = quoted(client)
    first = client.post("/jobs", json={"quote": quote})
    service.now += 5000  # too late to start anything from it
    for headers in ({}, {"Idempotency-Key": "one"}, {"Idempotency-Key": "two"}, {"Idempotency-Key": "one"}):
        again = client.post("/jobs", json={"quote": quote}, headers=headers)
        assert (again.status_code, again.json()) == (200, first.json())
    assert service.core.job_started.is_set()  # the worker need not look for it
    assert service.work() == 1
    assert client.post("/jobs", json={"quote": quote}).json()["state"] == "succeeded"


def test_a_key_is_for_one_request(service: RunningCore, client: httpx2.Client, quoted: Quoted) -> None:
    headers = {"Idempotency-Key": "same"}
    quote, other = quoted(client), quoted(client)
    account = client.get("/key").json()["account"]
    first = client.post("/jobs", json={"quote": quote}, headers=headers)
    again = client.post("/jobs", json={"account_id": account, "quote": quote}, headers=headers)
    assert (again.status_code, again.json()) == (200, first.json())
    refused = client.post("/jobs", json={"quote": other}, headers=headers)
    assert (refused.status_code, refused.json()) == (409, {"error": {"code": "conflict"}})
    # Another operation, and another account, have keys of their own.
    assert client.post("/batches", json={"quotes": [other]}, headers=headers).status_code == 201


def test_accounts_share_no_keys(service: RunningCore, connect: Connect, quoted: Quoted) -> None:
    handles = set()
    for client in (connect(service.key(service.account())), connect(service.key(service.account()))):
        reply = client.post("/jobs", json={"quote": quoted(client)}, headers={"Idempotency-Key": "same"})
        assert reply.status_code == 201
        handles.add(reply.json()["handle"])
    assert len(handles) == 2


def test_a_refusal_is_not_remembered(service: RunningCore, connect: Connect, quoted: Quoted) -> None:
    client = connect(service.key(service.account("approve")))
    headers = {"Idempotency-Key": "same"}
    first, second = quoted(client), quoted(client)
    assert client.post("/jobs", json={"quote": first}, headers=headers).status_code == 403
    assert count(service, "requests") == 0
    client.post("/approvals", json={"quote": second})
    assert client.post("/jobs", json={"quote": second}, headers=headers).status_code == 201


@pytest.mark.parametrize("key", ["", "with space", "x" * 256, "é"])
def test_a_key_is_short_and_visible(client: httpx2.Client, quoted: Quoted, key: str) -> None:
    reply = client.post("/jobs", json={"quote": quoted(client)}, headers={b"Idempotency-Key": key.encode("latin-1")})
    assert reply.status_code == 422
    assert reply.json()["error"]["detail"]["problems"][0]["path"] == "header.Idempotency-Key"


def test_racing_requests_start_one_job(service: RunningCore, client: httpx2.Client, quoted: Quoted) -> None:
    quote = quoted(client)
    with ThreadPoolExecutor(16) as threads:
        replies = list(
            threads.map(
                lambda _: client.post("/jobs", json={"quote": quote}, headers={"Idempotency-Key": "race"}), range(32)
            )
        )
    assert len({reply.json()["handle"] for reply in replies}) == 1
    assert sorted(reply.status_code for reply in replies) == [200] * 31 + [201]
    assert (count(service, "jobs"), count(service, "requests")) == (1, 1)
    assert service.work() == 1


def test_racing_bodies_under_one_key_start_one_job(service: RunningCore, client: httpx2.Client, quoted: Quoted) -> None:
    quotes = [quoted(client) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        statuses = list(
            threads.map(
                lambda quote: (
                    client.post("/jobs", json={"quote": quote}, headers={"Idempotency-Key": "race"}).status_code
                ),
                quotes,
            )
        )
    assert sorted(statuses) == [201] + [409] * 7
    assert count(service, "jobs") == 1


def test_a_lost_reply_leaves_one_job(service: RunningCore, client: httpx2.Client, quoted: Quoted) -> None:
    body = json.dumps({"quote": quoted(client)}).encode()
    head = [
        "POST /jobs HTTP/1.1",
        "Host: core",
        f"Authorization: {client.headers['authorization']}",
        "Idempotency-Key: lost",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "",
        "",
    ]
    address = urlsplit(service.url)
    for _ in range(5):
        with socket.create_connection((address.hostname, address.port)) as lost:
            lost.sendall("\r\n".join(head).encode() + body)
    replies = [client.post("/jobs", content=body, headers=lost_headers()) for _ in range(2)]
    assert len({reply.json()["handle"] for reply in replies}) == 1
    assert count(service, "jobs") == 1


def lost_headers() -> dict[str, str]:
    return {"Idempotency-Key": "lost", "Content-Type": "application/json"}


def test_a_file_kept_busy_starts_nothing(tmp_path: Path, quoted: Quoted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compute_core.store.PATIENCE", 0.05)
    path = tmp_path / "busy.db"
    with running_core(path) as service, connected(service.url, service.key(service.account())) as client:
        body, headers = {"quote": quoted(client)}, {"Idempotency-Key": "busy"}
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            refused = client.post("/jobs", json=body, headers=headers)
        assert (refused.status_code, refused.json()) == (503, {"error": {"code": "unavailable"}})
        assert refused.headers["retry-after"] == "1"
        assert client.post("/jobs", json=body, headers=headers).status_code == 201


def test_a_batch_starts_all_its_jobs(service: RunningCore, client: httpx2.Client, quoted: Quoted) -> None:
    quotes = [quoted(client, labels={"number": str(number)}) for number in range(3)]
    started = client.post("/batches", json={"quotes": quotes}, headers={"Idempotency-Key": "batch"})
    batch = started.json()
    assert started.status_code == 201
    assert batch["handle"].startswith("bt_")
    assert [batch[name] for name in WORK_MEMBERS[1:]] == [digest(canonical(batch["record"])), "accepted", "wait"]
    assert batch["price"] == "7.65 EUR"
    assert service.core.job_started.is_set()
    other = client.post("/batches", json={"quotes": [quoted(client)]}, headers={"Idempotency-Key": "batch"})
    assert (other.status_code, other.json()) == (409, {"error": {"code": "conflict"}})
    items = client.get(f"/batches/{batch['handle']}").json()["items"]
    assert [item["quote"] for item in items] == quotes
    for item in items:
        job = client.get(f"/jobs/{item['job']['handle']}").json()
        assert {name: job[name] for name in WORK_MEMBERS} == item["job"]
        assert job["batch"] == batch["handle"]

    claim = claim_next(service.core)
    assert claim is not None
    finish(service.core, claim)
    assert client.get(f"/batches/{batch['handle']}").json()["state"] == "running"
    assert service.work() == 2
    ended = client.get(f"/batches/{batch['handle']}").json()
    assert (ended["state"], ended["p_next_action"], ended["digest"]) == ("succeeded", "read_result", batch["digest"])


def test_a_batch_with_a_failed_job_has_failed(service: RunningCore, client: httpx2.Client, quoted: Quoted) -> None:
    quotes = [quoted(client), quoted(client, evidence=[SOURCE])]
    handle = client.post("/batches", json={"quotes": quotes}).json()["handle"]
    service.work()
    assert client.get(f"/batches/{handle}").json()["state"] == "failed"


def test_a_batch_is_made_once(service: RunningCore, client: httpx2.Client, quoted: Quoted) -> None:
    quotes = [quoted(client), quoted(client)]
    first = client.post("/batches", json={"quotes": quotes})
    again = client.post("/batches", json={"quotes": quotes}, headers={"Idempotency-Key": "later"})
    assert (again.status_code, again.json()) == (200, first.json())
    for other in (quotes[:1], [*quotes, quoted(client)]):
        reply = client.post("/batches", json={"quotes": other})
        assert (reply.status_code, reply.json()["error"]) == (
            409,
            {"code": "conflict", "detail": {"path": "body.quotes.0"}},
        )
    job = client.get(f"/batches/{first.json()['handle']}").json()["items"][0]["job"]["handle"]
    assert client.post("/jobs", json={"quote": quotes[0]}).json()["handle"] == job
    assert count(service, "jobs") == 2


def test_a_batch_starts_all_or_nothing(service: RunningCore, connect: Connect, quoted: Quoted) -> None:
    client = connect(service.key(service.account("approve")))
    headers = {"Idempotency-Key": "batch"}
    quotes = [quoted(client), quoted(client)]
    client.post("/approvals", json={"quote": quotes[0]})
    refused = client.post("/batches", json={"quotes": quotes}, headers=headers)
    assert refused.status_code == 403
    assert refused.json()["error"] == {
        "code": "approval_required",
        "next": "approve",
        "detail": {"path": "body.quotes.1"},
    }
    assert client.post("/batches", json={"quotes": [quotes[0], f"qt_{'0' * 26}"]}).status_code == 404
    assert [count(service, table) for table in ("jobs", "batches", "requests")] == [0, 0, 0]
    client.post("/approvals", json={"quote": quotes[1]})
    assert client.post("/batches", json={"quotes": quotes}, headers=headers).status_code == 201


def test_racing_batches_share_no_quote(service: RunningCore, client: httpx2.Client, quoted: Quoted) -> None:
    shared = quoted(client)
    bodies = [{"quotes": [quoted(client), shared]} for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(lambda body: client.post("/batches", json=body).status_code, bodies))
    assert sorted(statuses) == [201] + [409] * 7
    assert (count(service, "batches"), count(service, "jobs")) == (1, 2)


def test_workers_never_share_a_job(service: RunningCore, client: httpx2.Client, quoted: Quoted) -> None:
    client.post("/batches", json={"quotes": [quoted(client) for _ in range(6)]})
    with ThreadPoolExecutor(8) as threads:
        claims = list(threads.map(lambda _: claim_next(service.core), range(12)))
    claimed = [claim.handle for claim in claims if claim is not None]
    assert (len(claimed), len(set(claimed))) == (6, 6)


def test_the_job_of_a_dead_worker_gets_one_result(service: RunningCore, client: httpx2.Client, quoted: Quoted) -> None:
    handle = client.post("/jobs", json={"quote": quoted(client)}).json()["handle"]
    dead = claim_next(service.core)
    assert dead is not None
    service.now += CLAIM_SECONDS - 1
    assert claim_next(service.core) is None
    service.now += 1
    assert service.work() == 1
    before = client.get(f"/jobs/{handle}").json()
    assert not finish(service.core, dead)
    assert client.get(f"/jobs/{handle}").json() == before
