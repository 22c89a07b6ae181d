"""Requests over real connections: what is sent, what comes back, and everything that can go wrong in between."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
import subprocess
import sys
import threading
import zlib
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography import x509

from verbc.support.outbound import (
    LateReplyError,
    LostReplyError,
    Outbound,
    OutboundError,
    Outgoing,
    Received,
    UnreachableError,
)

from .certificates import certificate_of
from .programs import FOR_EVER, finish, move_clock
from .rest_services import Answer, Exchange, Heard, RawService, endless, hang_up, reply, say_nothing, saying

OUTPUT = 1000  # bytes


async def send(outbound: Outbound, url: str, **options: Any) -> Received:
    outgoing = Outgoing(options.pop("method", "GET"), url + options.pop("target", "/jobs"), **options)
    return await outbound.send(outgoing, deadline=asyncio.get_running_loop().time() + FOR_EVER, output=OUTPUT)


def met(*answers: bytes | Answer, times: int = 1, **options: Any) -> tuple[list[Received], RawService]:
    """The replies to equal requests, one after the other, of a service that answers so."""

    async def work() -> tuple[list[Received], RawService]:
        outbound = Outbound()
        async with RawService(*answers) as service:
            try:
                return [await send(outbound, service.url, **options) for _ in range(times)], service
            finally:
                await outbound.close()

    return finish(work())


def received(*answers: bytes | Answer, **options: Any) -> Received:
    (found,), _ = met(*answers, **options)
    return found


def heard(**options: Any) -> Heard:
    _, service = met(reply(), **options)
    return service.heard[0]


def failing(*answers: bytes | Answer, **options: Any) -> OutboundError:
    with pytest.raises(OutboundError) as error:
        met(*answers, **options)
    return error.value


def test_a_request_says_what_it_has_to_and_no_more() -> None:
    found = heard(target="/jobs/1?all=true")
    assert (found.method, found.target, found.body) == ("GET", "/jobs/1?all=true", b"")
    host = found.header("host")
    assert host is not None
    assert host.startswith("127.0.0.1:")
    assert found.headers == [
        ("host", host),
        ("accept", "application/json, */*;q=0.1"),
        ("accept-encoding", "identity"),
        ("user-agent", "verbc"),
    ]


def test_a_body_goes_as_json_unless_it_is_said_to_be_something_else() -> None:
    found = heard(method="POST", body=b'{"a":1}')
    assert (found.header("content-type"), found.header("content-length")) == ("application/json", "7")
    form = heard(method="POST", body=b"token=x", headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert form.header("content-type") == "application/x-www-form-urlencoded"


def test_headers_of_a_request_win() -> None:
    found = heard(headers={"Authorization": "Bearer k", "User-Agent": "mine", "ACCEPT": "text/plain"})
    assert found.header("authorization") == "Bearer k"
    assert (found.header("user-agent"), found.header("accept")) == ("mine", "text/plain")


@pytest.mark.parametrize("value", ["a\r\nHost: evil", "a\nb", "a\0b", "\u010d\u010a"])
def test_a_header_that_would_be_two_is_never_sent(value: str) -> None:
    async def work() -> None:
        async with RawService(reply()) as service:
            outbound = Outbound()
            with pytest.raises((httpx2.LocalProtocolError, UnicodeEncodeError)):
                await send(outbound, service.url, headers={"x-key": value})
            await outbound.close()
            assert service.heard == []

    finish(work())


@pytest.mark.parametrize("status", [200, 201, 204, 301, 302, 304, 307, 400, 404, 429, 500, 503, 599])
def test_a_reply_of_any_status_is_one(status: int) -> None:
    body = b"" if status in {204, 304} else b'{"a": 1}'
    text = b"HTTP/1.1 %d X\r\n\r\n" % status if status in {204, 304} else reply(status, body)
    assert received(text) == Received(status, body)


def test_a_redirect_is_not_followed() -> None:
    (found,), service = met(reply(302, b"", "Location: /elsewhere"))
    assert found.status == 302
    assert len(service.heard) == 1


def test_what_comes_before_a_reply_is_skipped() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 3
    assert received(early + reply(200, b"1")) == Received(200, b"1")


def test_a_body_may_come_in_pieces_and_without_a_length() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[1\r\n3\r\n,2]\r\n0\r\n\r\n"
    assert received(chunked) == Received(200, b"[1,2]")
    assert received(saying(b"HTTP/1.0 200 OK\r\n\r\n[1]")) == Received(200, b"[1]")


def test_connections_are_kept() -> None:
    found, service = met(reply(200, b"1"), times=3)
    assert [one.body for one in found] == [b"1"] * 3
    assert service.connections == 1


@pytest.mark.parametrize("first", [reply(200, b"1", "Connection: close"), saying(reply(200, b"1"))])
def test_a_connection_that_was_closed_is_not_used_again(first: bytes | Answer) -> None:
    async def work() -> None:
        outbound = Outbound()
        async with RawService(first, reply(200, b"2")) as service:
            assert (await send(outbound, service.url)).body == b"1"
            await service.ended.wait() if callable(first) else None
            assert (await send(outbound, service.url)).body == b"2"
            assert service.connections == 2
            await outbound.close()

    finish(work())


def test_calls_at_the_same_time_have_connections_of_their_own() -> None:
    async def work() -> None:
        outbound, several = Outbound(), 20
        barrier = asyncio.Barrier(several)

        async def together(exchange: Exchange) -> None:
            await barrier.wait()
            await exchange.say(reply(200, b"1"))

        async with RawService(together) as service:
            found = await asyncio.gather(*(send(outbound, service.url) for _ in range(several)))
            assert found == [Received(200, b"1")] * several
            await outbound.close()

    finish(work())


def test_closing_is_not_the_end() -> None:
    async def work() -> None:
        outbound = Outbound()
        await outbound.close()
        async with RawService(reply(200, b"1")) as service:
            for _ in range(2):
                assert (await send(outbound, service.url)).body == b"1"
                await outbound.close()
            assert service.connections == 2

    finish(work())


def test_no_cookie_is_kept() -> None:
    _, service = met(reply(200, b"1", "Set-Cookie: session=s3cret; Path=/"), times=2)
    assert [one.header("cookie") for one in service.heard] == [None, None]


def test_neither_proxies_nor_netrc_of_the_environment_are_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    (tmp_path / "netrc").write_text("default login me password s3cret")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert heard().header("authorization") is None


@pytest.mark.parametrize(("size", "fits"), [(OUTPUT, True), (OUTPUT + 1, False), (10_000_000, False)])
def test_the_size_of_a_reply_is_bounded(size: int, fits: bool) -> None:
    chunk = b"%x\r\n%b\r\n" % (size, b"x" * size)
    for text in (
        reply(200, b"x" * size),
        b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n",
    ):
        found = received(text)
        assert found == (Received(200, b"x" * size) if fits else Received(200, problem="is longer than 1000 bytes"))


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1000),
        (b"HTTP/1.1 404 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"a\r\n0123456789\r\n" * 500),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n", b"x" * 5000),
    ],
)
def test_an_endless_body_is_left(start: bytes, piece: bytes) -> None:
    async def work() -> None:
        outbound = Outbound()
        async with RawService(endless(start, piece)) as service:
            found = await send(outbound, service.url)
            assert found.problem == "is longer than 1000 bytes"
            await service.ended.wait()  # nobody listens any more
            await outbound.close()

    finish(work())


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"\0" * 10_000_000)),
        ("deflate", zlib.compress(b"{}")),
        ("br", b"\0"),
        ("zstd", b"\0"),
        ("x-unknown", b"{}"),
        ("identity, gzip", gzip.compress(gzip.compress(b"\0" * 10_000_000))),
    ],
)
def test_what_is_compressed_is_not_unpacked(encoding: str, body: bytes) -> None:
    text = reply(200, body, f"Content-Encoding: {encoding}")
    assert received(text) == Received(200, problem="is compressed, which was not asked for")


def test_the_connection_of_a_reply_that_was_not_read_is_given_up() -> None:
    async def work() -> None:
        outbound = Outbound()
        compressed = saying(reply(200, b"\0" * 100, "Content-Encoding: br"), say_nothing)
        async with RawService(compressed, reply(200, b"1")) as service:
            assert (await send(outbound, service.url)).problem is not None
            await service.ended.wait()
            assert await send(outbound, service.url) == Received(200, b"1")
            await outbound.close()

    finish(work())


def test_what_is_said_to_be_uncompressed_is_read() -> None:
    for encoding in ("identity", "Identity", ""):
        assert received(reply(200, b"1", f"Content-Encoding: {encoding}")) == Received(200, b"1")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30),
        ("0", 0),
        ("999999999", 999999999),
        ("1000000000", None),
        ("-1", None),
        ("1.5", None),
        ("\u0663", None),
        ("Fri, 31 Dec 1999 23:59:59 GMT", None),
        ("", None),
    ],
)
def test_how_long_to_wait(text: str, seconds: int | None) -> None:
    answer = b"HTTP/1.1 429 X\r\nContent-Length: 0\r\nRetry-After: %b\r\n\r\n" % text.encode()
    assert received(answer) == Received(429, retry_after=seconds)


def test_nobody_listens() -> None:
    async def work() -> UnreachableError:
        async with RawService(reply()) as service:
            url = service.url
        outbound = Outbound()
        with pytest.raises(UnreachableError) as error:
            await send(outbound, url)
        await outbound.close()
        return error.value

    assert finish(work()).cause == "ConnectionRefusedError"


def test_a_request_that_comes_too_late_is_not_sent() -> None:
    async def work() -> None:
        outbound, now = Outbound(), asyncio.get_running_loop().time()
        async with RawService(reply()) as service:
            with pytest.raises(UnreachableError):
                await outbound.send(Outgoing("GET", service.url), deadline=now, output=OUTPUT)
            assert service.connections == 0
            await outbound.close()

    finish(work())


@pytest.mark.parametrize(
    "answer",
    [
        hang_up,
        saying(b"HTTP/1.1 200 OK\r\nContent-Le"),
        saying(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"),
        saying(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}"),
        saying(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"),
        saying(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"),
        saying(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nwords of x"),
        saying(b"220 mail.example ESMTP\r\n\r\n"),
        saying(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
        endless(b"HTTP/1.1 200 OK\r\n", b"X-More: %b\r\n" % (b"x" * 1000)),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_reply_that_is_torn_is_lost(method: str, answer: Answer) -> None:
    async def work() -> None:
        outbound = Outbound()
        async with RawService(answer) as service:
            with pytest.raises(LostReplyError):
                await send(outbound, service.url, method=method)
            assert len(service.heard) == 1  # and nothing is sent again
            await outbound.close()

    finish(work())


def late(*parts: bytes) -> None:
    """Let time run out once the service has said so much."""

    async def work() -> None:
        outbound = Outbound()

        async def wait(exchange: Exchange) -> None:
            move_clock(FOR_EVER)
            await say_nothing(exchange)

        async with RawService(saying(b"".join(parts), wait)) as service:
            with pytest.raises(LateReplyError) as error:
                await send(outbound, service.url)
            assert error.value.cause == "TimeoutError"
            await service.ended.wait()  # the connection is given up
            await outbound.close()

    finish(work())


def test_time_runs_out_before_the_reply() -> None:
    late()


def test_time_runs_out_within_the_headers() -> None:
    late(b"HTTP/1.1 200 OK\r\nX-Slow: ")


def test_time_runs_out_within_the_body() -> None:
    late(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{")


def test_a_connection_that_takes_too_long_is_none() -> None:
    async def work() -> None:
        outbound, loop = Outbound(), asyncio.get_running_loop()
        connecting = asyncio.Event()

        async def never(*_: Any) -> None:
            connecting.set()
            await asyncio.Event().wait()

        loop.sock_connect = never  # type: ignore[method-assign, assignment]
        asking = asyncio.create_task(send(outbound, "http://127.0.0.1:1"))
        await connecting.wait()
        move_clock(11)
        with pytest.raises(UnreachableError) as error:
            await asking
        assert error.value.cause == "ConnectTimeout"
        await outbound.close()

    finish(work())


def test_a_call_that_is_cancelled_gives_up_its_connection() -> None:
    async def work() -> None:
        outbound, started = Outbound(), asyncio.Event()

        async def wait(exchange: Exchange) -> None:
            started.set()
            await say_nothing(exchange)

        async with RawService(wait) as service:
            asking = asyncio.create_task(send(outbound, service.url))
            await started.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await service.ended.wait()
            await outbound.close()

    finish(work())


def test_a_refusal_before_the_whole_body_was_taken_is_read() -> None:
    """A service may answer, and hang up, while it still gets the request."""

    async def work() -> None:
        outbound = Outbound()
        answer = saying(reply(413, b"{}", "Connection: close"), say_nothing)
        async with RawService(answer, hasty=True) as service:
            found = await send(outbound, service.url, method="POST", body=b"x" * 1_000_000)
            assert found == Received(413, b"{}")
            await outbound.close()

    finish(work())


def test_nothing_that_was_sent_or_said_is_in_a_text() -> None:
    outgoing = Outgoing("GET", "https://x/s3cret", {"authorization": "s3cret"}, b"s3cret")
    error = failing(saying(b"HTTP/1.1 200 s3cret\r\ns3cret"), target="/s3cret", headers={"x-key": "s3cret"})
    found = received(reply(200, b"s3cret"))
    assert "s3cret" not in f"{outgoing!r} {error!r} {error} {found!r}"
    assert (error.__cause__, error.__suppress_context__) == (None, True)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1, its own authority, with its key."""
    return certificate_of(x509.IPAddress(ip_address("127.0.0.1")), tmp_path_factory.mktemp("certificate"))


def over_tls(certificate: Path, check: Callable[[Outbound, RawService], Awaitable[None]]) -> None:
    async def work() -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        outbound = Outbound()
        async with RawService(reply(200, b"1"), tls=context) as service:
            await check(outbound, service)
            await outbound.close()

    asyncio.run(work())


def test_who_cannot_prove_its_name_gets_nothing(certificate: Path) -> None:
    async def check(outbound: Outbound, service: RawService) -> None:
        with pytest.raises(UnreachableError) as error:
            await send(outbound, service.url)
        assert error.value.cause == "SSLCertVerificationError"
        assert service.heard == []

    over_tls(certificate, check)


def test_the_environment_says_whom_to_trust(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def check(outbound: Outbound, service: RawService) -> None:
        assert await send(outbound, service.url) == Received(200, b"1")

    over_tls(certificate, check)


class HeldOpening:
    """Whom to trust takes long to find out: until that is let go on. Each time a thread does it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go_on, self.ended = threading.Event(), threading.Event(), threading.Semaphore(0)
        self.threads: list[int] = []
        self._make = httpx2.create_ssl_context
        monkeypatch.setattr(httpx2, "create_ssl_context", self._slow)

    def _slow(self) -> ssl.SSLContext:
        self.threads.append(threading.get_ident())
        self.begun.set()
        assert self.go_on.wait(60)
        made = self._make()
        self.ended.release()
        return made


def test_nobody_else_waits_while_connections_are_made_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    opening = HeldOpening(monkeypatch)

    async def work() -> None:
        outbound = Outbound()
        async with RawService(*[reply(200, b"1")] * 2) as service:
            asking = [asyncio.create_task(send(outbound, service.url)) for _ in range(2)]
            await asyncio.to_thread(opening.begun.wait, 60)  # which would never come, were the loop held up
            assert service.connections == 0
            opening.go_on.set()
            assert [await one for one in asking] == [Received(200, b"1")] * 2
            await outbound.close()
            assert await send(outbound, service.url) == Received(200, b"1")
            await outbound.close()

    finish(work())
    assert threading.get_ident() not in opening.threads
    assert len(opening.threads) == 2  # once for each time that there were no connections


def test_time_runs_out_before_connections_are_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    opening = HeldOpening(monkeypatch)

    async def work() -> None:
        outbound = Outbound()
        async with RawService(reply(200, b"1")) as service:
            asking = asyncio.create_task(send(outbound, service.url))
            await asyncio.to_thread(opening.begun.wait, 60)
            move_clock(FOR_EVER)
            with pytest.raises(UnreachableError) as error:
                await asking
            assert (error.value.cause, service.connections) == ("TimeoutError", 0)
            opening.go_on.set()
            assert await send(outbound, service.url) == Received(200, b"1")
            for _ in range(2):  # the first one goes on by itself
                assert await asyncio.to_thread(opening.ended.acquire, timeout=60)
            await outbound.close()

    finish(work())


def test_the_client_library_is_loaded_by_the_first_request() -> None:
    program = "import sys, verbc.support.backend_http; sys.exit('httpx2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_json_is_what_it_takes() -> None:
    assert json.loads(received(reply(200, {"a": [1]})).body) == {"a": [1]}
