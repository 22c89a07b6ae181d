"""The governor: what it lets through, in which order it looks, and that all of it is settled, whoever gives up."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from verbc.support import policy_file
from verbc.support import store as store_module
from verbc.support.admission import Admission, Request
from verbc.support.audit import lines
from verbc.support.backend import Evidence, Plan
from verbc.support.call import Caller
from verbc.support.consent import Question
from verbc.support.governance_tables import APPROVALS, AUDIT, BUDGETS
from verbc.support.governor import Governor, PendingError, StalePlanError
from verbc.support.policy_file import PolicyFile, read_policy
from verbc.support.refusal import Refusal
from verbc.support.rights import Right, rights_of
from verbc.support.rulings import Ruling
from verbc.support.state_store import StateStore

from .governance import (
    CONTENT,
    DATABASES,
    POLICY,
    REGISTRY,
    Kept,
    a_plan,
    by_client,
    governed,
    keeping,
    policy_of,
    rows,
    ruling_of,
)
from .programs import finish
from .samples import Functions


@pytest.fixture(params=DATABASES)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    with keeping(tmp_path, request) as kept:
        yield kept


def governing(kept: Kept, work: Callable[[Governor], Awaitable[Any]], **options: Any) -> Any:
    """What `work` makes of a governor over the same database, which is closed at the end and leaves no task behind."""

    async def governed_work() -> Any:
        registry = options.pop("registry", REGISTRY)
        governor = Governor(registry, opened(kept), **{"clock": lambda: kept.now, **options})
        async with asyncio.timeout(60):
            try:
                return await work(governor)
            finally:
                await governor.close()
                assert asyncio.all_tasks() == {asyncio.current_task()}

    return asyncio.run(governed_work())


def opened(kept: Kept) -> StateStore:
    return StateStore(REGISTRY, ("governance_tables",), state=kept.folder / "state", url=kept.url)


async def decided(governor: Governor, plan: Plan) -> Ruling:
    rights = tuple(rights_of(plan.call.verb, plan.call.arguments))
    return await governor.decide(plan, rights, lambda _right: False)


async def ended(governor: Governor, ruling: Ruling, **changes: Any) -> None:
    values: dict[str, Any] = {"outcome": "ok", "error": None, "result_bytes": 0, "evidence": Evidence(), **changes}
    await governor.end(await governor.begin(ruling), **values)


def found(kept: Kept, *names: str) -> list[tuple[Any, ...]]:
    """These columns of the record."""
    told = kept.read(lambda connection: lines(connection, kept.now, limit=1000))
    return [tuple(line[name] for name in names) for line in told]


# What a policy says of a whole call


READ, WRITE, DELETE = (Right((f"{right} item", "1")) for right in ("read", "write", "admin"))
TOOL = Right(("read mcp", "time", "now"))
START = Right(("write process", "spawn"))


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ({}, ()),
        ({"rights": (WRITE,)}, (WRITE,)),
        ({"rights": (READ, WRITE)}, (WRITE,)),
        ({"rights": (DELETE,)}, None),
        ({"rights": (WRITE, TOOL)}, None),
        ({"outright": (READ,)}, ()),
        ({"outright": (WRITE,)}, None),
        ({"outright": (DELETE,)}, None),
        ({"outright": (READ, TOOL)}, None),
        ({"any_of": (DELETE, READ)}, ()),
        ({"any_of": (DELETE, WRITE)}, ()),
        ({"any_of": (DELETE, TOOL)}, None),
        ({"any_of": (READ,), "rights": (DELETE,)}, None),
    ],
)
def test_what_a_plan_needs(changes: dict[str, Any], asked: tuple[Right, ...] | None) -> None:
    ruling = ruling_of(a_plan("planned", **changes))
    assert ruling.denied is (asked is None)
    if asked is not None:
        assert ruling.asked == asked


@pytest.mark.parametrize(("name", "denied"), [("item.read", False), ("item.write", False), ("item.delete", True)])
def test_what_a_verb_needs(name: str, denied: bool) -> None:
    assert ruling_of(a_plan(name)).denied is denied


def test_a_subject_without_rows_may_do_nothing() -> None:
    assert ruling_of(a_plan(subject="bob")).denied


def test_scopes_bring_what_no_row_says_anything_of() -> None:
    def every(_right: Right) -> bool:
        return True

    assert not ruling_of(a_plan("planned", rights=(TOOL,), outright=(START,)), granted=every).denied
    assert not ruling_of(a_plan("planned", any_of=(DELETE, TOOL)), granted=every).denied
    assert ruling_of(a_plan("item.delete"), granted=every).denied
    assert ruling_of(a_plan("item.write"), granted=every).asked == (WRITE,)
    assert not ruling_of(a_plan(subject="bob"), granted=every).denied


def test_a_suspended_server_is_out_of_reach() -> None:
    policy = policy_of({"ann": rows(["read mcp:*", "write process:spawn"], ask=["write mcp:*"])})
    for plan in (
        a_plan("planned", rights=(TOOL,), suspended=True),
        a_plan("planned", rights=(Right(("write mcp", "time", "set")),), suspended=True),
        a_plan("planned", any_of=(TOOL,), suspended=True),
    ):
        assert ruling_of(plan, policy).denied
        assert ruling_of(plan, policy, lambda _right: True).denied
    assert not ruling_of(a_plan("planned", rights=(TOOL,)), policy).denied
    assert not ruling_of(a_plan("planned", outright=(START,), suspended=True), policy).denied


OUTRIGHT_POLICY = {"ann": rows(["read mcp:*"], ask=["write mcp:*", "write process:spawn"], deny=["read mcp:time:past"])}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"rights": (TOOL,)}, None),
        ({"rights": (Right(("write mcp", "time", "set")),)}, None),
        ({"any_of": (DELETE, TOOL)}, None),
        ({"rights": (DELETE,)}, "not granted: admin item:1"),
        ({"rights": (TOOL, DELETE)}, "not granted: admin item:1"),
        ({"any_of": (DELETE, READ)}, "not granted: admin item:1"),
        ({"rights": (TOOL,), "outright": (START,)}, "asked for, but cannot be approved: write process:spawn"),
        ({"rights": (Right(("read mcp", "time", "past")),)}, "denied by read mcp:time:past"),
        # A suspension is the reason only of what the policy has something for.
        ({"rights": (TOOL,), "suspended": True}, "suspended"),
        ({"rights": (Right(("write mcp", "time", "set")),), "suspended": True}, "suspended"),
        ({"any_of": (DELETE, TOOL), "suspended": True}, "suspended"),
        ({"rights": (DELETE,), "suspended": True}, "not granted: admin item:1"),
        ({"rights": (Right(("execute mcp", "time", "x")),), "suspended": True}, "not granted: execute mcp:time:x"),
        ({"rights": (Right(("read mcp", "time", "past")),), "suspended": True}, "denied by read mcp:time:past"),
        ({"rights": (Right(("x" * 600,)),)}, f"not granted: {'x' * 511}…"),
    ],
)
def test_the_reason_of_a_denial(changes: dict[str, Any], reason: str | None) -> None:
    ruling = ruling_of(a_plan("planned", **changes), policy_of(OUTRIGHT_POLICY))
    assert (ruling.reason, ruling.denied) == (reason, reason is not None)


def test_a_suspension_is_the_reason_where_a_scope_would_bring_the_right() -> None:
    plan = a_plan("planned", rights=(TOOL,), suspended=True)
    assert ruling_of(plan, granted=lambda _right: True).reason == "suspended"
    assert ruling_of(plan).reason == "not granted: read mcp:time:now"


def test_an_operator_approves_what_only_a_part_of_is_a_clients() -> None:
    policy = policy_of({"ann": rows(ask=[by_client("write item:*"), "read item:*"])})
    assert ruling_of(a_plan("item.write"), policy).approver == "client"
    assert ruling_of(a_plan("item.write", rights=(READ,)), policy).approver == "operator"


# On the way of a call


def test_a_denial_is_on_record_and_tells_the_rights_of_the_verb(kept: Kept) -> None:
    async def work(governor: Governor) -> list[Any]:
        refusals = []
        plans = [a_plan("item.delete", "7"), a_plan(subject="bob"), a_plan("planned", any_of=(TOOL,))]
        for plan in [*plans, a_plan("item.refresh", rights=(TOOL,))]:
            with pytest.raises(Refusal) as refusal:
                await decided(governor, plan)
            refusals.append((refusal.value.kind, refusal.value.message, refusal.value.detail))
        return refusals

    assert governing(kept, work, registry=governed()) == [
        ("denied", "`ann` may not do this.", {"rights": ["admin item:7"]}),
        ("denied", "`bob` may not do this.", {"rights": ["read item:1"]}),
        ("denied", "`ann` may not do this.", None),  # only its plan knows the rights
        ("denied", "`ann` may not do this.", None),  # or some of them
    ]
    assert found(kept, "kind", "outcome", "subject", "rights", "reason") == [
        ("decision", "deny", "ann", ["admin item:7"], "denied by admin item:*"),
        ("decision", "deny", "bob", ["read item:1"], "not granted: read item:1"),
        ("decision", "deny", "ann", ["read mcp:time:now"], "not granted: read mcp:time:now"),
        ("decision", "deny", "ann", ["read item:1", "read mcp:time:now"], "not granted: read mcp:time:now"),
    ]


def test_what_is_allowed_is_two_writes(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    kept.all(AUDIT)  # so that the tables are made

    async def work(governor: Governor) -> None:
        ruling = await decided(governor, a_plan())
        assert heard == []
        await ended(governor, ruling)

    monkeypatch.setattr(store_module, "fault", heard.append)
    governing(kept, work)
    assert heard == ["before begin", "after begin", "before end", "after end"]
    assert found(kept, "kind", "outcome", "status") == [("decision", "allow", None), ("call", None, "ok")]


def test_what_is_refused_with_all_its_rights_is_on_record(kept: Kept) -> None:
    async def work(governor: Governor) -> None:
        await governor.refused(await decided(governor, a_plan()), Refusal("not_found", CONTENT))

    governing(kept, work)
    assert found(kept, "kind", "outcome", "refusal") == [("decision", "refused", "not_found")]


def test_a_plan_that_no_longer_stands_begins_nothing(kept: Kept) -> None:
    kept.write(lambda connection: connection.execute(text("CREATE TABLE doors (open INTEGER)")))

    def guard(connection: Connection) -> bool:
        return bool(connection.scalar(text("SELECT count(*) FROM doors")))

    policy = {"ann": rows(ask=["write item:*"], budget={"calls": 9, "bytes": None, "per": 60})}

    async def work(governor: Governor) -> None:
        ruling = await decided(governor, a_plan("item.write", guard=guard))
        with pytest.raises(StalePlanError):
            await governor.begin(ruling)
        assert [kept.all(table) for table in (APPROVALS, AUDIT, BUDGETS)] == [[], [], []]
        kept.write(lambda connection: connection.execute(text("INSERT INTO doors VALUES (1)")))
        with pytest.raises(PendingError):
            await governor.begin(ruling)

    governing(kept, work, registry=governed(policy))


def test_what_is_only_remembered_is_no_reason_to_deny(kept: Kept) -> None:
    async def work(governor: Governor) -> None:
        with pytest.raises(StalePlanError):
            await decided(governor, a_plan("item.delete", remembered=True))
        assert not (await decided(governor, a_plan(remembered=True))).denied

    governing(kept, work)
    assert kept.all(AUDIT) == []


def test_pending_has_a_question_only_for_a_client_that_may_approve(kept: Kept) -> None:
    class Mute:
        async def ask(self, question: Question) -> bool | None:
            return None

    def question(policy: Mapping[str, Any], consent: Any) -> Question | None:
        plan = a_plan("item.write")
        plan.call.consent = consent

        async def work(governor: Governor) -> None:
            await governor.begin(await decided(governor, plan))

        with pytest.raises(PendingError) as pending:
            governing(kept, work, registry=governed(policy))
        assert pending.value.kind == "pending"
        assert pending.value.detail is not None
        if pending.value.question is not None:
            assert pending.value.question.detail == pending.value.detail["approval"]
        return pending.value.question

    client = {"ann": rows(ask=[by_client("write item:*")])}
    assert question(POLICY, Mute()) is None
    assert question(client, None) is None
    asked = question(client, Mute())
    assert asked is not None
    assert CONTENT in asked.message


def test_a_client_answers_what_is_his_to_approve(kept: Kept) -> None:
    async def work(governor: Governor) -> None:
        for number, approved in (("1", True), ("2", False)):
            ruling = await decided(governor, a_plan("item.write", number))
            with pytest.raises(PendingError) as pending:
                await governor.begin(ruling)
            await governor.answer(pending.value.detail["approval"]["id"], approved=approved, by="client")  # type: ignore[index]
            if approved:
                await ended(governor, ruling)
            else:
                with pytest.raises(Refusal, match="denied"):
                    await governor.begin(ruling)

    governing(kept, work, registry=governed({"ann": rows(ask=[by_client("write item:*")])}))
    assert [row for row in found(kept, "kind", "outcome", "actor") if row[0] == "approval"] == [
        ("approval", "approved", "client"),
        ("approval", "rejected", "client"),
    ]


def test_a_client_cannot_answer_what_is_the_operators(kept: Kept) -> None:
    approval = kept.pending(ruling_of(a_plan("item.write")))

    async def work(governor: Governor) -> None:
        await governor.answer(approval["id"], approved=True, by="client")
        await governor.answer("appr_0123456789", approved=True, by="client")
        with pytest.raises(PendingError):
            await governor.begin(await decided(governor, a_plan("item.write")))

    governing(kept, work)
    assert [row["state"] for row in kept.all(APPROVALS)] == ["pending"]


def test_a_client_cannot_take_back_what_is_decided(kept: Kept) -> None:
    policy = {"ann": rows(ask=[by_client("write item:*")])}
    approval = kept.pending(ruling_of(a_plan("item.write"), policy_of(policy)))
    kept.decide(approval)

    async def work(governor: Governor) -> None:
        await governor.answer(approval["id"], approved=False, by="client")
        await governor.begin(await decided(governor, a_plan("item.write")))

    governing(kept, work, registry=governed(policy))


def test_a_call_learns_what_its_caller_may_without_asking(kept: Kept) -> None:
    policy = {"ann": rows(["read item:*", "read box:a"], ask=["read item:3"], deny=["read item:2"])}

    async def work(governor: Governor) -> list[bool]:
        plan = a_plan()
        rights = tuple(rights_of(plan.call.verb, plan.call.arguments))
        await governor.decide(plan, rights, lambda right: right.parts[0] in ("read box", "read item"))
        assert plan.call.may is not None
        asked = ["item:1", "item:2", "item:3", "box:b", "jar:a"]
        return [plan.call.may(Right(tuple(f"read {text}".split(":")))) for text in asked]

    assert governing(kept, work, registry=governed(policy)) == [True, False, False, True, False]


def test_an_answer_of_a_client_does_not_count_once_the_policy_wants_an_operator(kept: Kept) -> None:
    client = policy_of({"ann": rows(ask=[by_client("write item:*")])})
    kept.decide(kept.pending(ruling_of(a_plan("item.write"), client)), by="client")
    assert kept.pending(ruling_of(a_plan("item.write")))
    assert kept.begun(ruling_of(a_plan("item.write"), client))


def test_what_is_over_is_looked_for_on_the_way(kept: Kept) -> None:
    kept.pending(ruling_of(a_plan("item.write")))
    kept.later(minutes=15)

    async def work(governor: Governor) -> None:
        await ended(governor, await decided(governor, a_plan()))

    governing(kept, work)
    assert [(row["state"], row["arguments"]) for row in kept.all(APPROVALS)] == [("expired", None)]


def test_what_is_over_is_looked_for_by_calls_that_are_denied(kept: Kept) -> None:
    kept.pending(ruling_of(a_plan("item.write")))
    kept.later(minutes=15)

    async def work(governor: Governor) -> None:
        with pytest.raises(Refusal):
            await decided(governor, a_plan("item.delete"))

    governing(kept, work)
    assert [(row["state"], row["arguments"]) for row in kept.all(APPROVALS)] == [("expired", None)]
    assert found(kept, "kind", "outcome")[-1] == ("decision", "deny")


# Who gives up


class Gate:
    """Holds a write of the store up, right before its commit, until it is opened."""

    def __init__(self, point: str) -> None:
        self._point = point
        self.reached = threading.Event()
        self.open = threading.Event()

    def __call__(self, point: str) -> None:
        if point == self._point:
            self.reached.set()
            assert self.open.wait(60)

    async def cancel(self, task: asyncio.Future[Any]) -> None:
        """Cancel `task` while the write is under way, then let that go on."""
        await asyncio.to_thread(self.reached.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        self.open.set()


POOR = {"ann": rows(["read item:*"], ask=["write item:*"], budget={"calls": 9, "bytes": None, "per": 60})}


def test_what_begins_for_nobody_is_taken_back(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ruling_of(a_plan("item.write"), policy_of(POOR))
    kept.decide(kept.pending(asked))
    gate = Gate("before begin")
    monkeypatch.setattr(store_module, "fault", gate)

    async def work(governor: Governor) -> None:
        ruling = await decided(governor, a_plan("item.write"))
        await gate.cancel(asyncio.ensure_future(governor.begin(ruling)))

    governing(kept, work, registry=governed(POOR))
    assert [row["state"] for row in kept.all(APPROVALS)] == ["approved"]
    assert [(row["calls"], row["bytes"]) for row in kept.all(BUDGETS)] == [(0, 0)]
    assert found(kept, "kind", "status")[-1] == ("call", "not_started")


@pytest.mark.parametrize("name", ["item.write", "planned"])
def test_what_is_refused_to_nobody_stays_as_it_is(kept: Kept, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    gate = Gate("before begin")
    monkeypatch.setattr(store_module, "fault", gate)

    async def work(governor: Governor) -> None:
        ruling = await decided(governor, a_plan(name, guard=lambda _connection: name != "planned"))
        if name == "planned":
            gate.open.set()
            with pytest.raises(StalePlanError):
                await governor.begin(ruling)
        else:
            await gate.cancel(asyncio.ensure_future(governor.begin(ruling)))

    governing(kept, work)
    assert [row["state"] for row in kept.all(APPROVALS)] == (["pending"] if name == "item.write" else [])


def test_an_end_is_put_on_record_whoever_waits_for_it(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate("before end")
    monkeypatch.setattr(store_module, "fault", gate)

    async def work(governor: Governor) -> None:
        ruling = await decided(governor, a_plan())
        await gate.cancel(asyncio.ensure_future(ended(governor, ruling)))

    governing(kept, work, registry=governed(POOR))
    assert found(kept, "kind", "status")[-1] == ("call", "ok")


def test_the_end_of_a_plain_call_holds_no_answer_up(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate("before end")
    monkeypatch.setattr(store_module, "fault", gate)

    async def work(governor: Governor) -> None:
        await ended(governor, await decided(governor, a_plan()))
        assert found(kept, "kind", "status")[-1] == ("call", "pending")
        gate.open.set()

    governing(kept, work)
    assert found(kept, "kind", "status")[-1] == ("call", "ok")


# When policy or store cannot be used


def test_a_policy_file_is_read_again_when_it_has_changed(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    path = kept.folder / "policy.json"
    readers: list[threading.Thread] = []

    def reading(path: Path) -> PolicyFile:
        readers.append(threading.current_thread())
        return read_policy(path)

    def write(content: object) -> None:
        new = path.with_suffix(".new")
        new.write_text(json.dumps(content))
        new.chmod(0o600)
        os.replace(new, path)

    async def work(governor: Governor) -> None:
        await decided(governor, a_plan(subject="bob"))
        write({"subjects": {"bob": {"ask": ["read item:*"]}}, "audit": {"previews": True}})
        ruling = await decided(governor, a_plan(subject="bob"))
        assert (ruling.asked, ruling.previews) == ((READ,), True)
        write({"subjects": "nonsense"})
        for _ in range(2):
            with pytest.raises(Refusal) as refusal:
                await decided(governor, a_plan(subject="bob"))
            assert refusal.value.kind == "unavailable"
            assert refusal.value.message == "The policy of this server cannot be used now; its log says why."
        write({"subjects": {"bob": {"allow": ["read item:*"]}}})
        assert not (await decided(governor, a_plan(subject="bob"))).asked

    monkeypatch.setattr(policy_file, "read_policy", reading)
    write({"subjects": {"bob": {"allow": ["read item:*"]}}})
    governing(kept, work, policy=path)
    assert len(readers) == 4
    assert threading.main_thread() not in readers  # which has the event loop


def test_without_a_store_nothing_begins(tmp_path: Path) -> None:
    state = tmp_path / "elsewhere"
    state.write_text("no folder")

    async def work() -> None:
        governor = Governor(REGISTRY, StateStore(REGISTRY, ("governance_tables",), state=state))
        ruling = await decided(governor, a_plan())
        for doing in (governor.begin(ruling), decided(governor, a_plan("item.delete"))):
            with pytest.raises(Refusal) as refusal:
                await doing
            assert refusal.value.kind == "unavailable"
        await governor.close()

    finish(work())


def test_a_result_is_not_lost_when_its_end_cannot_be_put_on_record(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unavailable(_store: StateStore, _name: str, _work: Any) -> None:
        raise Refusal("unavailable", "Not now.")

    async def work(governor: Governor) -> None:
        permit = await governor.begin(await decided(governor, a_plan()))
        monkeypatch.setattr(StateStore, "write", unavailable)
        await governor.end(permit, outcome="ok", error=None, result_bytes=0, evidence=Evidence())

    governing(kept, work)
    assert found(kept, "kind", "status")[-1] == ("call", "pending")


# With the rest of a server


def test_calls_through_admission(kept: Kept) -> None:
    functions = Functions()

    async def work(governor: Governor) -> list[Any]:
        admission = Admission(REGISTRY, {"local": functions}, governor)

        async def outcome(name: str, identifier: str) -> str:
            request = Request(name, {"id": identifier}, caller=Caller("ann"))
            refusal = (await admission.admit(request)).refusal
            return "ok" if refusal is None else refusal.kind

        kinds = [await outcome(name, "1") for name in ("item.read", "item.write", "item.delete")]
        approvals = kept.all(APPROVALS)
        await asyncio.to_thread(kept.decide, approvals[0])
        both = await asyncio.gather(*(outcome("item.write", "1") for _ in range(8)))
        return [*kinds, sorted(both)]

    assert governing(kept, work) == ["ok", "pending", "denied", ["ok", *["pending"] * 7]]
    assert functions.ran == ["item.read", "item.write"]
    calls = [row for row in found(kept, "kind", "status") if row[0] == "call"]
    assert calls == [("call", "ok")] * 2
