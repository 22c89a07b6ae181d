"""Canonical JSON and its digests, beside values computed by other means."""

from __future__ import annotations

import subprocess

import pytest

from verbc.support.fingerprint import canonical_json, digest, fingerprint


def test_canonical_json_is_compact_sorted_ascii() -> None:
    assert (
        canonical_json({"b": [1, True, None], "a": {"é": "\u2028"}}) == '{"a":{"\\u00e9":"\\u2028"},"b":[1,true,null]}'
    )


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_not_json_are_refused(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": number})


def test_the_fingerprint_is_the_start_of_the_digest() -> None:
    known = subprocess.run(["sha256sum"], input=b'{"type":"object"}', capture_output=True, check=True).stdout[:64]
    assert digest({"type": "object"}) == known.decode()
    assert fingerprint({"type": "object"}) == known.decode()[:16]
