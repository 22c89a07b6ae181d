"""Where requests may go: what is taken for the address of a service, and what is not."""

from __future__ import annotations

import httpx2
import pytest

from verbc.support.service_address import AddressError, is_loopback, service_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://core.example", "https://core.example"),
        ("https://core.example/", "https://core.example"),
        ("https://core.example:8443/v1/", "https://core.example:8443/v1"),
        ("https://core.example/v1/a%20b", "https://core.example/v1/a%20b"),
        ("https://CORE.example./.well-known/..a", "https://CORE.example./.well-known/..a"),
        ("HTTPS://core.example", "HTTPS://core.example"),
        ("https://my_service", "https://my_service"),
        ("https://10.0.0.7", "https://10.0.0.7"),
        ("https://[2001:db8::7]:443", "https://[2001:db8::7]:443"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://127.9.9.9", "http://127.9.9.9"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://LOCALHOST.", "http://LOCALHOST."),
    ],
)
def test_addresses(text: str, address: str) -> None:
    assert service_address(text, plain=False) == address
    assert httpx2.URL(address + "/jobs").host  # the client library takes it too


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("https://core.example/" + "x" * 2000, "is too long"),
        ("core.example", "is neither https nor http"),
        ("core.example:8000", "is neither https nor http"),
        ("//core.example", "is neither https nor http"),
        ("ftp://core.example", "is neither https nor http"),
        ("file:///etc/passwd", "is neither https nor http"),
        ("unix:///run/core.sock", "is neither https nor http"),
        ("https://", "has no host, or one that is none"),
        ("https:///v1", "has no host, or one that is none"),
        ("https://:8000", "has no host, or one that is none"),
        ("https://-core", "has no host, or one that is none"),
        ("https://core..example", "has no host, or one that is none"),
        ("https://" + "x" * 64 + ".example", "has no host, or one that is none"),
        ("https://user:s3cret@core.example", "has credentials in it"),
        ("https://user@core.example", "has credentials in it"),
        ("https://@core.example", "has credentials in it"),
        ("https://core.example?key=s3cret", "has a query or a fragment"),
        ("https://core.example/?", "has a query or a fragment"),
        ("https://core.example/#", "has a query or a fragment"),
        ("https://core.example/a/../b", "has a path with more in it than segments"),
        ("https://core.example/.", "has a path with more in it than segments"),
        ('https://core.example/"', "has a path with more in it than segments"),
        ("https://core.example:0", "has the port 0"),
        ("https://core.example:65536", "is not an address"),
        ("https://core.example:x", "is not an address"),
        ("https://[::1", "is not an address"),
        ("https://core.example\\@evil.example", "has characters that no address has"),
        ("https://core.example\n", "has characters that no address has"),
        ("https://core.ex\tample", "has characters that no address has"),
        (" https://core.example", "has characters that no address has"),
        ("https://core.exampl\u00e9", "has characters that no address has"),
        ("https://core.example/\0", "has characters that no address has"),
        ("http://core.example", "is plain http, which is taken on this machine only"),
        ("http://10.0.0.7", "is plain http, which is taken on this machine only"),
        ("http://0.0.0.0", "is plain http, which is taken on this machine only"),
        ("http://169.254.169.254/latest", "is plain http, which is taken on this machine only"),
        ("http://localhost.evil.example", "is plain http, which is taken on this machine only"),
        ("http://127.0.0.1.evil.example", "is plain http, which is taken on this machine only"),
        ("http://2130706433", "is plain http, which is taken on this machine only"),
    ],
)
def test_what_is_no_address(text: str, reason: str) -> None:
    with pytest.raises(AddressError) as error:
        service_address(text, plain=False)
    assert str(error.value) == reason


def test_plain_http_is_taken_elsewhere_when_it_is_meant() -> None:
    assert service_address("http://core.example:8000/v1", plain=True) == "http://core.example:8000/v1"
    with pytest.raises(AddressError):
        service_address("ftp://core.example", plain=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost", "LocalHost."])
def test_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "10.0.0.1", "127.1", "xlocalhost", "local", "localhost.x"])
def test_other_machines(host: str) -> None:
    assert not is_loopback(host)
