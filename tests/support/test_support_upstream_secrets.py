"""Secrets: only the variables that are named, as they are now, and never in a text."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from verbc.support.refusal import Refusal
from verbc.support.upstream_secrets import secrets_of

from .upstream_samples import program, service

URL = "http://localhost:1/mcp"


def refusal(manifest: Any, environ: dict[str, str]) -> Refusal:
    with pytest.raises(Refusal) as error:
        secrets_of(manifest, environ)
    assert error.value.kind == "unavailable"
    return error.value


def test_a_program_gets_the_named_variables() -> None:
    manifest = program(stdio={"env": {"TOKEN": "HOST_TOKEN", "EMPTY": "HOST_EMPTY"}})
    found = secrets_of(manifest, {"HOST_TOKEN": "a", "HOST_EMPTY": "", "OTHER": "b"})
    assert found.values == {"TOKEN": "a", "EMPTY": ""}


def test_a_header_is_put_together() -> None:
    manifest = service(URL, {"Authorization": {"env": "KEY", "prefix": "Bearer "}, "X-Plain": {"env": "PLAIN"}})
    found = secrets_of(manifest, {"KEY": "k", "PLAIN": "p"})
    assert found.values == {"Authorization": "Bearer k", "X-Plain": "p"}


def test_a_missing_variable_is_named_with_what_it_is_for() -> None:
    message = refusal(program(stdio={"env": {"TOKEN": "HOST_TOKEN"}}), {}).message
    assert message == "`stub` needs the environment variable `HOST_TOKEN` for `TOKEN`; set it."
    assert "`KEY`" in refusal(service(URL, {"X-Key": {"env": "KEY"}}), {}).message


@pytest.mark.parametrize("wrong", ["{}\r\nHost: x", "{}\n", "\0{}", "{}\u00fc", " {}", "{}\t", "{}" + "x" * 8192])
def test_what_cannot_be_a_header_is_refused_and_not_shown(wrong: str) -> None:
    secret = secrets.token_hex()
    told = refusal(service(URL, {"X-Key": {"env": "KEY"}}), {"KEY": wrong.format(secret)})
    assert "`KEY`" in told.message
    assert secret not in str(told.args)


def test_a_header_may_be_as_long_as_its_limit() -> None:
    manifest = service(URL, {"X-Key": {"env": "KEY", "prefix": "Token "}})
    assert len(secrets_of(manifest, {"KEY": "x" * 8186}).values["X-Key"]) == 8192
    refusal(manifest, {"KEY": "x" * 8187})


def test_no_program_can_be_given_nul() -> None:
    refusal(program(stdio={"env": {"TOKEN": "HOST_TOKEN"}}), {"HOST_TOKEN": "a\0b"})


def test_values_stand_in_no_text_and_their_digest_tells_them_apart() -> None:
    manifest, secret = program(stdio={"env": {"TOKEN": "KEY"}}), secrets.token_hex()
    found = secrets_of(manifest, {"KEY": secret})
    assert secret not in repr(found)
    assert found.digest == secrets_of(manifest, {"KEY": secret, "X": "y"}).digest
    assert found.digest != secrets_of(manifest, {"KEY": secret + "x"}).digest
    assert found.digest not in repr(found)


def test_the_snapshot_does_not_change_with_the_environment() -> None:
    environ = {"KEY": "a"}
    found = secrets_of(program(stdio={"env": {"TOKEN": "KEY"}}), environ)
    environ["KEY"] = "b"
    assert found.values == {"TOKEN": "a"}
