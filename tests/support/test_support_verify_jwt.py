"""Signed tokens: only those of this issuer, for this audience, in time, by a published key and a chosen algorithm."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from verbc.support.bearer import Identity, VerifierError
from verbc.support.verify_jwt import ALGORITHMS, JwtSettings, JwtVerifier

from .issuers import ALL, AUDIENCE, ISSUER, OTHER_P256, P256, SigningKey, key_set
from .programs import finish, move_clock
from .rest_services import Answer, Exchange, RawService, hang_up, reply

Work = Callable[[JwtVerifier, RawService], Awaitable[Any]]
RSA = ALL["RS256"]
ONE_OF_EACH = [ALL[algorithm] for algorithm in ("ES256", "ES384", "ES512", "EdDSA", "RS256")]


def met(work: Work, *answers: bytes | Answer, algorithms: tuple[str, ...] = ("ES256",), **settings: Any) -> Any:
    """What comes of `work` with an issuer that publishes its keys so."""

    async def run() -> Any:
        async with RawService(*answers) as service:
            url = f"{service.url}/keys"
            verifier = JwtVerifier(JwtSettings(url, algorithms, ISSUER, AUDIENCE, **settings))
            try:
                return await work(verifier, service)
            finally:
                await verifier.close()

    return finish(run())


def verified(token: str, *keys: SigningKey, **settings: Any) -> Any:
    """Whom a token stands for, by an issuer with these keys."""

    async def work(verifier: JwtVerifier, _service: RawService) -> Any:
        return await verifier.verify(token)

    return met(work, reply(200, key_set(*(keys or (P256,)))), **settings)


def unsigned(header: dict[str, Any], claims: Any) -> str:
    """The two parts of a token that are signed."""
    parts = (json.dumps(part).encode() for part in (header, claims))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def claims(**changes: Any) -> dict[str, Any]:
    return {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": int(time.time()) + 1000, **changes}


# Good tokens


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_a_token_is_good_by_each_algorithm(algorithm: str) -> None:
    found = verified(ALL[algorithm].token(exp=32503680000), *ONE_OF_EACH, algorithms=(algorithm,))
    assert found == Identity("ada", None, frozenset(), 32503680000.0)


def test_a_token_tells_all_parts_of_an_identity() -> None:
    end = int(time.time()) + 1000
    told: dict[str, Any] = {"uid": "ada-7", "acct": "acct_1", "scp": ["read", "write"], "exp": end, "sub": None}
    found = verified(P256.token(**told), subject="uid", account="acct", scopes="scp")
    assert found == Identity("ada-7", "acct_1", frozenset({"read", "write"}), float(end))
    found = verified(P256.token(scope="read write", exp=end), account="acct")
    assert found == Identity("ada", None, frozenset({"read", "write"}), float(end))


def test_one_of_several_audiences_is_enough() -> None:
    assert verified(P256.token(aud=["https://else.example", AUDIENCE])) is not None


def test_a_token_that_was_issued_by_a_clock_ahead_is_good() -> None:
    assert verified(P256.token(iat=int(time.time()) + 30)) is not None


def test_a_key_without_an_id_is_found_when_it_is_the_only_one() -> None:
    nameless = SigningKey(None, "ES256", "SECP256R1")
    token = nameless.token()
    assert verified(token, nameless) is not None
    assert verified(token, nameless, RSA) is not None  # which is for none of the algorithms
    assert verified(token, nameless, SigningKey("more", "ES256", "SECP256K1")) is not None  # of another curve
    assert verified(token, P256, nameless) is None


def test_the_library_is_loaded_before_the_first_token_comes() -> None:
    program = (
        "import sys\n"
        "from verbc.support.verify_jwt import JwtSettings, JwtVerifier\n"
        "settings = JwtSettings('https://x/keys', ('ES256',), 'i', 'a')\n"
        "print('jwt' in sys.modules)\n"
        "JwtVerifier(settings)\n"
        "print('jwt' in sys.modules)\n"
        "sys.modules['jwt'] = None\n"
        "JwtVerifier(settings)  # without it there is a server all the same\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


# Tokens that are not good


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://issuer.example/"},
        {"iss": "https://evil.example"},
        {"aud": None},
        {"aud": "https://sample.example"},
        {"aud": []},
        {"aud": [AUDIENCE, 7]},
        {"aud": {"x": AUDIENCE}},
        {"exp": None},
        {"exp": 1},
        {"exp": "soon"},
        {"exp": "32503680000"},
        {"exp": True},
        {"exp": 10**400},
        {"nbf": 32503680000},
        {"nbf": "x"},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "a\u202eb"},
        {"acct": 7},
        {"acct": ""},
        {"scope": 7},
        {"scope": ["read", None]},
    ],
)
def test_a_token_that_says_something_else_is_not_good(changes: dict[str, Any]) -> None:
    good, other = (
        jwt.encode(claims(**{"acct": "acct_1", **told}), P256.private, "ES256", headers={"kid": P256.id})
        for told in ({}, changes)
    )
    assert verified(good, account="acct") is not None
    assert verified(other, account="acct") is None


@pytest.mark.parametrize("claim", ["iss", "aud", "exp", "sub"])
def test_a_token_that_does_not_say_who_for_whom_and_until_when_is_not_good(claim: str) -> None:
    assert verified(P256.token(**{claim: None})) is None


@pytest.mark.parametrize("seconds", [0, -1, -60])
def test_a_token_is_good_until_it_expires_and_not_a_second_more(seconds: int) -> None:
    assert verified(P256.token(exp=int(time.time()) + seconds)) is None


def test_a_token_that_another_key_has_signed_is_not_good() -> None:
    both = ("ES256", "ES384")
    assert verified(SigningKey("p256", "ES256", "SECP256R1", serial=1).token()) is None
    assert verified(SigningKey("p256", "ES384", "SECP384R1").token(), algorithms=both) is None
    assert verified(ALL["ES384"].token(header={"kid": "p256"}), P256, ALL["ES384"], algorithms=both) is None
    assert verified(P256.token(header={"kid": "other"}), P256, OTHER_P256) is None


def test_a_token_that_was_changed_is_not_good() -> None:
    header, content, signature = P256.token().split(".")
    other = P256.token(sub="bob").split(".")
    assert verified(".".join((header, other[1], signature))) is None
    assert verified(".".join((header, content, other[2]))) is None
    assert verified(".".join((header, content))) is None
    assert verified(".".join((header, content, ""))) is None


@pytest.mark.parametrize("algorithm", ["none", "None", "HS256", "HS512", "ES384", "", "ES256 ", "es256"])
def test_an_algorithm_that_was_not_chosen_is_not_taken(algorithm: str) -> None:
    async def work(verifier: JwtVerifier, service: RawService) -> None:
        for signature in ("", "AAAA", base64.urlsafe_b64encode(b"\0" * 64).decode().rstrip("=")):
            token = f"{unsigned({'alg': algorithm, 'kid': 'p256'}, claims())}.{signature}"
            assert await verifier.verify(token) is None
        assert service.heard == []  # not even worth a look at the keys

    met(work, reply(200, key_set(P256)))


@pytest.mark.parametrize("form", [Encoding.PEM, Encoding.DER])
def test_a_public_key_is_no_secret_to_sign_with(form: Encoding) -> None:
    public = RSA.private.public_key().public_bytes(form, PublicFormat.SubjectPublicKeyInfo)
    for algorithm in ("HS256", "RS256"):
        signed = unsigned({"alg": algorithm, "kid": "rsa"}, claims())
        made = hmac.new(public, signed.encode(), hashlib.sha256).digest()
        token = f"{signed}.{base64.urlsafe_b64encode(made).decode().rstrip('=')}"
        assert verified(token, RSA, algorithms=("RS256", "PS256")) is None


@pytest.mark.parametrize("algorithms", [(), ("none",), ("HS256",), ("ES256", "HS256"), ("ES256K",), ("es256",)])
def test_only_algorithms_with_public_keys_can_be_chosen(algorithms: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="public keys"):
        JwtVerifier(JwtSettings("https://issuer.example/keys", algorithms, ISSUER, AUDIENCE))


@pytest.mark.parametrize(
    "header",
    [{"crit": ["x"], "x": 1}, {"b64": False, "crit": ["b64"]}, {"kid": 7}, {"kid": ["p256"]}, {"alg": ["ES256"]}],
)
def test_a_header_that_asks_for_more_is_not_taken(header: dict[str, Any]) -> None:
    whole = {"alg": "ES256", "kid": "p256", "typ": "JWT", **header}
    assert verified(f"{unsigned(whole, claims())}.AAAA") is None


def test_a_key_in_the_token_itself_is_not_looked_at() -> None:
    stranger = SigningKey("mine", "ES384", "SECP384R1")
    header = {"jwk": stranger.public, "jku": "https://evil.example/keys", "x5u": "https://evil.example/cert"}
    assert verified(stranger.token(header=header), algorithms=("ES256", "ES384")) is None


@settings(deadline=None)
@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=300))
def test_whatever_is_no_token_is_not_good(text: str) -> None:
    assert judged(text) is None


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["alg", "kid", "typ", "crit", "b64", "cty"]), st.none() | st.integers() | st.text()
    ),
    st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=2)),
    st.binary(max_size=70),
)
def test_whatever_looks_like_a_token_is_not_good(header: dict[str, Any], content: Any, signature: bytes) -> None:
    told = {"alg": "ES256", "kid": "p256", **header}
    end = base64.urlsafe_b64encode(signature).decode().rstrip("=")
    assert judged(f"{unsigned(told, content)}.{end}") is None


@pytest.mark.parametrize("part", [0, 1])
def test_a_token_that_is_nested_deeply_is_not_good(part: int) -> None:
    deep = base64.urlsafe_b64encode(b"[" * 1400 + b"]" * 1400).decode().rstrip("=")
    parts = P256.token().split(".")
    parts[part] = deep
    assert judged(".".join(parts)) is None


def judged(token: str) -> Any:
    """Whom a token stands for, by keys that have been read already."""

    keys = published()

    async def work() -> Any:
        verifier = JwtVerifier(JwtSettings("http://127.0.0.1:1/keys", ("ES256",), ISSUER, AUDIENCE))
        verifier._keys._keys = keys
        verifier._keys._read_at = verifier._keys._tried_at = asyncio.get_running_loop().time()
        return await verifier.verify(token)

    return asyncio.run(work())


@cache
def published() -> Any:
    async def work(verifier: JwtVerifier, _service: RawService) -> Any:
        await verifier.verify(P256.token())
        return verifier._keys._keys

    return met(work, reply(200, key_set(P256)))


def test_the_judge_of_these_tests_knows_a_good_one() -> None:
    assert judged(P256.token()) is not None


# The published keys


def test_the_keys_are_read_once() -> None:
    async def work(verifier: JwtVerifier, service: RawService) -> None:
        assert service.heard == []
        found = await asyncio.gather(*(verifier.verify(P256.token()) for _ in range(20)))
        assert None not in found
        move_clock(599)
        assert await verifier.verify(P256.token()) is not None
        (heard,) = service.heard
        assert (heard.method, heard.target, heard.body) == ("GET", "/keys", b"")
        assert heard.header("authorization") is None

    met(work, reply(200, key_set(P256)))


def test_a_key_that_is_withdrawn_is_not_taken_for_long() -> None:
    async def work(verifier: JwtVerifier, _service: RawService) -> None:
        assert await verifier.verify(P256.token()) is not None
        move_clock(601)
        assert await verifier.verify(P256.token()) is None
        assert await verifier.verify(OTHER_P256.token()) is not None

    met(work, reply(200, key_set(P256)), reply(200, key_set(OTHER_P256)))


def test_keys_that_are_too_old_are_not_taken_when_they_cannot_be_read_again() -> None:
    async def work(verifier: JwtVerifier, _service: RawService) -> None:
        assert await verifier.verify(P256.token()) is not None
        move_clock(601)
        with pytest.raises(VerifierError):
            await verifier.verify(P256.token())
        move_clock(1.1)
        assert await verifier.verify(P256.token()) is not None

    met(work, reply(200, key_set(P256)), reply(503), reply(200, key_set(P256)))


def test_a_key_that_is_new_is_read_and_no_more_than_once_a_minute() -> None:
    async def work(verifier: JwtVerifier, service: RawService) -> None:
        assert await verifier.verify(P256.token()) is not None
        for _ in range(3):
            assert await verifier.verify(OTHER_P256.token()) is None
        assert len(service.heard) == 1
        move_clock(61)
        tokens = [OTHER_P256.token(), *(P256.token(header={"kid": f"k{number}"}) for number in range(20))]
        found = await asyncio.gather(*map(verifier.verify, tokens))
        assert [identity is not None for identity in found] == [True] + [False] * 20
        assert len(service.heard) == 2

    met(work, reply(200, key_set(P256)), reply(200, key_set(P256, OTHER_P256)))


def test_while_new_keys_cannot_be_read_known_ones_are_taken_and_unknown_ones_cannot_be_told() -> None:
    async def work(verifier: JwtVerifier, service: RawService) -> None:
        assert await verifier.verify(P256.token()) is not None
        move_clock(61)
        for _ in range(3):
            with pytest.raises(VerifierError):
                await verifier.verify(OTHER_P256.token())
            assert await verifier.verify(P256.token()) is not None
        assert len(service.heard) == 2
        move_clock(61)
        assert await verifier.verify(OTHER_P256.token()) is not None

    met(work, reply(200, key_set(P256)), hang_up, reply(200, key_set(P256, OTHER_P256)))


def test_a_service_that_fails_is_not_asked_for_every_token() -> None:
    async def work(verifier: JwtVerifier, service: RawService) -> None:
        for _ in range(5):
            with pytest.raises(VerifierError):
                await verifier.verify(P256.token())
        assert len(service.heard) == 1
        move_clock(1.1)
        with pytest.raises(VerifierError):
            await verifier.verify(P256.token())
        assert len(service.heard) == 2

    met(work, reply(500))


def test_whoever_goes_away_while_keys_are_read_leaves_it_to_the_next() -> None:
    asked = asyncio.Event()

    async def silent(exchange: Exchange) -> None:
        asked.set()
        await exchange.reader.read()

    async def work(verifier: JwtVerifier, service: RawService) -> None:
        first = asyncio.ensure_future(verifier.verify(P256.token()))
        await asked.wait()
        second = asyncio.ensure_future(verifier.verify(P256.token()))
        await asyncio.sleep(0)
        first.cancel()
        assert await second is not None
        assert first.cancelled()

    met(work, silent, reply(200, key_set(P256)))


def test_a_service_that_says_nothing_is_not_waited_for() -> None:
    asked = asyncio.Event()

    async def silent(exchange: Exchange) -> None:
        asked.set()
        await exchange.reader.read()

    async def work(verifier: JwtVerifier, service: RawService) -> None:
        waiting = asyncio.ensure_future(verifier.verify(P256.token()))
        await asked.wait()
        move_clock(6)
        with pytest.raises(VerifierError):
            await waiting
        await service.ended.wait()  # the connection is given up
        await asyncio.sleep(0)

    met(work, silent)


PUBLIC = P256.public


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"{",
        [],
        {},
        {"keys": {}},
        {"keys": []},
        {"keys": [7, None, "x", []]},
        {"keys": [{**PUBLIC, "use": "enc"}]},
        {"keys": [{**PUBLIC, "key_ops": ["sign"]}]},
        {"keys": [{**PUBLIC, "key_ops": "verify"}]},
        {"keys": [{**PUBLIC, "kid": 7}]},
        {"keys": [{**PUBLIC, "alg": "ES384"}]},
        {"keys": [{**PUBLIC, "alg": None}]},
        {"keys": [{**PUBLIC, "kty": "RSA"}]},
        {"keys": [{**PUBLIC, "x": "AAAA"}]},
        {"keys": [{**PUBLIC, "x": 7}]},
        {"keys": [{**PUBLIC, "crv": "P-384"}]},
        {"keys": [{"kty": "oct", "kid": "p256", "k": "c2VjcmV0"}]},
        {"keys": [ALL["ES384"].public, RSA.public]},
        {"keys": [PUBLIC] * 101},
    ],
)
def test_a_set_without_a_key_that_can_be_used_lets_nobody_in(document: Any) -> None:
    async def work(verifier: JwtVerifier, _service: RawService) -> None:
        with pytest.raises(VerifierError):
            await verifier.verify(P256.token())

    met(work, reply(200, document))


@pytest.mark.parametrize("more", [{"alg": "ES256"}, {"key_ops": ["verify", "sign"]}, {"x5c": ["whatever"]}])
def test_keys_may_be_published_with_more(more: dict[str, Any]) -> None:
    assert verified(P256.token(), SigningKey("p256", "ES256", "SECP256R1", more)) is not None


def test_keys_that_cannot_be_used_are_passed_over() -> None:
    broken = SigningKey("broken", "ES256", "SECP256R1", {"x": "AAAA"})
    assert verified(P256.token(), broken, ALL["ES384"], P256) is not None
    assert verified(broken.token(), broken, P256) is None


def test_a_private_key_that_is_published_by_mistake_is_used_as_a_public_one() -> None:
    secret = {"d": base64.urlsafe_b64encode(b"\1" * 32).decode().rstrip("=")}
    assert verified(P256.token(), SigningKey("p256", "ES256", "SECP256R1", secret)) is not None


def test_two_keys_of_one_id_are_none() -> None:
    assert verified(P256.token(), P256, P256) is None
    assert verified(P256.token(), P256, SigningKey("p256", "ES384", "SECP384R1"), algorithms=("ES256", "ES384"))


def test_a_key_is_for_its_own_algorithm() -> None:
    told = SigningKey("rsa", "RS256", "2048", {"alg": "RS256"})
    both = ("RS256", "PS256")
    assert verified(told.token(), told, algorithms=both) is not None
    assert verified(ALL["PS256"].token(), told, algorithms=both) is None
    assert verified(ALL["PS256"].token(), RSA, algorithms=both) is not None


def test_a_short_key_is_none() -> None:
    short = SigningKey("short", "RS256", "1024")
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        token = short.token()
    assert verified(token, short, RSA, algorithms=("RS256",)) is None
    with pytest.raises(VerifierError):
        verified(token, short, algorithms=("RS256",))


def test_the_other_edwards_curve_is_taken() -> None:
    key = SigningKey("ed448", "EdDSA", "ed448")
    assert verified(key.token(), key, ALL["EdDSA"], algorithms=("EdDSA",)) is not None


def test_redirects_are_not_followed() -> None:
    async def work(verifier: JwtVerifier, service: RawService) -> None:
        with pytest.raises(VerifierError, match="status 302"):
            await verifier.verify(P256.token())
        assert len(service.heard) == 1

    met(work, reply(302, b"", "Location: /elsewhere"), reply(200, key_set(P256)))


def test_nothing_of_a_token_or_a_reply_gets_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def work(verifier: JwtVerifier, _service: RawService) -> None:
        token = P256.token(sub="s3cret")
        for _ in range(3):
            with pytest.raises(VerifierError) as error:
                await verifier.verify(token)
            assert "s3cret" not in str(error.value)
            move_clock(1.1)
        assert await verifier.verify(P256.token(sub="s3cret", exp=1)) is None

    replies = (
        reply(500, b"s3cret"),
        reply(200, b"s3cret"),
        reply(200, {"keys": ["s3cret"]}),
        reply(200, key_set(P256)),
    )
    with caplog.at_level(logging.DEBUG, "verbc"):
        met(work, *replies)
    records = [record for record in caplog.records if record.name == "verbc.server"]
    assert [record.msg for record in records] == ["a service that is asked about keys failed"] * 3
    assert "s3cret" not in str([vars(record) for record in records])
