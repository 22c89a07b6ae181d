"""Introspection over real connections: what is asked, what an answer says, and that no answer lets nobody in."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

import pytest

from verbc.support.asked_keys import AskedKeys
from verbc.support.bearer import Identity, VerifierError
from verbc.support.verify_introspection import IntrospectionSettings, introspection_verifier

from .programs import finish, move_clock
from .rest_services import Answer, Exchange, RawService, endless, hang_up, reply, say_nothing, saying

KEY = "s3cret+key/=&"
ACTIVE = {"active": True, "sub": "ada"}


def met(
    *answers: bytes | Answer, work: Callable[[AskedKeys, RawService], Awaitable[Any]] | None = None, **settings: Any
) -> tuple[Any, RawService]:
    """What comes of verifying KEY, or of `work`, with a service that answers so."""

    async def run() -> tuple[Any, RawService]:
        async with RawService(*answers) as service:
            told = {"headers": {}, **settings}
            verifier = introspection_verifier(IntrospectionSettings(f"{service.url}/introspect", **told))
            try:
                return await (work(verifier, service) if work else verifier.verify(KEY)), service
            finally:
                await verifier.close()

    return finish(run())


def verified(*answers: bytes | Answer, **settings: Any) -> Any:
    return met(*answers, **settings)[0]


def told(answer: Any, **settings: Any) -> Any:
    return verified(reply(200, answer), **settings)


def test_the_key_is_sent_as_a_form_with_what_tells_who_asks() -> None:
    found, service = met(reply(200, ACTIVE), headers={"Authorization": "Basic c2VjcmV0", "Content-Type": "text/plain"})
    assert found == Identity("ada")
    (heard,) = service.heard
    assert (heard.method, heard.target) == ("POST", "/introspect")
    assert heard.header("content-type") == "application/x-www-form-urlencoded"
    assert heard.header("authorization") == "Basic c2VjcmV0"
    assert parse_qs(heard.body.decode(), strict_parsing=True) == {"token": [KEY], "token_type_hint": ["access_token"]}


def test_an_answer_tells_all_parts_of_an_identity() -> None:
    end = time.time() + 1000
    answer = {"active": True, "username": "ada", "acct": "acct_1", "rights": "read write", "exp": end, "iss": "x"}
    found = told(answer, subject="username", account="acct", scopes="rights")
    assert found == Identity("ada", "acct_1", frozenset({"read", "write"}), end)
    found = told({**ACTIVE, "scope": ["read"], "account": "acct_2"})
    assert found == Identity("ada", None, frozenset({"read"}))


def test_an_account_that_is_not_told_is_none() -> None:
    assert told(ACTIVE, account="acct") == Identity("ada")


@pytest.mark.parametrize(
    "answer",
    [
        {"active": False},
        {"active": False, "sub": "ada"},
        {**ACTIVE, "exp": 1},
        {**ACTIVE, "nbf": 32503680000},
    ],
)
def test_a_key_that_is_not_active_now_is_not_good(answer: Any) -> None:
    assert told(answer) is None


def test_a_key_that_has_begun_is_good() -> None:
    assert told({**ACTIVE, "nbf": 1, "exp": 32503680000}) == Identity("ada", expires_at=32503680000)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"active",
        b'{"active": true, "sub": "ada", "sub": "bob"}',
        None,
        [],
        [ACTIVE],
        {},
        {"sub": "ada"},
        {"active": "true", "sub": "ada"},
        {"active": 1, "sub": "ada"},
        {"active": None, "sub": "ada"},
        {"active": True},
        {"active": True, "sub": ""},
        {"active": True, "sub": 7},
        {**ACTIVE, "exp": "never"},
        {**ACTIVE, "exp": True},
        {**ACTIVE, "nbf": "soon"},
        {**ACTIVE, "scope": {"read": True}},
        {**ACTIVE, "acct": 7},
    ],
)
def test_an_answer_that_tells_something_else_lets_nobody_in(answer: Any) -> None:
    with pytest.raises(VerifierError):
        told(answer, account="acct")


@pytest.mark.parametrize("status", [201, 204, 301, 302, 400, 401, 403, 404, 429, 500, 502, 503])
def test_a_status_that_is_no_answer_lets_nobody_in(status: int) -> None:
    body = b"" if status == 204 else ACTIVE
    with pytest.raises(VerifierError, match=f"replied with status {status}"):
        verified(reply(status, body, "Location: /elsewhere"))


ENDLESS = endless(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1000\r\n" + b" " * 0x1000 + b"\r\n")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (hang_up, "did not reply"),
        (saying(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", hang_up), "did not reply"),
        (b"no HTTP at all\r\n\r\n", "did not reply"),
        (reply(200, ACTIVE, "Content-Encoding: gzip"), "is compressed"),
        (ENDLESS, "is longer than 1048576 bytes"),
    ],
)
def test_a_service_that_fails_lets_nobody_in(answer: bytes | Answer, problem: str) -> None:
    with pytest.raises(VerifierError, match=problem):
        verified(answer)


def test_a_service_that_is_not_there_lets_nobody_in() -> None:
    async def work() -> None:
        verifier = introspection_verifier(IntrospectionSettings("http://127.0.0.1:1/introspect", {}))
        with pytest.raises(VerifierError, match="the introspection service did not reply"):
            await verifier.verify(KEY)
        await verifier.close()

    finish(work())


def test_a_service_that_says_nothing_is_not_waited_for() -> None:
    asked = asyncio.Event()

    async def sleepy(exchange: Exchange) -> None:
        asked.set()
        await say_nothing(exchange)

    async def work(verifier: AskedKeys, service: RawService) -> None:
        waiting = asyncio.ensure_future(verifier.verify(KEY))
        await asked.wait()
        move_clock(6)
        with pytest.raises(VerifierError):
            await waiting
        await service.ended.wait()  # the connection is given up
        await asyncio.sleep(0)

    met(sleepy, work=work)


def test_nothing_is_followed_elsewhere() -> None:
    async def work(verifier: AskedKeys, service: RawService) -> None:
        with pytest.raises(VerifierError, match="status 307"):
            await verifier.verify(KEY)
        assert len(service.heard) == 1

    met(reply(307, b"", "Location: /introspect2"), reply(200, ACTIVE), work=work)


def test_the_same_key_is_asked_about_once_at_a_time() -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def when_told(exchange: Exchange) -> None:
        asked.set()
        await go_on.wait()
        await exchange.say(reply(200, ACTIVE))

    async def work(verifier: AskedKeys, service: RawService) -> None:
        waiting = [asyncio.ensure_future(verifier.verify(KEY)) for _ in range(50)]
        await asked.wait()
        go_on.set()
        assert await asyncio.gather(*waiting) == [Identity("ada")] * 50
        assert len(service.heard) == 1
        move_clock(31)
        assert await verifier.verify(KEY) == Identity("ada")
        assert len(service.heard) == 2

    met(when_told, work=work)


def test_many_keys_share_a_few_connections() -> None:
    async def answer(exchange: Exchange) -> None:
        key = parse_qs(exchange.heard.body.decode())["token"][0]
        await exchange.say(reply(200, {"active": True, "sub": f"of-{key}"}))

    async def work(verifier: AskedKeys, service: RawService) -> None:
        keys = [f"k{number}" for number in range(100)]
        found = await asyncio.gather(*map(verifier.verify, keys))
        assert found == [Identity(f"of-{key}") for key in keys]
        assert len(service.heard) == 100
        assert service.connections <= 32

    met(answer, work=work)


def test_a_key_that_was_revoked_is_refused_after_half_a_minute_and_an_outage_is_no_yes() -> None:
    async def work(verifier: AskedKeys, _service: RawService) -> None:
        assert await verifier.verify(KEY) == Identity("ada")
        move_clock(31)
        with pytest.raises(VerifierError):
            await verifier.verify(KEY)
        assert await verifier.verify(KEY) is None

    met(reply(200, ACTIVE), reply(503), reply(200, {"active": False}), work=work)


def test_no_key_and_nothing_of_an_answer_gets_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    headers = {"authorization": "Basic s3cret"}
    answers: list[bytes | Answer] = [
        hang_up,
        reply(500, {"error": "s3cret"}),
        reply(200, {"active": True, "sub": ["s3cret"]}),
        reply(200, b"s3cret"),
        reply(200, {"active": "s3cret"}),
    ]
    with caplog.at_level(logging.DEBUG, "verbc"):
        for answer in answers:
            with pytest.raises(VerifierError) as error:
                verified(answer, headers=headers)
            assert "s3cret" not in str(error.value)
    records = [record for record in caplog.records if record.name == "verbc.server"]
    assert [record.msg for record in records] == ["a service that is asked about keys failed"] * len(answers)
    assert "s3cret" not in str([vars(record) for record in records])
    assert "s3cret" not in repr(IntrospectionSettings("https://s3cret.example", headers))
