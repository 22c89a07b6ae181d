"""What a policy says of a whole call: which of its rights are there, which have to be asked for, or that it is denied."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from .backend import Plan
from .fingerprint import canonical_json, digest
from .policy import Approver, Budget, Decision, is_on_a_tool
from .policy_file import PolicyFile
from .quoting import quoted, shown
from .refusal import Refusal
from .rights import Right

_RIGHT_CHARACTERS: Final = 512
_ALLOWED: Final = Decision("allow", None)
_SUSPENDED: Final = "suspended"

_Decided: TypeAlias = Sequence[tuple[Right, Decision]]


@dataclass(frozen=True)
class Ruling:
    """A plan, and what the policy says of it. It can go ahead, or once `asked` is approved."""

    plan: Plan
    rights: tuple[Right, ...]  # all that it needs
    asked: tuple[Right, ...]
    approver: Approver  # who has to approve what is asked
    budget: Budget | None
    policy: PolicyFile  # the one that says it
    reason: str | None  # why it is denied, for those who read the record; None where it is not

    @property
    def denied(self) -> bool:
        """Whether it cannot go ahead, whoever would approve it."""
        return self.reason is not None

    @property
    def subject(self) -> str:
        """Who calls."""
        return self.plan.call.caller.subject

    @property
    def previews(self) -> bool:
        """Whether the record may show what was sent."""
        return self.policy.previews

    @property
    def cost(self) -> int:
        """The most bytes that the call can bring."""
        cost = self.plan.cost
        return self.plan.call.verb.limits.output if cost is None else cost()

    @cached_property
    def arguments(self) -> str:
        """The canonical JSON of what an approval is about."""
        arguments = self.plan.arguments
        return canonical_json(dict(self.plan.call.arguments if arguments is None else arguments))

    @cached_property
    def arguments_sha256(self) -> str:
        """The digest of these."""
        return hashlib.sha256(self.arguments.encode("ascii")).hexdigest()

    @cached_property
    def bound(self) -> str:
        """The digest of all that an approval is bound to."""
        verb = self.plan.call.verb
        return digest(
            {
                "subject": self.subject,
                "approver": self.approver,
                "rights": [list(right.parts) for right in self.asked],
                "verb": verb.name,
                "contract_digest": verb.digest,
                "target": dict(self.plan.target),
                "arguments_sha256": self.arguments_sha256,
            }
        )


def rule(plan: Plan, rights: Sequence[Right], policy: PolicyFile, granted: Callable[[Right], bool]) -> Ruling:
    """What `policy` says of a plan that needs `rights` and its own; `granted` says which of them scopes bring."""
    subject = plan.call.caller.subject

    def decide(right: Right) -> Decision:
        return _decision(policy, subject, right, granted, suspended=plan.suspended)

    def why(right: Right, decision: Decision) -> str:
        if decision.effect == "ask":
            return f"asked for, but cannot be approved: {_text_of(right)}"
        if decision.grant is not None:
            return f"denied by {shown(decision.grant, _RIGHT_CHARACTERS)}"
        held_back = plan.suspended and is_on_a_tool(right)
        if held_back and (policy.policy.decide(subject, right).effect != "deny" or granted(right)):
            return _SUSPENDED
        return f"not granted: {_text_of(right)}"

    needed = (*rights, *plan.rights)
    decisions = [(right, decide(right)) for right in needed]
    asked = [(right, decision.approver) for right, decision in decisions if decision.effect == "ask"]
    return Ruling(
        plan=plan,
        rights=(*needed, *plan.outright, *plan.any_of),
        asked=tuple(right for right, _ in asked),
        approver="client" if asked and all(approver == "client" for _, approver in asked) else "operator",
        budget=policy.policy.budget_of(subject),
        policy=policy,
        reason=_reason(
            decisions,
            [(right, decide(right)) for right in plan.outright],
            [(right, decide(right)) for right in plan.any_of],
            why,
        ),
    )


def allows(ruling: Ruling, right: Right, granted: Callable[[Right], bool]) -> bool:
    """Whether a call may also do what needs `right`: by an allow, or by the very ask that it waits for or got.

    `granted` says whether scopes bring it.
    """
    rows, subject = ruling.policy.policy, ruling.subject
    found = _decision(ruling.policy, subject, right, granted, suspended=False)
    return found.effect == "allow" or (
        found.effect == "ask" and any(rows.decide(subject, asked).grant == found.grant for asked in ruling.asked)
    )


def denial(ruling: Ruling) -> Refusal:
    """The refusal of what is denied, the same for every reason."""
    call = ruling.plan.call
    sentence = f"{quoted(ruling.subject)} may not do this."
    # Where only the plan knows the rights, they would tell what is there.
    if call.verb.plan is not None or not call.verb.requires:
        return Refusal("denied", sentence)
    own = ruling.rights[: len(call.verb.requires)]
    return Refusal("denied", sentence, {"rights": list(texts_of(own))})


def texts_of(rights: Sequence[Right]) -> Iterator[str]:
    """Rights as they can be shown, very long ones cut."""
    return map(_text_of, rights)


def _decision(
    policy: PolicyFile, subject: str, right: Right, granted: Callable[[Right], bool], *, suspended: bool
) -> Decision:
    """What policy and scopes say of one right."""
    decision = policy.policy.decide(subject, right, suspended=suspended)
    # What no row says anything of can still be within a scope.
    if decision.effect != "deny" or decision.grant is not None or (suspended and is_on_a_tool(right)):
        return decision
    return _ALLOWED if granted(right) else decision


def _text_of(right: Right) -> str:
    return shown(":".join(right.parts), _RIGHT_CHARACTERS)


def _reason(
    needed: _Decided, outright: _Decided, any_of: _Decided, why: Callable[[Right, Decision], str]
) -> str | None:
    """Why a call is denied, by the first right that it lacks; None where it is not."""
    for right, decision in needed:
        if decision.effect == "deny":
            return why(right, decision)
    for right, decision in outright:
        if decision.effect != "allow":
            return why(right, decision)
    if not any_of or any(decision.effect != "deny" for _, decision in any_of):
        return None
    reasons = [why(right, decision) for right, decision in any_of]
    return _SUSPENDED if _SUSPENDED in reasons else reasons[0]
