"""Who sends a request: what counts as a key, and that nobody gets in while it cannot be told."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verbc.support.bearer import Identity, NotAuthenticatedError, VerifierError, authenticate
from verbc.support.call import Caller

from .programs import finish

KEY = "s3cret-" + "k" * 36
Headers = Sequence[tuple[bytes, bytes]]


@dataclass
class Knowing:
    """A verifier that knows one key, or fails."""

    answer: Identity | Exception | None = field(default_factory=lambda: Identity("ada"))
    asked: list[str] = field(default_factory=list)

    async def verify(self, key: str) -> Identity | None:
        self.asked.append(key)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def line(value: bytes) -> Headers:
    return [(b"host", b"x"), (b"authorization", value)]


def caller(headers: Headers, verifier: Knowing | None = None) -> Caller:
    return finish(authenticate(headers, verifier or Knowing()))


def refused(headers: Headers, verifier: Knowing | None = None) -> NotAuthenticatedError:
    with pytest.raises(NotAuthenticatedError) as error:
        caller(headers, verifier)
    return error.value


def test_a_good_key_makes_a_caller() -> None:
    verifier = Knowing(Identity("ada", "acct_1", frozenset({"read"}), time.time() + 1000))
    found = caller(line(b"Bearer " + KEY.encode()), verifier)
    assert found == Caller("ada", "acct_1", frozenset({"read"}))
    assert found.credentials == KEY
    assert verifier.asked == [KEY]
    assert KEY not in repr(found)


@pytest.mark.parametrize("value", [b"bearer k", b"BEARER k", b"bEaReR    k", b" Bearer k ", b"Bearer k\t"])
def test_the_scheme_is_found_however_it_is_written(value: bytes) -> None:
    verifier = Knowing()
    caller(line(value), verifier)
    assert verifier.asked == ["k"]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"Bearer",
        b"Bearer ",
        b"Basic YTpi",
        b"k",
        b"Bearer\tk",
        b"Bearerk",
        b"Bearer a b",
        b"Bearer a, Bearer b",
        b"Bearer k\x7f",
        b"Bearer \xc3\xa9",
        b"Bearer k\n",
        b"Bearer k\x00",
        b"Bearer " + b"k" * 4097,
        b"Basic Bearer k",
    ],
)
def test_whatever_is_no_bearer_key_is_not_even_looked_up(value: bytes) -> None:
    verifier = Knowing()
    error = refused(line(value), verifier)
    assert error.challenge == 'Bearer realm="mcp", error="invalid_request"'
    assert verifier.asked == []


def test_the_longest_key_is_looked_up() -> None:
    verifier = Knowing()
    caller(line(b"Bearer " + b"k" * 4096), verifier)
    assert verifier.asked == ["k" * 4096]


def test_without_a_key_it_is_said_that_one_is_needed() -> None:
    error = refused([(b"x-authorization", b"Bearer k")])
    assert error.challenge == 'Bearer realm="mcp"'
    assert str(error) == "A key is needed, in the header Authorization."


def test_two_keys_are_none() -> None:
    verifier = Knowing()
    error = refused([*line(b"Bearer k"), *line(b"Bearer k")], verifier)
    assert error.challenge.endswith('error="invalid_request"')
    assert verifier.asked == []


def test_a_key_that_is_not_good_is_refused() -> None:
    error = refused(line(b"Bearer " + KEY.encode()), Knowing(None))
    assert error.challenge == 'Bearer realm="mcp", error="invalid_token"'
    assert "s3cret" not in str(error)


@pytest.mark.parametrize("left", [0.0, -1.0, -1e9])
def test_a_key_that_has_expired_is_refused_whatever_the_verifier_says(left: float) -> None:
    identity = Identity("ada", expires_at=time.time() + left)
    assert "invalid_token" in refused(line(b"Bearer k"), Knowing(identity)).challenge


def test_a_verifier_that_cannot_tell_lets_nobody_in() -> None:
    with pytest.raises(VerifierError, match="the service sleeps"):
        caller(line(b"Bearer k"), Knowing(VerifierError("the service sleeps")))


@pytest.mark.parametrize("error", [ValueError(KEY), OSError(KEY), KeyError(KEY), TimeoutError()])
def test_a_verifier_that_fails_lets_nobody_in(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), pytest.raises(VerifierError) as raised:
        caller(line(b"Bearer " + KEY.encode()), Knowing(error))
    assert raised.value.__cause__ is None
    assert "s3cret" not in str(raised.value)
    (record,) = caplog.records
    assert record.msg == "a verifier failed"
    assert "s3cret" not in str(vars(record))


@settings(deadline=None)
@given(st.lists(st.tuples(st.just(b"authorization"), st.binary()), max_size=3))
def test_nobody_gets_in_by_chance(headers: Headers) -> None:
    verifier = Knowing(None)
    with pytest.raises(NotAuthenticatedError):
        caller(headers, verifier)
    assert all(key.isascii() and key.isprintable() and " " not in key for key in verifier.asked)
