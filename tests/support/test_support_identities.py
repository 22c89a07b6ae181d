"""Identities as others write them down."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbc.support.bearer import Identity
from verbc.support.identities import UnreadableError, identity, instant

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def test_only_a_subject_has_to_be_said() -> None:
    assert identity(subject="ada") == Identity("ada")


@pytest.mark.parametrize(
    ("scopes", "names"),
    [
        (None, set()),
        ("", set()),
        ("read", {"read"}),
        ("read  write\tread", {"read", "write"}),
        ([], set()),
        (["read", "of more words"], {"read", "of more words"}),
    ],
)
def test_scopes_are_a_text_or_a_list(scopes: Any, names: set[str]) -> None:
    assert identity(subject="ada", scopes=scopes).scopes == names


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        (0, 0.0),
        (1893456000, 1893456000.0),
        (1893456000.5, 1893456000.5),
        ("2030-01-01T00:00:00Z", 1893456000.0),
        ("2030-01-01t00:00:00z", 1893456000.0),
        ("2030-01-01T02:00:00+02:00", 1893456000.0),
        ("2030-01-01T00:00:00.25Z", 1893456000.25),
    ],
)
def test_a_time_is_a_number_or_has_its_offset(value: Any, seconds: float | None) -> None:
    assert instant(value) == seconds


@pytest.mark.parametrize(
    "value",
    [
        "",
        "soon",
        "1893456000",
        "2030-01-01",
        "2030-01-01T00:00:00",
        "2030-13-01T00:00:00Z",
        "2030-01-01T24:61:00Z",
        "20300101T000000Z",
        "2030-W01-1T00:00:00Z",
        "\u0662030-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        True,
        float("nan"),
        float("inf"),
        10**400,
        [],
        {},
    ],
)
def test_what_is_no_time_never_means_that_there_is_no_end(value: Any) -> None:
    with pytest.raises(UnreadableError):
        instant(value)


@pytest.mark.parametrize("value", ["", " ", "a\nb", "a\u202eb", "\ud800", "x" * 513, 7, True, [], {}])
def test_what_is_no_name_names_nobody(value: Any) -> None:
    with pytest.raises(UnreadableError):
        identity(subject=value)
    with pytest.raises(UnreadableError):
        identity(subject="ada", account=value)


@pytest.mark.parametrize("value", [7, True, {}, {"read": True}, ["read", 7], [None], [["read"]]])
def test_what_are_no_scopes_grant_nothing(value: Any) -> None:
    with pytest.raises(UnreadableError):
        identity(subject="ada", scopes=value)


@given(JSON, JSON, JSON, JSON)
def test_whatever_is_said_it_is_an_identity_or_unreadable(subject: Any, account: Any, scopes: Any, end: Any) -> None:
    try:
        found = identity(subject=subject, account=account, scopes=scopes, expires=end)
    except UnreadableError:
        return
    assert (found.subject, found.account) == (subject, account)
    assert (found.expires_at is None) is (end is None)
