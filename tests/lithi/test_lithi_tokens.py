"""Signed tokens: only those of this issuer, for this server, in time, by a key that the issuer publishes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from .servers import Server, serving
from .stub import Service, always, reply, service
from .tokens import ACCOUNT, AUDIENCE, ISSUER, Issuer, key_set
from .verifying import FAILURES, QUOTE, UNTELLING, jwt_way, quoted, turned_away
from .wire import REVISIONS
from .world import job_of


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(scope="module")
def published(issuer: Issuer) -> Iterator[Service]:
    with service(always(reply(200, key_set(issuer)))) as running:
        yield running


@pytest.fixture(scope="module")
def signed(published: Service, backend: Service) -> Iterator[Server]:
    with serving(None, backend.url, "--verify", json.dumps(jwt_way(f"{published.url}/keys"))) as server:
        yield server


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_token_tells_who_it_is(signed: Server, issuer: Issuer, backend: Service, revision: str) -> None:
    token = issuer.token()
    assert quoted(signed.endpoint(token), revision).work == QUOTE
    assert backend.heard[-1].headers["authorization"] == f"Bearer {token}"
    assert quoted(signed.endpoint(issuer.token(aud=["https://other.example", AUDIENCE])), revision).work == QUOTE


def test_scopes_and_account_of_a_token_hold(signed: Server, issuer: Issuer, backend: Service) -> None:
    backend.heard.clear()
    for scope in ("compute:read", "", None):
        assert quoted(signed.endpoint(issuer.token(scope=scope))).refusal["kind"] == "insufficient_scope"
    endpoint = signed.endpoint(issuer.token())
    foreign = {"job": job_of(account_id="acct_zzzzzzzzzzzz")}
    assert endpoint.call("lithi.quote", foreign).refusal["kind"] == "denied"
    assert backend.heard == []
    assert endpoint.call("lithi.quote", {"job": job_of(account_id=ACCOUNT)}).work == QUOTE
    homeless = signed.endpoint(issuer.token(account=None))
    assert homeless.call("lithi.quote", {"job": job_of(account_id=ACCOUNT)}).refusal["kind"] == "denied"


PAST, FUTURE = 1_000_000_000, 4_000_000_000

BAD_TOKENS: dict[str, Callable[[Issuer], str]] = {
    "of another key under the same id": lambda _: Issuer().token(),
    "of an unknown key": lambda _: Issuer("other").token(),
    "of a key that it brings along": lambda _: (stranger := Issuer()).token({"jwk": stranger.published}),
    "unsigned": lambda issuer: issuer.forged("none"),
    "unsigned, in capitals": lambda issuer: issuer.forged("NONE"),
    "signed with the public key as a secret": lambda issuer: issuer.forged("HS256", issuer.pem),
    "signed with the id as a secret": lambda issuer: issuer.forged("HS256", issuer.id.encode()),
    "with another algorithm": lambda issuer: issuer.forged("RS256", b"x"),
    "without its signature": lambda issuer: issuer.token().rpartition(".")[0] + ".",
    "with another body": lambda issuer: ".".join(
        [issuer.token().split(".")[0], issuer.token(sub="eve").split(".")[1], issuer.token().split(".")[2]]
    ),
    "with members that have to be understood": lambda issuer: issuer.token({"crit": ["s3cret"], "s3cret": 1}),
    "in two parts": lambda issuer: issuer.token().rpartition(".")[0],
    "in four parts": lambda issuer: issuer.token() + ".x",
    "no token": lambda _: "s3cret",
    "nothing but points": lambda _: "..",
    "expired": lambda issuer: issuer.token(exp=PAST),
    "without an end": lambda issuer: issuer.token(exp=None),
    "not good yet": lambda issuer: issuer.token(nbf=FUTURE),
    "of another issuer": lambda issuer: issuer.token(iss="https://other.example"),
    "of an issuer whose name begins so": lambda issuer: issuer.token(iss=f"{ISSUER}/"),
    "of nobody": lambda issuer: issuer.token(iss=None),
    "for somebody else": lambda issuer: issuer.token(aud="https://other.example"),
    "for several others": lambda issuer: issuer.token(aud=["https://other.example"]),
    "for nobody": lambda issuer: issuer.token(aud=None),
    "about nobody": lambda issuer: issuer.token(sub=None),
    "about nobody in particular": lambda issuer: issuer.token(sub=""),
}


@pytest.mark.parametrize("kind", BAD_TOKENS)
def test_a_token_that_is_not_good(
    signed: Server, issuer: Issuer, published: Service, backend: Service, kind: str
) -> None:
    assert quoted(signed.endpoint(issuer.token())).status == 200
    backend.heard.clear()
    token = BAD_TOKENS[kind](issuer)
    turned_away(quoted(signed.endpoint(token)), token, 401)
    assert backend.heard == []
    assert {heard.target for heard in published.heard} == {"/keys"}


def test_a_token_that_says_where_its_key_is(signed: Server, published: Service, backend: Service) -> None:
    backend.heard.clear()
    stranger = Issuer()
    with service(always(reply(200, key_set(stranger)))) as trap:
        for header in ({"jku": f"{trap.url}/keys"}, {"x5u": f"{trap.url}/keys"}, {"kid": f"{trap.url}/keys"}):
            token = stranger.token(header)
            turned_away(quoted(signed.endpoint(token)), token, 401)
        assert trap.heard == []
    assert backend.heard == []


def test_unknown_keys_do_not_make_it_ask_again_and_again(signed: Server, published: Service) -> None:
    before = len(published.heard)
    for number in range(30):
        token = Issuer(f"unknown-{number}").token()
        turned_away(quoted(signed.endpoint(token)), token, 401)
    assert len(published.heard) - before <= 2


def test_published_keys_that_cannot_be_had(backend: Service, issuer: Issuer) -> None:
    backend.heard.clear()
    with service(always(None)) as publishing:
        way = json.dumps(jwt_way(f"{publishing.url}/keys"))
        with serving(None, backend.url, "--verify", way) as server:
            for failure in UNTELLING:
                publishing.answer = always(FAILURES[failure])
                for token in (issuer.token(), Issuer("other").token()):
                    turned_away(quoted(server.endpoint(token)), token, 503)
        assert {heard.target for heard in publishing.heard} == {"/keys"}
    assert backend.heard == []


def test_no_log_has_a_token(signed: Server) -> None:
    assert "eyJ" not in signed.output.text  # as tokens begin
    assert "s3cret" not in signed.output.text
