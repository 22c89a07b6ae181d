"""What stands in for a governor: every call of `item.show` takes an approval, which is kept as a file."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from verbc.support.backend import Backend, Evidence, Plan
from verbc.support.consent_question import question_of
from verbc.support.execution import Execution
from verbc.support.fingerprint import digest
from verbc.support.governed import GovernedExecution, PendingError
from verbc.support.refusal import Refusal
from verbc.support.registry import Registry
from verbc.support.rights import Right

ASKED = "item.show"


class KeptApprovals:
    """A file `<call>.<id>.<state>` for each approval; `answers` has a line for each answer, as `<id> <state> <by>`."""

    def __init__(self, folder: Path, approver: str = "client") -> None:
        self.folder = folder
        self._approver = approver

    @property
    def states(self) -> list[str]:
        """The states of all approvals, sorted."""
        return sorted(path.suffix[1:] for path in self.folder.glob("*.*.*"))

    @property
    def answers(self) -> list[str]:
        """How each answer went, and whose it was."""
        noted = self.folder / "answers"
        return [line.split(" ", 1)[1] for line in noted.read_text().splitlines()] if noted.exists() else []

    def execution(self, registry: Registry, backends: Mapping[str, Backend]) -> Execution:
        return GovernedExecution(registry, backends, self)

    async def decide(self, plan: Plan, rights: Sequence[Right], granted: Callable[[Right], bool]) -> Plan:
        return plan

    async def refused(self, ruling: Plan, refusal: Refusal, reason: str | None = None) -> None:
        pass

    async def begin(self, ruling: Plan) -> None:
        call = ruling.call
        if call.verb.name != ASKED:
            return
        bound = digest([call.caller.subject, call.verb.name, call.arguments])
        if self._moved(f"{bound}.*.approved", "used"):
            return
        if any(self.folder.glob(f"{bound}.*.rejected")):
            raise Refusal("denied", "It was rejected.")
        approval = self._approval(ruling, bound)
        asked = self._approver == "client"
        question = question_of(approval, call.arguments, "sample-mcp") if asked else None
        raise PendingError("It has to be approved.", {"approval": approval}, question)

    async def answer(self, approval_id: str, *, approved: bool, by: str) -> None:
        state = "approved" if approved else "rejected"
        assert self._moved(f"*.{approval_id}.pending", state)
        with (self.folder / "answers").open("a") as noted:
            noted.write(f"{approval_id} {state} {by}\n")

    async def end(
        self, permit: None, *, outcome: str, error: Refusal | None, result_bytes: int, evidence: Evidence
    ) -> None:
        pass

    def _approval(self, ruling: Plan, bound: str) -> dict[str, Any]:
        pending = sorted(self.folder.glob(f"{bound}.*.pending"))
        path = pending[0] if pending else self.folder / f"{bound}.appr_{secrets.token_hex(8)}.pending"
        path.touch()
        call = ruling.call
        return {
            "id": path.name.split(".")[1],
            "subject": call.caller.subject,
            "rights": ["write item:" + json.dumps(call.arguments["id"])],
            "verb": call.verb.name,
            "contract_digest": call.verb.digest,
            "target": {"item_id": call.arguments["id"]},
            "arguments_sha256": digest(call.arguments),
            "expires_at": "2031-01-01T00:00:00Z",
        }

    def _moved(self, pattern: str, state: str) -> bool:
        for path in self.folder.glob(pattern):
            path.rename(path.with_suffix(f".{state}"))
            return True
        return False
