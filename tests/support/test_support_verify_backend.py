"""Keys that a backend knows: it is asked with the caller's own key, and what it says is read by pointers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from verbc.support.asked_keys import AskedKeys
from verbc.support.backend_http import HttpBackend
from verbc.support.bearer import Identity, VerifierError
from verbc.support.binding import Bindings
from verbc.support.verify_backend import BackendSettings, backend_verifier

from .programs import finish, move_clock
from .rest_services import Answer, RawService, hang_up, reply

KEY = "s3cret-key"
WHOLE = {"id": "ada", "account": {"name": "acct_1"}, "scopes": ["read"], "until": "2999-01-01T00:00:00Z"}
PLACES = {"subject": "/id", "account": "/account/name", "scopes": "/scopes", "expires": "/until"}


def met(
    *answers: bytes | Answer,
    work: Callable[[AskedKeys, RawService], Awaitable[Any]] | None = None,
    backend: dict[str, Any] | None = None,
    places: dict[str, Any] | None = None,
) -> tuple[Any, RawService]:
    """What comes of verifying KEY, or of `work`, with a backend that answers so."""

    async def run() -> tuple[Any, RawService]:
        async with RawService(*answers) as service:
            entry = {"kind": "http", "url": f"{service.url}/v1", "credentials": None, "headers": {}, **(backend or {})}
            settings = BackendSettings("core", ("GET", "/key"), **(places or PLACES))
            verifier = backend_verifier(settings, HttpBackend(entry, Bindings("none")))
            try:
                return await (work(verifier, service) if work else verifier.verify(KEY)), service
            finally:
                await verifier.close()

    return finish(run())


def told(answer: Any, **places: Any) -> Any:
    return met(reply(200, answer), places=places or None)[0]


@pytest.mark.parametrize("credentials", [None, "forward"])
def test_the_backend_is_asked_with_the_callers_own_key(credentials: str | None) -> None:
    backend = {"credentials": credentials, "headers": {"Authorization": "Basic x", "X-From": "sample"}}
    found, service = met(reply(200, WHOLE), backend=backend)
    (heard,) = service.heard
    assert (heard.method, heard.target, heard.body) == ("GET", "/v1/key", b"")
    assert (heard.header("authorization"), heard.header("x-from")) == (f"Bearer {KEY}", "sample")
    assert found == Identity("ada", "acct_1", frozenset({"read"}), 32472144000.0)


def test_what_is_not_pointed_at_is_not_there() -> None:
    assert told(WHOLE, subject="/id") == Identity("ada")
    assert told({"id": "ada", "account": {}, "scopes": None}) == Identity("ada")
    assert told({"keys": [{"id": "ada"}]}, subject="/keys/0/id") == Identity("ada")


def test_a_key_that_has_expired_is_not_good() -> None:
    assert told({**WHOLE, "until": time.time() - 1}) is None
    assert told({**WHOLE, "until": "2020-01-01T00:00:00Z"}) is None


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_the_backend_refuses_is_not_good(status: int) -> None:
    found, service = met(
        reply(status, b"whatever"), work=lambda verifier, _: asyncio.gather(*[verifier.verify(KEY)] * 3)
    )
    assert found == [None] * 3
    assert len(service.heard) == 1


@pytest.mark.parametrize("status", [204, 206, 302, 400, 404, 410, 429, 500, 502, 503])
def test_any_other_status_lets_nobody_in(status: int) -> None:
    with pytest.raises(VerifierError, match=f"the backend `core` replied with status {status}"):
        met(reply(status, b"" if status == 204 else WHOLE, "Location: /key"))


@pytest.mark.parametrize(
    "answer",
    [
        b"{",
        [WHOLE],
        {},
        {**WHOLE, "id": ""},
        {**WHOLE, "id": 7},
        {**WHOLE, "account": {"name": {}}},
        {**WHOLE, "scopes": 7},
        {**WHOLE, "until": "never"},
    ],
)
def test_a_reply_that_says_something_else_lets_nobody_in(answer: Any) -> None:
    with pytest.raises(VerifierError):
        told(answer)


def test_a_backend_that_does_not_reply_lets_nobody_in() -> None:
    with pytest.raises(VerifierError, match="the backend `core` did not reply"):
        met(hang_up)


@pytest.mark.parametrize("url", ["${NOT_SET_ANYWHERE}", "ftp://core.example", "https://me:s3cret@core.example"])
def test_a_backend_that_is_not_configured_lets_nobody_in(url: str) -> None:
    with pytest.raises(VerifierError, match="the backend `core` cannot be asked"):
        met(reply(200, WHOLE), backend={"url": url})


def test_answers_are_kept_as_others_are() -> None:
    async def work(verifier: AskedKeys, service: RawService) -> None:
        assert [await verifier.verify(KEY) for _ in range(3)] == [Identity("ada")] * 3
        assert len(service.heard) == 1
        move_clock(31)
        assert await verifier.verify(KEY) is None
        assert len(service.heard) == 2

    met(reply(200, {"id": "ada"}), reply(401), work=work)


def test_nothing_of_a_key_or_a_reply_gets_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    answers: list[bytes | Answer] = [
        hang_up,
        reply(500, {"error": "s3cret"}),
        reply(200, {"id": ["s3cret"]}),
        reply(200, b"s3cret"),
    ]
    with caplog.at_level(logging.DEBUG, "verbc"):
        for answer in answers:
            with pytest.raises(VerifierError) as error:
                met(answer)
            assert "s3cret" not in str(error.value)
    records = [record for record in caplog.records if record.name == "verbc.server"]
    assert len(records) == len(answers)
    assert "s3cret" not in str([vars(record) for record in records])
