"""What subjects may do by a policy: allowed, allowed once somebody has approved it, or denied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias

from .rights import Right, grants

Effect: TypeAlias = Literal["allow", "ask", "deny"]
Approver: TypeAlias = Literal["operator", "client"]


@dataclass(frozen=True, slots=True)
class Budget:
    """What a subject may use in some time; None is as much as it likes."""

    calls: int | None
    bytes: int | None
    per: float  # seconds


@dataclass(frozen=True, slots=True)
class Decision:
    """What a policy says of one right, and the grant that says it; None: nothing does, so it is denied."""

    effect: Effect
    grant: str | None
    approver: Approver = "operator"  # who has to approve what is asked for


@dataclass(frozen=True, slots=True)
class _Subject:
    """The rows of one subject, in an order that does not depend on how they were written."""

    allow: tuple[str, ...]
    ask: tuple[tuple[Approver, str], ...]  # those of an operator first
    deny: tuple[str, ...]
    budget: Budget | None

    @classmethod
    def of(cls, rows: Mapping[str, Any]) -> Self:
        budget = rows["budget"]
        by_operator = sorted(row["right"] for row in rows["ask"] if row["approver"] == "operator")
        by_client = sorted(row["right"] for row in rows["ask"] if row["approver"] == "client")
        return cls(
            tuple(sorted(rows["allow"])),
            (*(("operator", grant) for grant in by_operator), *(("client", grant) for grant in by_client)),
            tuple(sorted(rows["deny"])),
            None if budget is None else Budget(budget["calls"], budget["bytes"], float(budget["per"])),
        )


_NOTHING: Final = Decision("deny", None)


class Policy:
    """Who may do what. Deny wins over ask, ask over allow, and what nothing grants is denied."""

    def __init__(self, subjects: Mapping[str, _Subject]) -> None:
        self._subjects = dict(subjects)

    @classmethod
    def of(cls, subjects: Mapping[str, Any]) -> Self:
        """The policy with these rows: `{<subject>: {"allow", "ask", "deny", "budget"}}`, with nothing left out.

        `allow` and `deny` are lists of grants, `ask` is one of `{"right", "approver"}`, and `budget` is None or
        `{"calls", "bytes", "per"}` with `per` in seconds.
        """
        return cls({subject: _Subject.of(rows) for subject, rows in subjects.items()})

    def decide(self, subject: str, right: Right, *, suspended: bool = False) -> Decision:
        """What `subject` may do with `right`; somebody without rows may do nothing.

        With `suspended` nothing grants rights on `mcp:...`, though they can still be denied.
        """
        rows = self._subjects.get(subject)
        if rows is None:
            return _NOTHING
        if (grant := _first(rows.deny, right)) is not None:
            return Decision("deny", grant)
        if suspended and is_on_a_tool(right):
            return _NOTHING
        for approver, asked in rows.ask:
            if grants(asked, right):
                return Decision("ask", asked, approver)
        grant = _first(rows.allow, right)
        return _NOTHING if grant is None else Decision("allow", grant)

    def budget_of(self, subject: str) -> Budget | None:
        """What `subject` may use; None where that has no bounds."""
        rows = self._subjects.get(subject)
        return None if rows is None else rows.budget


def _first(rows: Sequence[str], right: Right) -> str | None:
    return next((grant for grant in rows if grants(grant, right)), None)


def is_on_a_tool(right: Right) -> bool:
    """Whether a right is on a tool of a registered server: `read mcp:time:now`, but not `read mcp_server:time`."""
    return right.parts[0].endswith(" mcp")
