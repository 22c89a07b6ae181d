"""What goes to the service and what comes back: only what belongs there, and nothing of one caller to another."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from .servers import mint, serving
from .shapes import UNKNOWN, check_call
from .stub import Answer, Cut, Service, always, reply, service
from .wire import REVISIONS, Endpoint
from .world import SOURCE, WORKFLOW, job_of

ACCOUNT = "acct_0123456789ab"
MARK = "s3cret"
WORK = {"handle": UNKNOWN["qt"], "digest": f"sha256:{'0' * 64}", "state": "quoted"}
PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


@dataclass(frozen=True, slots=True)
class Place:
    """Two callers of a server, the service that it is to ask, and a proxy that it is not to."""

    service: Service
    proxy: Service
    ada: Endpoint
    bob: Endpoint

    def answered(self, answer: Answer) -> dict[str, Any]:
        """What ada is told about a quote when the service answers so."""
        self.service.answer = answer
        return check_call(self.ada.call("lithi.quote", {"job": job_of()}))


@pytest.fixture(scope="module")
def shared_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    keys = tmp_path_factory.mktemp("lithi") / "keys.json"
    ada, bob = mint(keys, "ada", ACCOUNT), mint(keys, "bob", "acct_bobbobbobbob")
    with service(always(None)) as stub, service(always(reply(200, WORK))) as proxy:
        more = dict.fromkeys(PROXIES, proxy.url)
        with serving(keys, stub.url, more=more) as server:
            yield Place(stub, proxy, server.endpoint(ada), server.endpoint(bob))


@pytest.fixture
def place(shared_place: Place) -> Place:
    """The same, and nothing heard yet."""
    shared_place.service.heard.clear()
    return shared_place


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_tool_is_one_request(place: Place, revision: str) -> None:
    place.service.answer = always(reply(200, WORK))
    calls: list[tuple[str, dict[str, Any]]] = [
        ("lithi.quote", {"job": job_of(account_id=ACCOUNT)}),
        ("lithi.run", {"quote": UNKNOWN["qt"], "account_id": ACCOUNT}),
        ("lithi.batch", {"quotes": [UNKNOWN["qt"]]}),
        ("lithi.status", {"handle": UNKNOWN["jb"], "account_id": ACCOUNT}),
        ("lithi.result", {"handle": UNKNOWN["jb"]}),
    ]
    for tool, arguments in calls:
        assert place.ada.call(tool, arguments, revision).work == WORK
    seen = [(heard.method, heard.target, json.loads(heard.body or b"null")) for heard in place.service.heard]
    assert seen == [
        ("POST", "/quotes", {"job": {"workflow": WORKFLOW, "source_digest": SOURCE, "account_id": ACCOUNT}}),
        ("POST", "/jobs", {"quote": UNKNOWN["qt"], "account_id": ACCOUNT}),
        ("POST", "/batches", {"quotes": [UNKNOWN["qt"]]}),
        ("GET", f"/jobs/{UNKNOWN['jb']}?account_id={ACCOUNT}", None),
        ("GET", f"/jobs/{UNKNOWN['jb']}/result", None),
    ]
    assert {heard.headers["authorization"] for heard in place.service.heard} == {f"Bearer {place.ada.key}"}


def test_nothing_goes_by_a_proxy_of_the_environment(place: Place) -> None:
    assert place.answered(always(reply(200, WORK))) == WORK
    assert place.proxy.heard == []


def test_headers_of_a_client_stay_here(place: Place) -> None:
    place.service.answer = always(reply(200, WORK))
    request = place.ada.call_request(REVISIONS[0], "lithi.quote", {"job": job_of()})
    for name in (
        "Cookie",
        "X-Forwarded-For",
        "X-Account-Id",
        "Idempotency-Key",
        "Traceparent",
        "X-Http-Method-Override",
    ):
        request = request.with_header(name, MARK)
    assert place.ada.send(request).work == WORK
    (heard,) = place.service.heard
    assert MARK not in json.dumps([heard.target, dict(heard.headers), heard.body.decode()])


def test_no_caller_gets_anything_of_another(place: Place) -> None:
    place.service.answer = always(reply(200, WORK, Set_Cookie="session=s3cret; Path=/"))
    for endpoint in (place.ada, place.bob, place.ada):
        assert endpoint.call("lithi.quote", {"job": job_of()}).work == WORK
    assert [heard.headers["authorization"] for heard in place.service.heard] == [
        f"Bearer {endpoint.key}" for endpoint in (place.ada, place.bob, place.ada)
    ]
    assert all("cookie" not in heard.headers for heard in place.service.heard)


def test_what_comes_after_an_answer_is_no_answer_to_somebody_else(place: Place) -> None:
    """A service that answers twice must not have its second answer taken for that to the next caller."""
    others = {**WORK, "handle": f"qt_{'1' * 26}"}
    told = place.answered(always(reply(200, WORK) + reply(200, others)))
    assert told == WORK or told["error"]["kind"] in ("unavailable", "internal")
    place.service.answer = always(reply(200, WORK))
    assert place.bob.call("lithi.quote", {"job": job_of()}).work == WORK


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("where", ["/elsewhere", "{proxy}/quotes"])
def test_redirects_are_not_followed(place: Place, status: int, where: str) -> None:
    location = where.format(proxy=place.proxy.url)
    assert place.answered(always(reply(status, WORK, Location=location)))["error"]["kind"] == "internal"
    assert [heard.target for heard in place.service.heard] == ["/quotes"]
    assert place.proxy.heard == []


@pytest.mark.parametrize("next_action", ["approve", "run", "wait", "read_result", "fetch_terms", "none"])
def test_what_fits_the_declared_result_is_told(place: Place, next_action: str) -> None:
    whole = {**WORK, "p_next_action": next_action}
    assert place.answered(always(reply(201, {**whole, "terms": {MARK: MARK}, "price": MARK, "account": MARK}))) == whole


UNFIT: dict[str, Any] = {
    "nothing": {},
    "no digest": {"handle": WORK["handle"], "state": "quoted"},
    "another handle": {**WORK, "handle": MARK},
    "a line more": {**WORK, "handle": f"{WORK['handle']}\n"},
    "another digest": {**WORK, "digest": MARK},
    "another state": {**WORK, "state": MARK},
    "another next action": {**WORK, "p_next_action": MARK},
    "null": {**WORK, "p_next_action": None},
    "a number": {**WORK, "state": 1},
    "a list": [WORK],
    "text": MARK,
    "an error": {"error": {"code": MARK}},
}


@pytest.mark.parametrize("unfit", UNFIT)
def test_what_does_not_fit_it_is_not(place: Place, unfit: str) -> None:
    told = place.answered(always(reply(201, UNFIT[unfit])))
    assert told["error"]["kind"] == "internal"
    assert MARK not in json.dumps(told)


WHOLE = json.dumps(WORK).encode()

STRANGE: dict[str, bytes | None] = {
    "compressed": reply(200, gzip.compress(WHOLE), Content_Encoding="gzip"),
    "a name twice": reply(200, WHOLE[:-1] + b', "state": "failed"}'),
    "no finite number": reply(200, WHOLE[:-1] + b', "x": NaN}'),
    "half of a character": reply(200, WHOLE[:-1] + b', "x": "\\ud800"}'),
    "deep": reply(200, WHOLE[:-1] + b', "x": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"),
    "no UTF-8": reply(200, b"\xff"),
    "too long": reply(200, WHOLE[:-1] + b', "x": "' + b"x" * 2_000_000 + b'"}'),
    "too long, in chunks": Cut(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n" + b" " * 0x200000),
    "a long head": Cut(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000 + b"\r\n"),
    "another protocol": Cut(b"HTTP/1.1 101 Switching\r\nUpgrade: s3cret\r\n\r\n"),
    "two lengths": Cut(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} "),
}


@pytest.mark.parametrize("strange", STRANGE)
def test_strange_answers(place: Place, strange: str) -> None:
    told = place.answered(always(STRANGE[strange]))
    assert told["error"]["kind"] in ("internal", "unavailable")
    assert place.answered(always(reply(200, WORK))) == WORK


STATUSES = {
    400: "invalid_input",
    401: "denied",
    403: "denied",
    404: "not_found",
    409: "conflict",
    410: "quote_expired",
    429: "busy",
    500: "internal",
    503: "unavailable",
}


@pytest.mark.parametrize("status", STATUSES)
def test_a_status_is_a_refusal(place: Place, status: int) -> None:
    for body in (b"", b"<html>s3cret</html>", b"{}"):
        told = place.answered(always(reply(status, body)))
        assert told["error"]["kind"] == STATUSES[status]
        assert MARK not in json.dumps(told)


def test_text_of_the_service_is_data_that_is_short_and_has_no_control_characters(place: Place) -> None:
    strange = "\u202e\x1b[31m\u2066\x00" + "x" * 100_000
    told = place.answered(always(reply(409, {"error": {"code": "conflict", "next": strange, "detail": {strange: 1}}})))
    assert told["error"]["kind"] == "conflict"
    assert "x" * 100 not in told["error"]["message"]
    whole = json.dumps(told, ensure_ascii=False)
    assert len(whole) < 16 * 1024
    assert not any(character in whole for character in "\u202e\x1b\u2066")


def test_kinds_are_those_that_are_declared(place: Place) -> None:
    for code in ("approval_required", "not_ready", "quote_expired"):
        assert place.answered(always(reply(403, {"error": {"code": code}})))["error"]["kind"] == code
    told = place.answered(always(reply(403, {"error": {"code": "made_up"}})))
    assert told["error"]["kind"] == "denied"
