"""A policy, plans under it, and a store for both, that the tests of approvals, budgets, audit and governor share."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from sqlalchemy import Connection, Table, select

from verbc.support.approval_record import Approval
from verbc.support.approvals import decide
from verbc.support.backend import Evidence, Plan
from verbc.support.call import Call, Caller
from verbc.support.permits import Ended, Permit, begin, end
from verbc.support.policy import Policy
from verbc.support.policy_file import PolicyFile
from verbc.support.refusal import Refusal
from verbc.support.registry import Registry, from_data
from verbc.support.rights import Right, rights_of
from verbc.support.rulings import Ruling, rule
from verbc.support.state_store import StateStore
from verbc.support.store import Store

from .programs import FOR_EVER
from .samples import DATA, verb_data

if TYPE_CHECKING:
    from tests.postgresql import Server

T = TypeVar("T")

NOW = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)
ID = {"properties": {"id": {"type": "string"}}, "required": ["id"]}
CONTENT = "content that nobody else may see"


def rows(allow: list[str] | None = None, **others: Any) -> dict[str, Any]:
    """The rows of a subject in a policy; an `ask` that is text is the operator's to approve."""
    ask = [row if isinstance(row, dict) else {"right": row, "approver": "operator"} for row in others.pop("ask", [])]
    return {"allow": allow or [], "ask": ask, "deny": [], "budget": None, **others}


def by_client(right: str) -> dict[str, str]:
    return {"right": right, "approver": "client"}


# `ann` may read items, has to ask before she writes them, and cannot delete them.
POLICY = {"ann": rows(["read item:*"], ask=["write item:*"], deny=["admin item:*"])}


def governed(policy: Mapping[str, Any] = POLICY, scopes: Mapping[str, Any] | None = None) -> Registry:
    """A registry whose verbs read, write and delete an item, or need what only their plan knows."""
    data = copy.deepcopy(DATA)
    data["verbs"] = [
        verb_data("item.read", ID, requires=["read item:<id>"]),
        verb_data("item.write", ID, requires=["write item:<id>"]),
        verb_data("item.delete", ID, requires=["admin item:<id>"]),
        verb_data("item.refresh", ID, requires=["read item:<id>"], plan="with what is there also its right"),
        verb_data("planned", ID, requires=[], plan="what it takes depends on what is there"),
    ]
    data["synonyms"] = {"removed_after": None, "verbs": {}}
    data["access"] = {"verify": None, "scopes": dict(scopes or {}), "pin": {}, "policy": dict(policy)}
    return from_data(data)


REGISTRY = governed()


def a_plan(
    name: str = "item.read",
    identifier: str = "1",
    *,
    subject: str = "ann",
    correlation: str = "c0",
    cost: int | None = None,
    **changes: Any,
) -> Plan:
    """The plan of a call of a verb by `ann`."""
    verb = REGISTRY.verb(name)
    assert verb is not None
    arguments = {"id": identifier, "content": CONTENT}
    call = Call(verb, arguments, Caller(subject), correlation, REGISTRY, NOW, FOR_EVER)
    return Plan(call, cost=None if cost is None else lambda: cost, **changes)


def policy_of(subjects: Mapping[str, Any] = POLICY, *, previews: bool = False) -> PolicyFile:
    return PolicyFile(Policy.of(subjects), frozenset(), previews, subjects)


def ruling_of(plan: Plan, policy: PolicyFile | None = None, granted: Callable[[Right], bool] | None = None) -> Ruling:
    """What the policy says of a plan; scopes bring nothing unless `granted` says so."""
    rights = tuple(rights_of(plan.call.verb, plan.call.arguments))
    return rule(plan, rights, policy or policy_of(), granted or (lambda _: False))


class Kept:
    """What a server keeps, with a clock of its own; the work of each method is one transaction."""

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self.folder = folder
        self.url = url
        self.now = NOW
        self.state = StateStore(REGISTRY, ("governance_tables",), state=folder / "state", url=url)
        self.store: Store = self.state.store()

    def later(self, **by: float) -> None:
        """Let time pass."""
        self.now += timedelta(**by)

    def read(self, work: Callable[[Connection], T]) -> T:
        return self.store.read(work)

    def write(self, work: Callable[[Connection], T], name: str = "work") -> T:
        return self.store.write(name, work)

    def begin(self, ruling: Ruling) -> Permit | Refusal:
        return self.write(lambda connection: begin(connection, ruling, 30, self.now), "begin")

    def begun(self, ruling: Ruling) -> Permit:
        """The permit of what is let through."""
        permit = self.begin(ruling)
        assert isinstance(permit, Permit), permit
        return permit

    def refused(self, ruling: Ruling) -> Refusal:
        """The refusal of what is not let through."""
        refusal = self.begin(ruling)
        assert isinstance(refusal, Refusal)
        return refusal

    def pending(self, ruling: Ruling) -> dict[str, Any]:
        """What the caller is told of the approval that is asked for."""
        refusal = self.refused(ruling)
        assert refusal.kind == "pending", refusal
        assert refusal.detail is not None
        approval: dict[str, Any] = refusal.detail["approval"]
        return approval

    def decide(self, approval: Mapping[str, Any], *, approved: bool = True, by: str = "operator:1") -> Approval:
        return self.write(lambda connection: decide(connection, approval["id"], approved, by, self.now), "decide")

    def end(
        self,
        permit: Permit,
        evidence: Evidence | None = None,
        *,
        outcome: str = "ok",
        error: Refusal | None = None,
        result_bytes: int = 0,
    ) -> None:
        ended = Ended(outcome, error, result_bytes, evidence or Evidence())
        self.write(lambda connection: end(connection, permit, ended, self.now), "end")

    def all(self, table: Table) -> list[dict[str, Any]]:
        """The rows of a table as they are kept."""
        found = self.read(lambda connection: connection.execute(select(table)).all())
        return [dict(row._mapping) for row in found]


DATABASES = ("sqlite", "postgresql")


@contextmanager
def keeping(folder: Path, request: pytest.FixtureRequest) -> Iterator[Kept]:
    """What a server keeps in a new database of the kind that `request` is for."""
    if request.param == "sqlite":
        with closing_store(Kept(folder)) as kept:
            yield kept
        return
    server: Server = request.getfixturevalue("postgresql")
    database = server.make_database()
    try:
        with closing_store(Kept(folder, server.url(database))) as kept:
            yield kept
    finally:
        server.drop(database)


@contextmanager
def closing_store(kept: Kept) -> Iterator[Kept]:
    try:
        yield kept
    finally:
        kept.store.close()


def running(word: str, kept: Kept) -> Any:
    """What a program of `governance_programs` tells, which works on the same database."""
    command = [sys.executable, "-m", f"{__package__}.governance_programs", word, str(kept.folder), kept.url or "-"]
    folder = str(Path(__file__).parent.parent)
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, timeout=120, check=True)
    return json.loads(done.stdout)
