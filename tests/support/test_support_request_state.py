"""What a client keeps comes back as it was, or counts for nothing."""

from __future__ import annotations

import base64
import json
import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.server.request_state import AESGCMRequestStateCodec

from verbc.support.fingerprint import digest
from verbc.support.request_state import Seal, StateKeysError, state_keys

VARIABLE = "SAMPLE_MCP_STATE_KEYS"
APPROVAL = "appr_0123456789abcdef"
CALL = digest("a call")
KEY = secrets.token_bytes(32)
SEAL = Seal([KEY], "sample_mcp")
SEALED = SEAL.seal(APPROVAL, CALL)


def keys(text: str) -> tuple[bytes, ...]:
    return state_keys("sample_mcp", {VARIABLE: text})


def base64url(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).decode()


def test_what_was_sealed_is_held_for_its_call_and_its_approval_alone() -> None:
    assert SEAL.holds(SEALED, APPROVAL, CALL)
    assert not SEAL.holds(SEALED, "appr_fedcba9876543210", CALL)
    assert not SEAL.holds(SEALED, APPROVAL, digest("another call"))


def test_a_client_cannot_read_it() -> None:
    assert SEAL.seal(APPROVAL, CALL) != SEALED
    raw = base64.urlsafe_b64decode(SEALED.removeprefix("v1.") + "==")
    assert APPROVAL.encode() not in raw
    assert CALL.encode() not in raw


@given(place=st.integers(0, len(SEALED) - 1), character=st.characters())
def test_a_changed_one_is_not_held(place: int, character: str) -> None:
    changed = SEALED[:place] + character + SEALED[place + 1 :]
    assert SEAL.holds(changed, APPROVAL, CALL) is (changed == SEALED)


@given(st.text() | st.text().map(lambda text: f"v1.{text}") | st.binary().map(lambda raw: f"v1.{base64url(raw)}"))
def test_what_nobody_has_sealed_is_not_held(text: str) -> None:
    assert not SEAL.holds(text, APPROVAL, CALL)


@pytest.mark.parametrize("text", ["", SEALED[:-1], SEALED + "A", f" {SEALED}", SEALED * 100])
def test_a_part_of_one_is_none(text: str) -> None:
    assert not SEAL.holds(text, APPROVAL, CALL)


def test_what_others_seal_with_the_same_key_is_not_held() -> None:
    assert not SEAL.holds(Seal([KEY], "other_mcp").seal(APPROVAL, CALL), APPROVAL, CALL)
    for value in (None, {"approval": APPROVAL, "call": CALL, "until": 1 << 40}):
        assert not SEAL.holds(AESGCMRequestStateCodec([KEY]).seal(json.dumps(value).encode()), APPROVAL, CALL)


def test_it_becomes_too_old() -> None:
    times = [1000.0]
    seal = Seal([KEY], "sample_mcp", lambda: times[-1])
    sealed = seal.seal(APPROVAL, CALL)
    times.append(1899.0)
    assert seal.holds(sealed, APPROVAL, CALL)
    times.append(1900.0)
    assert not seal.holds(sealed, APPROVAL, CALL)


def test_the_first_key_seals_and_each_one_is_known() -> None:
    old, new = secrets.token_bytes(32), secrets.token_bytes(48)
    both, only_old, only_new = (Seal(ring, "sample_mcp") for ring in ([new, old], [old], [new]))
    assert both.holds(only_old.seal(APPROVAL, CALL), APPROVAL, CALL)
    assert only_new.holds(both.seal(APPROVAL, CALL), APPROVAL, CALL)
    assert not only_old.holds(both.seal(APPROVAL, CALL), APPROVAL, CALL)


def test_keys_are_hexadecimal_or_base64url() -> None:
    first, second, third = (secrets.token_bytes(size) for size in (32, 33, 64))
    written = [first.hex(), second.hex().upper(), base64url(third)]
    assert keys(",".join(written)) == (first, second, third)
    assert keys(f" {base64url(first)} , {base64url(second).rstrip('=')}\n") == (first, second)
    assert keys(base64url(first).rstrip("=")) == (first,)


@pytest.mark.parametrize("environ", [{}, {VARIABLE: ""}])
def test_without_keys_the_process_has_its_own(environ: dict[str, str]) -> None:
    (own,) = state_keys("sample_mcp", environ)
    assert len(own) == 32
    assert state_keys("other_mcp", environ) == (own,)
    assert Seal.of("sample_mcp", environ).holds(Seal.of("sample_mcp", {}).seal(APPROVAL, CALL), APPROVAL, CALL)


@pytest.mark.parametrize(
    "entry",
    [
        "",
        " ",
        "changeme",
        secrets.token_hex(31),
        secrets.token_hex(32)[:-1],
        base64url(secrets.token_bytes(31)),
        base64url(secrets.token_bytes(32)) + "AA==",
        base64url(b"\xff" * 33).replace("_", "/"),
        base64url(secrets.token_bytes(32)).rstrip("=")[:-2] + "\u00e9",
    ],
    ids=["empty", "blank", "word", "short hex", "half a byte", "short", "padded", "other alphabet", "no ascii"],
)
def test_a_key_that_is_none_is_refused_without_being_told(entry: str) -> None:
    with pytest.raises(StateKeysError) as caught:
        keys(f"{secrets.token_hex(32)},{entry}")
    assert str(caught.value) == (
        f"Entry 2 of `{VARIABLE}` must be a key of at least 32 bytes in hexadecimal digits or base64url."
    )


def test_a_key_that_is_there_twice_is_refused() -> None:
    key = secrets.token_bytes(32)
    with pytest.raises(StateKeysError, match=f"^Entry 3 of `{VARIABLE}` is there twice; leave one out.$"):
        keys(f"{key.hex()},{secrets.token_hex(32)},{base64url(key)}")
