"""What verb functions build requests from: every value stays in its place, whatever is in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from verbc.support.http_request import HttpRequest, http_request
from verbc.support.members import nullable
from verbc.support.model import Closed, Open
from verbc.support.outbound import Outbound, Outgoing
from verbc.support.refusal import Refusal

from .rest_services import echoing_service

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Labels(Open):
    owner: str | None = None


class Job(Closed):
    """As models are generated: names of their own, and None for what was left out."""

    class_: str = Field(alias="class")
    note: str | None = None
    labels: Labels | None = None


class Params(Closed):
    id: str
    note: str | None = None


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with echoing_service() as url:
        yield url


def told(url: str, request: HttpRequest) -> Any:
    """What the service says that reached it."""

    async def ask() -> Any:
        outbound = Outbound()
        try:
            outgoing = Outgoing(request.method, url + request.target, body=request.body)
            deadline = asyncio.get_running_loop().time() + 1000
            return json.loads((await outbound.send(outgoing, deadline=deadline, output=1 << 24)).body)
        finally:
            await outbound.close()

    return asyncio.run(ask())


def refusal(value: Any) -> dict[str, Any]:
    with pytest.raises(Refusal) as refused:
        http_request("GET", "/jobs/<handle>", segments={"handle": value})
    return refused.value.as_error()


def test_a_request_without_anything() -> None:
    assert http_request("GET", "/jobs") == HttpRequest("GET", "/jobs")


@pytest.mark.parametrize(
    ("value", "segment"),
    [
        ("jb_1", "jb_1"),
        ("a/b", "a%2Fb"),
        ("../admin", "..%2Fadmin"),
        ("...", "..."),
        (".a", ".a"),
        ("%2e%2e", "%252e%252e"),
        ("a?b#c", "a%3Fb%23c"),
        ("a b+c", "a%20b%2Bc"),
        ("\r\nHost: x", "%0D%0AHost%3A%20x"),
        ("a\\b", "a%5Cb"),
        ("\0", "%00"),
        ("é𝄞", "%C3%A9%F0%9D%84%9E"),
        ("@evil.example", "%40evil.example"),
        ("<id>", "%3Cid%3E"),
        (" ", "%20"),
        (7, "7"),
        (-1.5, "-1.5"),
        (True, "true"),
    ],
)
def test_a_value_is_one_segment(value: Any, segment: str) -> None:
    request = http_request("GET", "/jobs/<handle>/result", segments={"handle": value})
    assert request == HttpRequest("GET", f"/jobs/{segment}/result")


@pytest.mark.parametrize("value", ["", ".", ".."])
def test_what_could_be_another_place_is_no_segment(value: str) -> None:
    assert refusal(value) == {
        "kind": "invalid_input",
        "message": "`handle` is a part of an address: not empty, and not `.` or `..`.",
    }


def test_places_are_filled_once_and_in_any_order() -> None:
    segments = {"b": "<a>", "a": "<b>", "odd-name": "x"}
    assert http_request("GET", "/<a>/<b>/<odd-name>", segments=segments).target == "/%3Cb%3E/%3Ca%3E/x"


def test_a_query_has_what_was_given() -> None:
    query = {"limit": 7, "all": True, "none": None, "off": False, "share": 0.5, "tags": ["a", "b&c"], "empty": []}
    target = "/jobs?limit=7&all=true&off=false&share=0.5&tags=a&tags=b%26c"
    assert http_request("GET", "/jobs", query=query) == HttpRequest("GET", target)
    assert http_request("GET", "/jobs", query={"none": None}).target == "/jobs"


def test_names_in_a_query_are_encoded_too() -> None:
    assert http_request("GET", "/", query={"filter[a&b]": "="}).target == "/?filter%5Ba%26b%5D=%3D"


@pytest.mark.parametrize("value", [{}, {"a": 1}, [["a"]], [None], Labels(), float("nan"), float("inf")])
def test_what_has_no_form_in_an_address_is_a_fault(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        http_request("GET", "/jobs", query={"q": value})
    with pytest.raises((TypeError, ValueError)):
        http_request("GET", "/<q>", segments={"q": value})


def test_a_segment_that_nobody_gave_is_a_fault() -> None:
    with pytest.raises(KeyError):
        http_request("GET", "/<handle>", segments={})
    with pytest.raises(TypeError):
        http_request("GET", "/<handle>", segments={"handle": None})


def test_an_address_has_an_end() -> None:
    fitting = 60_000 - len("/jobs/")
    assert len(http_request("GET", "/jobs/<handle>", segments={"handle": "x" * fitting}).target) == 60_000
    too_long = {"kind": "invalid_input", "message": "The arguments are too long for an address."}
    assert refusal("x" * (fitting + 1)) == too_long
    assert refusal("\n" * 20_000) == too_long
    with pytest.raises(Refusal):
        http_request("GET", "/jobs", query={"q": ["x" * 100] * 1000})


def test_a_body_has_what_was_given() -> None:
    job = Job.model_validate({"class": "a", "labels": {"owner": None, "team": ["x"]}})
    body = {"job": job, "jobs": [job], "by": {"one": job}, "none": None, "text": 'é"\n', "big": 10**30, "off": False}
    request = http_request("POST", "/jobs", body=body)
    plain = {"class": "a", "labels": {"owner": None, "team": ["x"]}}
    expected = {"job": plain, "jobs": [plain], "by": {"one": plain}, "text": 'é"\n', "big": 10**30, "off": False}
    assert request.body is not None
    assert json.loads(request.body) == expected
    assert request.body.isascii()


def test_a_body_is_an_object_even_when_nothing_was_given() -> None:
    assert http_request("POST", "/jobs", body={"none": None}).body == b"{}"
    assert http_request("POST", "/jobs").body is None


@pytest.mark.parametrize("value", [object(), {1, 2}, b"x", float("nan")])
def test_what_is_no_json_is_a_fault(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        http_request("POST", "/jobs", body={"a": value})


@pytest.mark.parametrize(
    ("arguments", "body"),
    [({"id": "1"}, b"{}"), ({"id": "1", "note": None}, b'{"note":null}'), ({"id": "1", "note": "x"}, b'{"note":"x"}')],
)
def test_a_null_that_was_given_is_sent(arguments: dict[str, Any], body: bytes) -> None:
    params = Params.model_validate(arguments)
    assert http_request("PATCH", "/jobs", body={"note": nullable(params, "note")}).body == body


def test_what_was_given_is_in_no_text_about_a_request() -> None:
    request = http_request(
        "POST", "/<a>", segments={"a": "s3cret"}, query={"b": "s3cret"}, body={"c": "s3cret", "d": ["s3cret"]}
    )
    assert "s3cret" not in repr(request)


@given(value=TEXTS)
def test_any_text_is_one_segment_or_none(value: str) -> None:
    if value in {"", ".", ".."}:
        assert refusal(value)["kind"] == "invalid_input"
        return
    segment = http_request("GET", "/<v>", segments={"v": value}).target.removeprefix("/")
    assert set(segment) <= UNRESERVED | {"%"}
    assert unquote(segment, errors="strict") == value


def test_a_service_gets_exactly_what_was_built(service: str) -> None:
    odd = [
        "/",
        "a/../b",
        "%2e%2e",
        "..%2f",
        "?&=#",
        " +\t",
        "\r\nX: y",
        "\0",
        "é𝄞\u202e",
        "//evil",
        "'",
        "~!$()*,;:@[]|",
    ]
    for value in odd:
        request = http_request("GET", "/a/<v>/b", segments={"v": value}, query={"q": [value, "x"], value: 1})
        heard = told(service, request)
        assert f"{heard['path']}?{heard['query']}" == request.target
        assert heard["pairs"] == [["q", value], ["q", "x"], [value, "1"]]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_service_gets_json(service: str, method: str) -> None:
    heard = told(service, http_request(method, "/jobs", body={"text": "é", "n": None}))
    assert (heard["method"], heard["body"]) == (method, {"text": "é"})
    assert heard["headers"]["content-type"] == "application/json"


def test_a_request_without_a_body_says_so(service: str) -> None:
    heard = told(service, http_request("POST", "/jobs"))
    assert heard["body"] is None
    assert "content-type" not in heard["headers"]
    assert heard["headers"]["content-length"] == "0"
