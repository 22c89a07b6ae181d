"""The list of differences explains what it lists, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import differences
from .differences import DIFFERENCES, Difference, check

LISTED = DIFFERENCES


@pytest.fixture(autouse=True)
def one_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differences, "DIFFERENCES", (Difference("area", "a", 1, 2, "because"),))


def test_what_is_listed_may_differ() -> None:
    check("area", {"a": 1, "b": 0}, {"a": 2, "b": 0})
    check("elsewhere", {"a": 1}, {"a": 1})


@pytest.mark.parametrize(
    ("area", "theirs", "ours"),
    [
        ("area", {"a": 1, "b": 1}, {"a": 2, "b": 2}),
        ("area", {"a": 1, "b": 1}, {"a": 2}),
        ("area", {"a": 1}, {"a": 2, "b": 2}),
        ("area", {"a": 1}, {"a": 3}),
        ("area", {"a": 0}, {"a": 2}),
        ("elsewhere", {"a": 1}, {"a": 2}),
    ],
)
def test_what_is_not_listed_may_not_differ(area: str, theirs: dict[str, int], ours: dict[str, int]) -> None:
    with pytest.raises(AssertionError, match="theirs"):
        check(area, theirs, ours)


@pytest.mark.parametrize(("theirs", "ours"), [({"a": 1}, {"a": 1}), ({}, {})])
def test_a_difference_that_no_longer_shows_is_a_fault(theirs: dict[str, int], ours: dict[str, int]) -> None:
    with pytest.raises(AssertionError, match="no longer"):
        check("area", theirs, ours)


def test_every_difference_has_its_reason_and_stands_once() -> None:
    assert len({(item.area, item.at) for item in LISTED}) == len(LISTED)
    assert all(item.reason.endswith(".") and item.theirs != item.ours for item in LISTED)


def test_every_area_is_compared_somewhere() -> None:
    texts = [path.read_text() for path in Path(__file__).parent.glob("test_lion_*.py") if path != Path(__file__)]
    assert all(any(f'"{item.area}"' in text for text in texts) for item in LISTED)
