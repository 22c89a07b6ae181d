"""Moments as numbers and as texts, and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from verbc.support.moments import Precision, as_moment, as_number, as_text

MOMENT = datetime(2026, 3, 4, 5, 6, 7, 89_012, tzinfo=UTC)


@pytest.mark.parametrize("moment", [datetime(1970, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, tzinfo=UTC), MOMENT])
def test_a_number_is_exactly_its_moment(moment: datetime) -> None:
    assert as_moment(as_number(moment)) == moment
    assert as_number(moment + timedelta(microseconds=1)) == as_number(moment) + 1


@pytest.mark.parametrize(
    ("microsecond", "precision", "text"),
    [
        (0, None, "2026-03-04T05:06:07Z"),
        (999, None, "2026-03-04T05:06:07Z"),
        (1000, None, "2026-03-04T05:06:07.001Z"),
        (0, "milliseconds", "2026-03-04T05:06:07.000Z"),
        (999_999, "seconds", "2026-03-04T05:06:07Z"),
    ],
)
def test_a_text_has_the_precision_that_is_wanted(microsecond: int, precision: Precision | None, text: str) -> None:
    assert as_text(MOMENT.replace(microsecond=microsecond), precision) == text


def test_texts_are_in_utc() -> None:
    assert as_text(MOMENT.astimezone(timezone(timedelta(hours=-5)))) == as_text(MOMENT)
