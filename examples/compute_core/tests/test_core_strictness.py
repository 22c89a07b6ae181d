"""What is no proper request is refused, with nothing of it in the reply or the log."""

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compute_core.testing import RunningCore, connected

Quoted = Callable[..., str]

MARK = "s3cret"
SOURCE = f"sha256:{'5e' * 32}"
JOB = {"workflow": "triage@3", "source_digest": SOURCE}
DECLARED = ["workflow", "source_digest", "evidence", "labels", "max_price", "account_id", "job", "quote", "quotes"]


@pytest.fixture
def service(shared_service: RunningCore) -> RunningCore:
    return shared_service


def problems(reply: httpx2.Response) -> list[tuple[str, str]]:
    assert reply.status_code == 422
    error = reply.json()["error"]
    assert error["code"] == "invalid_input"
    return [(problem["path"], problem["expected"]) for problem in error["detail"]["problems"]]


@pytest.mark.parametrize(
    ("job", "path", "expected"),
    [
        ({**JOB, MARK: 1}, "body.job", f"no members but {', '.join(DECLARED[:6])}"),
        ({**JOB, "labels": {MARK: 5}}, "body.job.labels.*", "text"),
        ({**JOB, "labels": {"workflow": 5}}, "body.job.labels.*", "text"),
        ({**JOB, "labels": {MARK: MARK * 40}}, "body.job.labels.*", "at most 200 characters"),
        ({**JOB, "labels": {str(number): MARK for number in range(17)}}, "body.job.labels", "at most 16 items"),
        ({**JOB, "labels": [MARK]}, "body.job.labels", "an object"),
        ({**JOB, "labels": None}, "body.job.labels", "a value"),
        ({**JOB, "source_digest": MARK}, "body.job.source_digest", "text that matches ^sha256:[0-9a-f]{64}$"),
        ({**JOB, "source_digest": SOURCE + "\n"}, "body.job.source_digest", "text that matches ^sha256:[0-9a-f]{64}$"),
        ({**JOB, "source_digest": 7}, "body.job.source_digest", "text"),
        ({**JOB, "evidence": [SOURCE, MARK]}, "body.job.evidence.1", "text that matches ^sha256:[0-9a-f]{64}$"),
        ({**JOB, "evidence": [SOURCE, SOURCE]}, "body.job.evidence", "items that are all different"),
        ({**JOB, "evidence": MARK}, "body.job.evidence", "a list"),
        ({**JOB, "max_price": 3}, "body.job.max_price", "text"),
        ({"workflow": "triage@3"}, "body.job.source_digest", "a value"),
        (MARK, "body.job", "an object"),
        (None, "body.job", "a value"),
    ],
)
def test_problems_have_paths_and_no_values(client: httpx2.Client, job: object, path: str, expected: str) -> None:
    reply = client.post("/quotes", json={"job": job})
    assert problems(reply) == [(path, expected)]
    assert MARK not in reply.text


def test_there_are_at_most_eight_problems(client: httpx2.Client) -> None:
    reply = client.post("/quotes", json={"job": {**JOB, "evidence": [f"{MARK}{number}" for number in range(60)]}})
    assert len(problems(reply)) == 8


@pytest.mark.parametrize(
    "quotes", [[], ["x"], [f"qt_{number:026}" for number in range(101)], [f"qt_{'0' * 26}"] * 2, "x"]
)
def test_a_batch_is_of_quotes_that_differ(client: httpx2.Client, quotes: object) -> None:
    assert problems(client.post("/batches", json={"quotes": quotes}))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"quote": "a", "quote": "b"}',
        b'{"quote": NaN}',
        b'{"quote": "\\ud800"}',
        b'{"\\ud800": 1}',
        b'{"quote": "\xff"}',
        b"\xef\xbb\xbf{}",
        '{"quote": "x"}'.encode("utf-16"),
        b"[" * 100_000,
        b'{"quote": ' + b"9" * 5000 + b"}",
    ],
)
def test_what_is_no_json_is_refused(client: httpx2.Client, body: bytes) -> None:
    reply = client.post("/jobs", content=body, headers={"Content-Type": "application/json"})
    assert (reply.status_code, reply.json()) == (400, {"error": {"code": "invalid_input"}})


@pytest.mark.parametrize("value", [[], "text", 5, True, None])
def test_a_body_is_an_object(client: httpx2.Client, value: object) -> None:
    body = json.dumps(value).encode()
    reply = client.post("/jobs", content=body, headers={"Content-Type": "application/json"})
    assert problems(reply) == [("body", "an object")]


@pytest.mark.parametrize(
    ("media_type", "status"),
    [
        ("application/json", 404),
        ("Application/JSON; charset=UTF-8", 404),
        ('application/json; charset="utf-8"', 404),
        ("application/json; charset=latin-1", 415),
        ("application/jsonx", 415),
        ("text/plain", 415),
        ("", 415),
    ],
)
def test_a_body_says_that_it_is_json(client: httpx2.Client, media_type: str, status: int) -> None:
    body = json.dumps({"quote": f"qt_{'0' * 26}"}).encode()
    assert client.post("/jobs", content=body, headers={"Content-Type": media_type}).status_code == status


def chunks(size: int) -> Iterator[bytes]:
    for _ in range(0, size, 8192):
        yield b" " * 8192


@pytest.mark.parametrize("chunked", [False, True])
def test_bodies_are_bounded(client: httpx2.Client, chunked: bool) -> None:
    headers = {"Content-Type": "application/json"}
    size = 256 * 1024
    for sent, status in ((size, 400), (size + 8192, 413)):
        content = chunks(sent) if chunked else b" " * sent
        assert client.post("/jobs", content=content, headers=headers).status_code == status


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/jobs", 405, "method_not_allowed"),
        ("DELETE", f"/jobs/jb_{'0' * 26}", 405, "method_not_allowed"),
        ("GET", "/jobs/..%2Fkey", 404, "not_found"),
    ],
)
def test_errors_have_one_shape(client: httpx2.Client, method: str, path: str, status: int, code: str) -> None:
    reply = client.request(method, path)
    assert (reply.status_code, reply.json()) == (status, {"error": {"code": code}})
    assert ("allow" in reply.headers) == (status == 405)


@pytest.mark.parametrize(
    ("query", "path"),
    [
        (f"other={MARK}", "query"),
        (f"account_id=acct_{'0' * 12}&account_id=acct_{'0' * 12}", "query"),
        (f"account_id={MARK}", "query.account_id"),
        (f"account_id=acct_{'0' * 12}%0a", "query.account_id"),
        ("account_id=", "query.account_id"),
    ],
)
def test_a_query_is_an_account_or_nothing(client: httpx2.Client, query: str, path: str) -> None:
    reply = client.get(f"/jobs/jb_{'0' * 26}?{query}")
    assert [found for found, _ in problems(reply)] == [path]
    assert MARK not in reply.text


def test_a_body_comes_without_a_query(client: httpx2.Client, quoted: Quoted) -> None:
    reply = client.post(f"/jobs?token={MARK}", json={"quote": quoted(client)})
    assert problems(reply) == [("query", "nothing")]


def test_a_fault_tells_nothing(
    service: RunningCore, client: httpx2.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_content: bytes) -> str:
        raise LookupError(MARK)

    monkeypatch.setattr(service.core.signer, "signature", fail)
    with caplog.at_level(logging.DEBUG):
        reply = client.post("/quotes", json={"job": JOB})
    assert (reply.status_code, reply.json()) == (500, {"error": {"code": "internal"}})
    assert MARK not in caplog.text
    assert "LookupError at fail" in caplog.text


def test_logs_hold_nothing_that_was_sent(
    service: RunningCore, client: httpx2.Client, quoted: Quoted, caplog: pytest.LogCaptureFixture
) -> None:
    key = client.headers["authorization"].removeprefix("Bearer ")
    with caplog.at_level(logging.DEBUG, logger="compute_core"), caplog.at_level(logging.DEBUG, logger="uvicorn"):
        quote = quoted(client, labels={MARK: MARK})
        handle = client.post("/jobs", json={"quote": quote}, headers={"Idempotency-Key": MARK}).json()["handle"]
        service.work()
        result = client.get(f"/results/{handle}").json()
        client.get(f"/jobs/{MARK}?account_id={MARK}")
        client.post("/introspect", data={"token": key})
    assert "POST /quotes 201" in caplog.text
    assert "GET /jobs/{handle} 422" in caplog.text
    for sent in (MARK, key, result["outcome"], SOURCE):
        assert sent not in caplog.text


@pytest.fixture(scope="module")
def steady(shared_service: RunningCore) -> Iterator[httpx2.Client]:
    """A client that outlives one example."""
    with connected(shared_service.url, shared_service.key(shared_service.account())) as client:
        yield client


MARKED = st.sampled_from([MARK, f"{MARK}\u0000", f"sha256:{MARK}", f"acct_{MARK}"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | MARKED
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MARKED | st.sampled_from(DECLARED), inner, max_size=4),
    max_leaves=12,
)
BODIES = VALUES | st.fixed_dictionaries({"job": st.fixed_dictionaries(dict.fromkeys(("workflow", "labels"), VALUES))})


DIGESTS = st.binary(min_size=32, max_size=32).map(lambda content: f"sha256:{content.hex()}")


@settings(max_examples=150, deadline=None)
@given(body=BODIES, path=st.sampled_from(["/quotes", "/jobs", "/batches", "/approvals"]))
def test_no_body_is_echoed_or_breaks_anything(steady: httpx2.Client, body: Any, path: str) -> None:
    content = json.dumps(body).encode()
    reply = steady.post(path, content=content, headers={"Content-Type": "application/json"})
    assert reply.status_code == 422
    assert MARK not in reply.text
    assert 1 <= len(problems(reply)) <= 8


@settings(max_examples=60, deadline=None)
@given(
    job=st.fixed_dictionaries(
        {
            "workflow": st.from_regex(r"\A[a-z][a-z0-9-]{0,62}@[0-9]{1,9}\Z"),
            "source_digest": DIGESTS,
        },
        optional={
            "evidence": st.lists(DIGESTS, max_size=4, unique=True),
            "labels": st.dictionaries(
                st.text(st.characters(codec="utf-8"), max_size=20).filter(lambda name: name != "account_id"),
                st.text(st.characters(codec="utf-8"), max_size=200),
                max_size=4,
            ),
        },
    )
)
def test_what_fits_is_quoted_as_it_is(steady: httpx2.Client, job: dict[str, Any]) -> None:
    reply = steady.post("/quotes", json={"job": job})
    assert reply.status_code == 201
    assert reply.json()["terms"]["job"] == job
