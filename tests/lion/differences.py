"""Where lion-mcp means to differ from `li mcp`, each with its reason; whatever else differs fails a test.

A difference that no longer shows, or shows otherwise than it stands here, fails as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Difference:
    """In `area`, at `at`, the real server gives `theirs` and lion-mcp gives `ours`."""

    area: str
    at: str
    theirs: Any
    ours: Any
    reason: str


DIFFERENCES: tuple[Difference, ...] = ()


def check(area: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Fails unless the two answer everything in `area` alike, apart from the differences that stand above."""
    absent = "absent"
    found = {
        at: (theirs.get(at, absent), ours.get(at, absent))
        for at in {**theirs, **ours}
        if theirs.get(at, absent) != ours.get(at, absent)
    }
    meant = {item.at: (item.theirs, item.ours) for item in DIFFERENCES if item.area == area}
    unexplained = {at: values for at, values in found.items() if meant.get(at) != values}
    stale = sorted(meant.keys() - found.keys())
    assert not unexplained, "\n".join(
        f"{area} at {at}:\n  theirs: {values[0]!r}\n  ours:   {values[1]!r}\n  meant:  {meant.get(at)!r}"
        for at, values in unexplained.items()
    )
    assert not stale, f"differences in {area} that no longer show: {stale}"
