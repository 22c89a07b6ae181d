"""What a job costs, in whole cents of euros: known before it runs, and the same for the same job."""

from .shapes import Job

CURRENCY = "EUR"

_BASE = 250
_EACH_EVIDENCE = 25
_EACH_LABEL = 5


def price_of(job: Job) -> int:
    """The price of a job."""
    return _BASE + _EACH_EVIDENCE * len(job.evidence) + _EACH_LABEL * len(job.labels)


def shown(cents: int) -> str:
    """An amount as replies and terms show it, such as 12.50 EUR."""
    return f"{cents // 100}.{cents % 100:02} {CURRENCY}"


def cents_of(amount: str) -> int | None:
    """The other way round; None for another currency."""
    number, _, currency = amount.partition(" ")
    return int(number.replace(".", "")) if currency == CURRENCY else None
