"""Figures as text: a table of medians and minima, and ratios with their targets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

Samples = Mapping[str, Sequence[float]]

_NAME_WIDTH: Final = 46


@dataclass(frozen=True, slots=True)
class Unit:
    """How a figure that is measured in a base unit is shown."""

    name: str
    factor: float
    digits: int

    def show(self, value: float) -> str:
        return f"{value * self.factor:.{self.digits}f} {self.name}"


@dataclass(frozen=True, slots=True)
class Rate:
    """How a figure that is measured in seconds for each is shown: as how many there are in a second."""

    name: str

    def show(self, value: float) -> str:
        return f"{1 / value:.0f} {self.name}"


SECONDS: Final = Unit("s", 1, 2)
MILLISECONDS: Final = Unit("ms", 1e3, 0)
TENTHS: Final = Unit("ms", 1e3, 1)
MICROSECONDS: Final = Unit("µs", 1e6, 0)
MEBIBYTES: Final = Unit("MiB", 1 / 2**20, 0)
TIMES: Final = Unit("x", 1, 2)
PER_SECOND: Final = Rate("/s")


def title(text: str) -> None:
    print(f"\n{text}")
    print(f"  {'':{_NAME_WIDTH}}{'median':>10}{'minimum':>10}{'samples':>9}")


def table(samples: Samples, unit: Unit | Rate, suffix: str = "") -> None:
    """One line for each contestant."""
    for name, values in samples.items():
        figures = f"{unit.show(median(values)):>10}{unit.show(min(values)):>10}{len(values):>9}"
        print(f"  {name + suffix:{_NAME_WIDTH}}{figures}", flush=True)


@dataclass(frozen=True, slots=True)
class Target:
    """A figure made from those of two contestants, or of one, and the limit it has to keep; judged by the medians."""

    name: str
    of: tuple[str, ...]
    figure: Callable[..., float]
    unit: Unit
    most: float | None = None
    least: float | None = None

    def judge(self, samples: Samples) -> None:
        """Print the figure of the medians, that of the minima, and whether the limit is kept."""
        middle, best = (self.figure(*(pick(samples[name]) for name in self.of)) for pick in (median, min))
        limit = self.most if self.most is not None else self.least
        assert limit is not None, "a target has a limit"  # noqa: S101
        met = middle <= limit if self.most is not None else middle >= limit
        sign = "≤" if self.most is not None else "≥"
        figures = f"{self.unit.show(middle):>10}{self.unit.show(best):>10}"
        verdict = "met" if met else "NOT MET"
        print(f"  {self.name:{_NAME_WIDTH}}{figures}   target {sign} {self.unit.show(limit)}: {verdict}", flush=True)


def itself(value: float) -> float:
    return value


def quotient(first: float, second: float) -> float:
    return first / second


def difference(first: float, second: float) -> float:
    return first - second
