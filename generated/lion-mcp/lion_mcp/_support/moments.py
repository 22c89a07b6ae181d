"""Moments as databases and callers have them: microseconds since 1970, and RFC 3339 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

Precision: TypeAlias = Literal["seconds", "milliseconds"]


def as_number(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - EPOCH) // _MICROSECOND


def as_moment(number: int) -> datetime:
    """The moment so many microseconds after the start of 1970."""
    return EPOCH + number * _MICROSECOND


def readable_moment(number: object) -> datetime | None:
    """The same of what a database has; None where that is damaged."""
    try:
        return as_moment(number) if isinstance(number, int) else None
    except OverflowError:
        return None


def as_text(moment: datetime, precision: Precision | None = None) -> str:
    """Such as `2030-01-31T12:00:00Z`; without a precision, with milliseconds where there are some."""
    exact = moment.astimezone(UTC)
    precision = precision or ("milliseconds" if exact.microsecond >= 1000 else "seconds")
    return exact.isoformat(timespec=precision).replace("+00:00", "Z")
