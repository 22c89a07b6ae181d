"""Operator keys: long, never the same, and known by their digests alone."""

from __future__ import annotations

import hashlib
import re

from verbc.support.operator_keys import is_operator, new_key


def test_a_key_comes_with_its_digest() -> None:
    key, digest = new_key()
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", key)
    assert digest == hashlib.sha256(key.encode()).hexdigest()


def test_keys_are_never_the_same() -> None:
    assert len({new_key()[0] for _ in range(50)}) == 50


def test_a_key_is_known_by_its_digest() -> None:
    (key, digest), (other, another) = new_key(), new_key()
    assert is_operator(key, {digest})
    assert is_operator(key, [another, digest])
    assert not is_operator(other, {digest})


def test_nothing_else_is_one() -> None:
    key, digest = new_key()
    for wrong in ("", digest, key[:-1], key + " ", key.swapcase(), "\udcff", "\u00e4", "k" * 100_000):
        assert not is_operator(wrong, {digest})
    assert not is_operator(key, frozenset())
