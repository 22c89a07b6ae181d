"""By which names a server is called."""

from __future__ import annotations

from typing import Any

import pytest

from verbc.support.http_answers import RefusedRequestError
from verbc.support.http_headers import Headers
from verbc.support.http_origins import Authority, ServedNames, authority
from verbc.support.registry import HttpServe


def names(**changes: Any) -> ServedNames:
    usual = {"host": "127.0.0.1", "port": 1, "path": "/", "origins": (), "hosts": (), "replies": "json"}
    return ServedNames(HttpServe(**{**usual, **changes}))


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("localhost:80", "localhost", 80),
        ("Example.org", "example.org", None),
        ("example.org:", "example.org", None),
        ("example.org:8080", "example.org", 8080),
        ("a_b-c.d:0", "a_b-c.d", 0),
        ("[2001:DB8:0:0::1]:65535", "2001:db8::1", 65535),
    ],
)
def test_a_host_has_one_form(text: str, host: str, port: int | None) -> None:
    assert authority(text) == Authority(host, port, host == "localhost")


@pytest.mark.parametrize(
    "text",
    ["", ":80", "a b", "a/b", "u@a", "a:b", "a:65536", "[::1]x", "[1.2.3.4]", "[fe80::1%eth0]", "a:1:2", "\u00e9"],
)
def test_what_is_no_host_is_none(text: str) -> None:
    assert authority(text) is None


@pytest.mark.parametrize("host", ["", "https://a", "a b", "*.example"])
def test_a_host_that_is_none_is_told_at_the_start(host: str) -> None:
    with pytest.raises(ValueError, match="is no host"):
        names(hosts=(host,))


@pytest.mark.parametrize("origin", ["", "null", "example.org", "https://", "https://a/b", "*"])
def test_an_origin_that_is_none_is_told_at_the_start(origin: str) -> None:
    with pytest.raises(ValueError, match="is no origin"):
        names(origins=(origin,))


@pytest.mark.parametrize(
    ("listening", "host", "known"),
    [
        ("192.0.2.1", "192.0.2.1:80", True),
        ("2001:db8:0::1", "[2001:db8::1]", True),
        ("mcp.internal", "MCP.internal", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("0.0.0.0", "0.0.0.0", False),
        ("::", "[::]", False),
        ("\u00e9.example", "e.example", False),
    ],
)
def test_the_host_that_is_listened_on_is_a_name(listening: str, host: str, known: bool) -> None:
    served = names(host=listening)
    headers = Headers([(b"host", host.encode())])
    if known:
        assert served.check_host(headers) == authority(host)
    else:
        with pytest.raises(RefusedRequestError) as caught:
            served.check_host(headers)
        assert caught.value.status == 421
