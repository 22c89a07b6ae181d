"""Names in texts, however hostile."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from verbc.support.quoting import listed, quoted, shown


def test_what_steers_a_display_is_escaped() -> None:
    assert shown("a\n\u202eb\x1b[31m\ud800\U000e0001") == "a\\u000a\\u202eb\\u001b[31m\\ud800\\U000e0001"


def test_a_long_name_is_cut() -> None:
    assert shown("a" * 65) == "a" * 63 + "…"
    assert shown("a" * 64) == "a" * 64


def test_quotes_cannot_be_broken_out_of() -> None:
    assert quoted("a` b `c") == "`a' b 'c`"


def test_a_long_list_is_counted() -> None:
    assert listed(["a", "b"]) == "`a`, `b`"
    assert listed(["a", "b", "c"], most=2) == "`a`, `b` and 1 more"


@given(st.text(alphabet=st.characters()))
def test_everything_shown_is_printable_and_encodable(name: str) -> None:
    text = shown(name)
    assert text.isprintable()
    assert text.encode().decode() == text
