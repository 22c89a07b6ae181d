"""From the spec, or from whoever starts a server, to a verifier; and a sentence for whatever cannot be followed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from verbc.support.asked_keys import AskedKeys
from verbc.support.bearer import Identity
from verbc.support.http_sockets import StartError
from verbc.support.key_entries import KeyEntry, key_digest
from verbc.support.keys_file import change_keys
from verbc.support.registry import Registry, from_data
from verbc.support.verify_backend import BackendSettings
from verbc.support.verify_introspection import IntrospectionSettings
from verbc.support.verify_jwt import JwtSettings, JwtVerifier
from verbc.support.verify_keys import FileVerifier
from verbc.support.verify_settings import KeysSettings, Settings, SettingsError, verify_settings
from verbc.support.verifying import verifier_of

from .issuers import AUDIENCE, ISSUER, P256, key_set
from .programs import finish
from .rest_services import RawService, reply
from .samples import DATA

ENVIRON = {
    "HOST": "idp.example",
    "SECRET": "czNjcmV0",
    "FILE": "/etc/keys.json",
    "LINES": "a\r\nb",
    "USERINFO": "https://me:s3cret@idp.example/i",
    "REMOTE": "http://idp.example/s3cret",
}
KEYS = {"keys": "${FILE}"}
INTROSPECT = {
    "introspect": "https://${HOST}/i?kind=access",
    "headers": {"Authorization": "Basic ${SECRET}"},
    "subject": "username",
    "account": "acct",
    "scopes": "rights",
}
JWT = {
    "jwt": "https://${HOST}/keys",
    "algorithms": ["ES256", "EdDSA"],
    "issuer": "https://${HOST}",
    "audience": "${AUDIENCE:-sample}",
    "subject": "uid",
    "account": None,
    "scopes": "scp",
}
BACKEND = {
    "backend": "core",
    "target": ["GET", "/key"],
    "subject": "/id",
    "account": "/account",
    "scopes": None,
    "expires": None,
}


def settings(verify: dict[str, Any] | None, told: str | None = None) -> Settings | None:
    return verify_settings({"verify": verify, "scopes": {}, "pin": {}}, told, ENVIRON)


def problem(verify: dict[str, Any] | None, told: str | None = None) -> str:
    with pytest.raises(SettingsError) as error:
        settings(verify, told)
    assert "s3cret" not in str(error.value)
    assert "czNjcmV0" not in str(error.value)
    return str(error.value)


def registry(verify: dict[str, Any] | None, **changes: Any) -> Registry:
    return from_data({**DATA, "access": {"verify": verify, "scopes": {}, "pin": {}}, **changes})


# As the spec says


def test_where_nothing_is_said_nothing_is_verified() -> None:
    assert settings(None) is None
    assert verify_settings(None, None, ENVIRON) is None
    assert verifier_of(registry(None)) is None
    assert verifier_of(from_data(DATA)) is None


def test_each_way_has_its_settings_with_values_from_the_environment() -> None:
    assert settings(KEYS) == KeysSettings(Path("/etc/keys.json"))
    assert settings(INTROSPECT) == IntrospectionSettings(
        "https://idp.example/i?kind=access", {"Authorization": "Basic czNjcmV0"}, "username", "acct", "rights"
    )
    assert settings(JWT) == JwtSettings(
        "https://idp.example/keys", ("ES256", "EdDSA"), "https://idp.example", "sample", "uid", None, "scp"
    )
    assert settings(BACKEND) == BackendSettings("core", ("GET", "/key"), "/id", "/account", None, None)


def test_a_way_that_is_not_known_is_told() -> None:
    assert problem({"magic": "yes"}) == "The registry has a way to verify keys that this server does not know."


def test_a_variable_that_is_not_set_is_told() -> None:
    for verify in (
        {"keys": "${NONE}"},
        {**INTROSPECT, "introspect": "${NONE}"},
        {**INTROSPECT, "headers": {"X-Key": "${NONE}"}},
        {**JWT, "issuer": "${NONE}"},
    ):
        assert problem(verify) == "The environment variable `NONE` is not set."


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("${USERINFO}", "has credentials in it"),
        ("${REMOTE}", "is plain http, which is taken on this machine only"),
        ("http://idp.example/i", "is plain http, which is taken on this machine only"),
        ("https://${NONE:-}/i", "has no host, or one that is none"),
        ("https://idp.example/i#x", "has a query or a fragment"),
        ("https://idp.example/i?a=b#x", "has a query with characters that no address has"),
        ("https://idp.example/i?a=b c", "has a query with characters that no address has"),
        ("file:///etc/passwd", "is neither https nor http"),
        ("${LINES}", "has characters that no address has"),
    ],
)
def test_keys_are_sent_to_no_address_but_a_safe_one(url: str, reason: str) -> None:
    assert problem({**INTROSPECT, "introspect": url}) == f"The address of the introspection service {reason}."
    assert problem({**JWT, "jwt": url}) == f"The address of the published keys {reason}."


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/i", "http://localhost/i/", "http://[::1]:9/i", "https://x.example"]
)
def test_this_machine_needs_no_https(url: str) -> None:
    found = settings({**JWT, "jwt": url})
    assert isinstance(found, JwtSettings)
    assert found.url == url


def test_a_header_that_would_be_two_is_told() -> None:
    assert problem({**INTROSPECT, "headers": {"X-Key": "${LINES}"}}) == (
        "The header `X-Key` is configured with what no header can hold."
    )


# As whoever starts the server says


def test_what_is_told_takes_the_place_of_the_spec() -> None:
    for built_in in (None, KEYS, INTROSPECT, JWT, BACKEND):
        assert settings(built_in, "keys=/run/keys.json") == KeysSettings(Path("/run/keys.json"))
        assert settings(built_in, "keys=a=b") == KeysSettings(Path("a=b"))


def test_further_settings_are_those_of_the_spec_for_the_same_way() -> None:
    found = settings(INTROSPECT, "introspect=https://other.example/i")
    assert isinstance(found, IntrospectionSettings)
    assert (found.url, found.subject) == ("https://other.example/i", "username")
    assert found.headers == {"Authorization": "Basic czNjcmV0"}
    found = settings(JWT, "jwt=https://other.example/keys")
    assert isinstance(found, JwtSettings)
    assert (found.url, found.algorithms) == ("https://other.example/keys", ("ES256", "EdDSA"))


def test_another_way_has_its_defaults_where_it_has_some() -> None:
    assert settings(KEYS, "introspect=https://x.example/i") == IntrospectionSettings("https://x.example/i", {})
    message = problem(KEYS, "jwt=https://x.example/keys")
    assert message == (
        "To verify keys by `jwt` takes `algorithms`, `issuer`, `audience`; tell all of it as a JSON object."
    )


def test_all_of_a_way_can_be_told_as_it_would_stand_in_a_spec() -> None:
    told = {name: value for name, value in JWT.items() if name not in ("subject", "account", "scopes")}
    found = settings(KEYS, json.dumps(told))
    assert found == JwtSettings("https://idp.example/keys", ("ES256", "EdDSA"), "https://idp.example", "sample")
    assert settings(None, json.dumps(INTROSPECT)) == settings(INTROSPECT)
    assert settings(None, json.dumps(JWT)) == settings(JWT)
    assert settings(JWT, json.dumps(KEYS)) == settings(KEYS)


@pytest.mark.parametrize(
    "told",
    ["", "keys", "keys=", "=x", "nope=x", "backend=core", "KEYS=x", " keys=x", "https://x.example", "[]", "null"],
)
def test_what_is_no_way_is_told(told: str) -> None:
    assert problem(KEYS, told) == (
        "How keys are verified is told as keys=FILE, introspect=URL, jwt=URL or a JSON object."
    )


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("{", "is not JSON"),
        ('{"keys": "a", "keys": "b"}', "has an object with the same key twice"),
        ("{}", "has none of `keys`, `introspect`, `jwt`"),
        ('{"backend": "core", "target": ["GET", "/key"]}', "has none of `keys`, `introspect`, `jwt`"),
    ],
)
def test_an_object_that_tells_no_way_is_told(told: str, reason: str) -> None:
    assert problem(None, told) == f"The JSON object that tells how keys are verified {reason}."


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({**KEYS, "account": "x"}, "To verify keys by `keys` has no setting `account`."),
        ({**KEYS, "jwt": "x"}, "To verify keys by `keys` has no setting `jwt`."),
        ({**JWT, "leeway": 3}, "To verify keys by `jwt` has no setting `leeway`."),
        (
            {**JWT, "algorithms": []},
            "`algorithms` has to be a list with some of ES256, ES384, ES512, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512.",
        ),
        (
            {**JWT, "algorithms": ["HS256"]},
            "`algorithms` has to be a list with some of ES256, ES384, ES512, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512.",
        ),
        (
            {**JWT, "algorithms": ["ES256", "none"]},
            "`algorithms` has to be a list with some of ES256, ES384, ES512, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512.",
        ),
        (
            {**JWT, "algorithms": [["ES256"]]},
            "`algorithms` has to be a list with some of ES256, ES384, ES512, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512.",
        ),
        (
            {**JWT, "algorithms": "ES256"},
            "`algorithms` has to be a list with some of ES256, ES384, ES512, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512.",
        ),
        ({**JWT, "audience": None}, "`audience` has to be a text on one line, and not empty."),
        ({**JWT, "issuer": ""}, "`issuer` has to be a text on one line, and not empty."),
        ({**JWT, "jwt": 7}, "`jwt` has to be a text on one line, and not empty."),
        ({**JWT, "subject": None}, "`subject` has to be a text on one line, and not empty."),
        ({**INTROSPECT, "account": ""}, "`account` has to be a text on one line, or null."),
        ({**INTROSPECT, "headers": []}, "`headers` has to be an object with a text for each header."),
        ({**INTROSPECT, "headers": {"X Key": "k"}}, "`headers` has to be an object with a text for each header."),
        ({**INTROSPECT, "headers": {"X-Key": 7}}, "`headers` has to be an object with a text for each header."),
        ({"keys": "a\x00b"}, "`keys` has to be a text on one line, and not empty."),
    ],
)
def test_an_object_that_tells_something_else_is_told(told: dict[str, Any], message: str) -> None:
    assert problem(None, json.dumps(told)) == message


# To a verifier


def test_a_keys_file_is_looked_at_when_the_server_starts(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    file = tmp_path / "keys.json"
    known = registry({"keys": "${KEYS}"})
    with pytest.raises(StartError, match="is not there"):
        verifier_of(known, environ={"KEYS": str(file)})
    change_keys(file, lambda _: [KeyEntry(key_digest("k"), Identity("ada"))])
    for verifier in (verifier_of(known, environ={"KEYS": str(file)}), verifier_of(registry(None), f"keys={file}")):
        assert isinstance(verifier, FileVerifier)
        assert finish(verifier.verify("k")) == Identity("ada")


@pytest.mark.parametrize("told", ["nope", "keys=${NOT_SET_ANYWHERE}", "jwt=https://x.example/keys"])
def test_a_server_that_cannot_verify_does_not_start(told: str) -> None:
    with pytest.raises(StartError):
        verifier_of(registry(KEYS), told)


def test_a_service_is_asked_when_the_first_key_comes() -> None:
    async def work() -> None:
        async with RawService(reply(200, {"active": True, "sub": "ada"})) as service:
            verifier = verifier_of(registry(KEYS), f"introspect={service.url}/i")
            assert isinstance(verifier, AskedKeys)
            assert service.connections == 0
            assert await verifier.verify("k") == Identity("ada")
            await verifier.close()

    finish(work())


def test_tokens_are_verified_by_published_keys() -> None:
    async def work() -> None:
        async with RawService(reply(200, key_set(P256))) as service:
            told = {"jwt": f"{service.url}/keys", "algorithms": ["ES256"], "issuer": ISSUER, "audience": AUDIENCE}
            verifier = verifier_of(from_data(DATA), json.dumps(told))
            assert isinstance(verifier, JwtVerifier)
            found = await verifier.verify(P256.token())
            assert found is not None
            assert found.subject == "ada"
            await verifier.close()

    finish(work())


def test_a_backend_is_asked_as_the_registry_describes_it() -> None:
    async def work() -> None:
        async with RawService(reply(200, {"id": "ada", "account": "acct_1"})) as service:
            core = {"kind": "http", "url": service.url, "credentials": "forward", "headers": {}}
            verifier = verifier_of(registry(BACKEND, backends={"core": core}))
            assert isinstance(verifier, AskedKeys)
            assert await verifier.verify("k") == Identity("ada", "acct_1")
            assert service.heard[0].target == "/key"
            assert service.heard[0].header("authorization") == "Bearer k"
            await verifier.close()

    finish(work())
