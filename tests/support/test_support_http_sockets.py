"""Where a server listens, and who could reach it there."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from verbc.support.http_sockets import StartError, bound, is_loopback, written


def close(sockets: list[socket.socket]) -> None:
    for opened in sockets:
        opened.close()


def test_the_system_may_choose_the_port() -> None:
    (opened,) = bound("127.0.0.1", 0, loopback_only=True)
    with opened:
        host, port = opened.getsockname()
        assert host == "127.0.0.1"
        assert port > 0
        assert written(opened) == f"127.0.0.1:{port}"


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Let every name stand for these addresses."""

    def getaddrinfo(_host: str, port: int, **_: Any) -> list[Any]:
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, port, 0, 0))
            if ":" in address
            else (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in addresses
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def test_a_name_is_listened_on_wherever_it_leads_on_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "127.0.0.1", "127.0.0.2", "127.0.0.1")
    sockets = bound("somewhere", 0, loopback_only=True)
    try:
        first, second = (opened.getsockname() for opened in sockets)
        assert (first[0], second[0]) == ("127.0.0.1", "127.0.0.2")
        assert first[1] == second[1]
    finally:
        close(sockets)


def test_an_address_that_this_machine_has_not_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "192.0.2.1", "127.0.0.1")
    sockets = bound("somewhere", 0, loopback_only=True)
    try:
        assert [opened.getsockname()[0] for opened in sockets] == ["127.0.0.1"]
    finally:
        close(sockets)


def test_a_machine_without_any_of_the_addresses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "192.0.2.1")
    with pytest.raises(StartError, match="no address for the host `somewhere`"):
        bound("somewhere", 0, loopback_only=False)


def test_everywhere_is_not_this_machine() -> None:
    with pytest.raises(StartError, match="Nothing checks who calls"):
        bound("0.0.0.0", 0, loopback_only=True)
    close(bound("0.0.0.0", 0, loopback_only=False))


def test_a_name_that_leads_elsewhere_is_not_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "127.0.0.1", "0.0.0.0")
    with pytest.raises(StartError, match="`localhost` can be reached from others"):
        bound("localhost", 0, loopback_only=True)


def test_a_port_that_is_taken_is_told() -> None:
    (taken,) = bound("127.0.0.1", 0, loopback_only=True)
    with taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=rf"Cannot listen on `127.0.0.1`, port {port}: Address already in use\."):
            bound("127.0.0.1", port, loopback_only=True)


@pytest.mark.parametrize("error", [socket.gaierror(-2, "unknown"), UnicodeError("no name")])
def test_a_host_without_an_address_is_told(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def getaddrinfo(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(StartError, match=r"There is no address for the host `nowhere.invalid`\."):
        bound("nowhere.invalid", 0, loopback_only=True)


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        *[("127.0.0.1", True), ("127.255.255.254", True), ("::1", True), ("::ffff:127.0.0.1", True)],
        *[("0.0.0.0", False), ("::", False), ("192.168.0.1", False), ("::ffff:192.168.0.1", False)],
        *[("fe80::1%lo", False), ("128.0.0.1", False)],
    ],
)
def test_loopback_is_what_only_this_machine_reaches(address: str, loopback: bool) -> None:
    assert is_loopback(address) is loopback
