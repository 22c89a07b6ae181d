"""From the reply of a service to a result or a refusal: what each status means, and what each form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from verbc.support.foreign_text import TEXT_CHARACTERS
from verbc.support.http_reply import NATURAL_KINDS, read_http_reply
from verbc.support.outbound import Received
from verbc.support.refusal import BUILT_IN_KINDS, Refusal
from verbc.support.registry import Run

KINDS = {**BUILT_IN_KINDS, "quote_expired": "The quote is too old.", "approval_required": "Ask first."}
REFUSALS = {"202": "pending", "410": "quote_expired", "418": "conflict", "500": "internal"}
JSON = {"form": "json"}
CODES = {"form": "pointers", "error": {"kind": "/error/code", "detail": "/error/next"}}
ENVELOPE = {"form": "pointers", "ok": "/ok", "result": "/data", "error": "/error"}


def read(status: int, body: Any, form: Mapping[str, Any] = JSON, **options: Any) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    run = Run("core", ("GET", "/jobs/<handle>"), form, REFUSALS, "core", "core_status")
    feedback = options.pop("feedback", "names")
    return read_http_reply(Received(status, content, **options), run, KINDS, feedback=feedback)


def refused(status: int, body: Any = b"", form: Mapping[str, Any] = JSON, **options: Any) -> dict[str, Any]:
    with pytest.raises(Refusal) as refusal:
        read(status, body, form, **options)
    return refusal.value.as_error()


@pytest.mark.parametrize("status", [200, 201, 203, 206, 299])
def test_any_success_is_a_result(status: int) -> None:
    assert read(status, {"a": [1.0]}) == {"a": [1]}


@pytest.mark.parametrize(
    ("form", "result"),
    [({"form": "text"}, "a\nb\n"), ({"form": "lines"}, ["a", "b"]), ({"form": "pointers", "result": "/a/1"}, 2)],
)
def test_the_other_forms(form: Mapping[str, Any], result: Any) -> None:
    assert read(200, {"a": [1, 2]} if form["form"] == "pointers" else b"a\nb\n", form) == result


@pytest.mark.parametrize(
    ("form", "result"),
    [(JSON, None), (CODES, None), ({"form": "text"}, ""), ({"form": "lines"}, [])],
)
def test_a_success_may_be_without_a_body(form: Mapping[str, Any], result: Any) -> None:
    assert read(204, b"", form) == result
    assert read(200, b"", form) == result


def test_a_body_is_missed_where_something_is_to_stand_in_it() -> None:
    assert "lacks its result, `/data`" in refused(200, b"", {"form": "pointers", "result": "/data"})["message"]
    assert refused(200, b"", ENVELOPE)["message"] == "`GET /jobs/<handle>` ended with status 200 without a reply."


@pytest.mark.parametrize(
    "body", [b"<html><b>s3cret</b>", b'{"a": 1', b'{"a": NaN}', b"{} {}", b"\xff", b'{"a": 1, "a": 2}']
)
def test_a_success_that_cannot_be_read_is_internal(body: bytes) -> None:
    error = refused(200, body)
    assert (error["kind"], error["detail"]) == ("internal", {"status": 200})
    assert error["message"].startswith("The reply of `GET /jobs/<handle>` ")


def test_a_success_whose_body_was_not_read_is_internal() -> None:
    assert refused(201, b"", problem="is longer than 7 bytes") == {
        "kind": "internal",
        "message": "The reply of `GET /jobs/<handle>` is longer than 7 bytes.",
        "detail": {"status": 201},
    }


def test_a_failure_whose_body_was_not_read_is_told_by_its_status() -> None:
    assert refused(404, b"", problem="is compressed, which was not asked for") == {
        "kind": "not_found",
        "message": "`GET /jobs/<handle>` ended with status 404.",
        "detail": {"status": 404},
    }


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *NATURAL_KINDS.items(),
        (410, "quote_expired"),
        (418, "conflict"),
        (199, "internal"),
        (402, "internal"),
        (405, "internal"),
        (499, "internal"),
        (500, "internal"),
        (599, "internal"),
    ],
)
def test_a_status_has_a_kind(status: int, kind: str) -> None:
    expected = "quote_expired" if status == 410 else kind
    assert refused(status)["kind"] == expected


def test_a_declared_status_is_told_by_what_it_means() -> None:
    assert refused(410, {"left": 1}) == {
        "kind": "quote_expired",
        "message": "The quote is too old.",
        "detail": {"output": {"left": 1}, "status": 410},
    }
    assert refused(500)["message"] == "`GET /jobs/<handle>` ended with status 500."


@pytest.mark.parametrize("body", [b"", b"{}", b'{"handle": 1}'])
def test_a_success_may_be_declared_to_be_none(body: bytes) -> None:
    error = refused(202, body)
    assert (error["kind"], error["message"]) == ("pending", BUILT_IN_KINDS["pending"])
    assert error["detail"]["status"] == 202


def test_the_natural_kinds_are_built_in() -> None:
    assert set(NATURAL_KINDS.values()) <= BUILT_IN_KINDS.keys()


def test_a_redirect_says_that_it_is_not_followed() -> None:
    assert refused(307) == {
        "kind": "internal",
        "message": "`GET /jobs/<handle>` ended with status 307, and redirects are not followed.",
        "detail": {"status": 307},
    }


def test_how_long_to_wait_is_told() -> None:
    assert refused(429, retry_after=30)["detail"] == {"status": 429, "retry_after": 30}


def test_what_a_service_says_about_a_failure_is_detail() -> None:
    assert refused(404, {"left": 1}) == {
        "kind": "not_found",
        "message": "`GET /jobs/<handle>` ended with status 404.",
        "detail": {"output": {"left": 1}, "status": 404},
    }
    text = refused(503, b"down\x1b[31m\xe2\x80\xae" + b"x" * 100_000)
    assert "down" not in text["message"]
    assert "down\\u001b[31m\\u202exxx" in text["detail"]["output"]
    assert len(text["detail"]["output"]) == TEXT_CHARACTERS


@pytest.mark.parametrize("body", [b"<html>Authorization: s3cret", b" \n<!doctype html>", b"<?xml?><e>s3cret</e>"])
def test_a_page_is_not_passed_on(body: bytes) -> None:
    assert refused(502, body)["detail"] == {"status": 502}


@pytest.mark.parametrize("form", [JSON, CODES, {"form": "text"}])
def test_what_was_sent_is_not_repeated_where_only_shapes_are_told(form: Mapping[str, Any]) -> None:
    body = {"detail": [{"loc": ["body", "job"], "input": "s3cret"}]}
    assert refused(422, body, form, feedback="shapes") == {
        "kind": "invalid_input",
        "message": "`GET /jobs/<handle>` ended with status 422.",
        "detail": {"status": 422},
    }
    assert "s3cret" in json.dumps(refused(422, body, form))


def test_a_declared_code_is_the_kind_whatever_the_status() -> None:
    body = {"error": {"code": "approval_required", "next": {"approve": "/approvals/7"}, "message": "s3cret"}}
    for status in (403, 410, 500):
        assert refused(status, body, CODES) == {
            "kind": "approval_required",
            "message": "Ask first.",
            "detail": {"approve": "/approvals/7", "status": status},
        }


def test_a_code_that_is_no_kind_becomes_one_by_its_status() -> None:
    body = {"error": {"code": "job_exists"}}
    assert refused(409, body, CODES) == {
        "kind": "conflict",
        "message": BUILT_IN_KINDS["conflict"],
        "detail": {"kind": "job_exists", "status": 409},
    }
    assert refused(410, body, CODES)["message"] == "The quote is too old."
    assert refused(501, body, CODES) == {
        "kind": "internal",
        "message": "`GET /jobs/<handle>` was refused, with a kind that is not declared.",
        "detail": {"kind": "job_exists", "status": 501},
    }


def test_an_internal_refusal_says_more_than_that() -> None:
    message = refused(500, {"error": {"code": "internal"}}, CODES)["message"]
    assert message == "`GET /jobs/<handle>` was refused."


def test_a_message_that_the_spec_points_at_is_passed_on() -> None:
    form = {"form": "pointers", "error": {"message": "/title"}}
    assert refused(404, {"title": "No such job.\x07"}, form)["message"] == "No such job.\\u0007"


def test_an_error_that_is_not_where_it_should_be_leaves_the_status() -> None:
    bodies: list[Any] = [{}, [], "x", {"error": None}, {"error": "boom"}, b"no json"]
    for body in bodies:
        error = refused(404, body, CODES)
        assert (error["kind"], error["message"]) == ("not_found", "`GET /jobs/<handle>` ended with status 404.")


def test_an_envelope_says_itself_whether_it_went_well() -> None:
    assert read(200, {"ok": True, "data": 7}, ENVELOPE) == 7
    no = {"ok": False, "error": {"kind": "conflict", "message": "It runs."}}
    assert refused(200, no, ENVELOPE) == {"kind": "conflict", "message": "It runs."}
    assert refused(409, no, ENVELOPE)["detail"] == {"status": 409}
    assert refused(404, {"ok": True, "data": 7}, ENVELOPE) == {
        "kind": "internal",
        "message": "`GET /jobs/<handle>` replied that it went well, but ended with status 404.",
        "detail": {"status": 404},
    }
    assert refused(502, b"<html>", ENVELOPE)["kind"] == "unavailable"
