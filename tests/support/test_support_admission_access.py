"""What a caller may do, on the one path of a call: asked once the arguments fit, and before anything happens."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from verbc.support.admission import Admission, Outcome, Request
from verbc.support.backend import Plan
from verbc.support.call import LOCAL, Call, Caller
from verbc.support.refusal import Refusal
from verbc.support.registry import Registry, from_data
from verbc.support.rights import Right

from .programs import finish
from .samples import DATA, Functions, verb_data

JOB = {"type": "object", "properties": {"account_id": {"type": "string"}}, "additionalProperties": {"type": "string"}}
PARAMS = {"properties": {"id": {"type": "string"}, "job": JOB}, "required": ["id"]}
ACCESS = {
    "verify": {"keys": "${KEYS}"},
    "scopes": {"run": ["execute verb:run"], "mine": ["write job:mine", "execute verb:run"], "all": ["write job:*"]},
    "pin": {"account_id": "account"},
}
VERBS = [
    verb_data("run", PARAMS, requires=["execute verb:run"]),
    verb_data("change", PARAMS, requires=["write job:<id>"]),
    verb_data("free"),
]


class Planning(Functions):
    """A backend that finds something wrong with what it is to do."""

    def __init__(self, refusal: Refusal, *, raises: bool = False) -> None:
        super().__init__()
        self.refusal = refusal
        self.raises = raises

    async def plan(self, call: Call) -> Plan:
        if self.raises:
            raise self.refusal
        return Plan(call, refusal=self.refusal)


def registry(**changes: Any) -> Registry:
    return from_data({**DATA, "access": ACCESS, "feedback": "shapes", "verbs": VERBS, **changes})


def caller(*scopes: str, account: str | None = "acct_1") -> Caller:
    return Caller("ada", account, frozenset(scopes), "k")


def ask(
    name: str, arguments: Any, who: Caller, backend: Functions | None = None, known: Registry | None = None
) -> Outcome:
    async def work() -> Outcome:
        admission = Admission(known or registry(), {"local": backend or Functions()})
        return await admission.admit(Request(name, arguments, caller=who))

    return finish(work())


def refused(name: str, arguments: Any, who: Caller, backend: Functions | None = None) -> Refusal:
    backend = backend or Functions()
    outcome = ask(name, arguments, who, backend)
    assert outcome.refusal is not None
    assert backend.ran == []
    return outcome.refusal


def test_a_scope_lets_a_call_through() -> None:
    assert ask("run", {"id": "1"}, caller("run")).result == {"id": "1"}
    assert ask("change", {"id": "mine"}, caller("mine")).result == {"id": "mine"}


def test_without_it_nothing_is_run() -> None:
    found = refused("run", {"id": "1"}, caller("all"))
    assert (found.kind, found.detail) == ("insufficient_scope", {"scopes": ["run", "mine"]})


@pytest.mark.parametrize("sent", ["yours", "*", "mine:*", "mine ", "mi*"])
def test_a_right_is_about_what_was_sent_and_tells_nothing_of_it(sent: str) -> None:
    found = refused("change", {"id": sent}, caller("mine"))
    assert (found.kind, found.detail) == ("insufficient_scope", {"scopes": ["all"]})
    assert sent not in found.message


def test_arguments_that_do_not_fit_are_told_before_scopes() -> None:
    assert refused("run", {}, caller()).kind == "invalid_input"
    assert refused("run", {"id": 1, "job": {"account_id": "acct_2"}}, caller()).kind == "invalid_input"
    assert refused("run", {"id": "1"}, caller()).kind == "insufficient_scope"


def test_scopes_are_told_before_what_is_pinned() -> None:
    arguments = {"id": "1", "job": {"account_id": "acct_2"}}
    assert refused("run", arguments, caller()).kind == "insufficient_scope"
    found = refused("run", arguments, caller("run"))
    assert found.as_error() == {
        "kind": "denied",
        "message": "`job.account_id` has to be the account of whoever calls, or left out.",
    }


def test_ones_own_account_may_be_said() -> None:
    arguments = {"id": "1", "job": {"account_id": "acct_1"}}
    assert ask("run", arguments, caller("run")).result == arguments
    assert refused("run", arguments, caller("run", account=None)).kind == "denied"


def test_a_pin_holds_for_verbs_without_rights() -> None:
    arguments = {"id": "1", "job": {"account_id": "acct_2"}}
    known = registry(verbs=[verb_data("free", PARAMS)])
    outcome = ask("free", arguments, caller(), known=known)
    assert outcome.refusal is not None
    assert outcome.refusal.kind == "denied"


@pytest.mark.parametrize("raises", [False, True])
def test_what_a_plan_found_is_told_to_who_may_do_it(raises: bool) -> None:
    def backend() -> Planning:
        return Planning(Refusal("not_found", "There is no such job."), raises=raises)

    other = {"id": "1", "job": {"account_id": "acct_2"}}
    assert refused("run", {"id": "1"}, caller(), backend()).kind == "insufficient_scope"
    assert refused("run", other, caller("run"), backend()).kind == "denied"
    assert refused("run", {"id": "1"}, caller("run"), backend()).kind == "not_found"


def test_a_local_caller_has_no_scopes() -> None:
    assert refused("run", {"id": "1"}, LOCAL).kind == "denied"
    assert ask("free", {}, LOCAL).refusal is None


def test_without_scopes_a_verb_with_rights_is_for_everybody() -> None:
    unscoped: list[Any] = [None, {"verify": None, "scopes": {}, "pin": {}}]
    for access in unscoped:
        for who in (LOCAL, caller()):
            assert ask("change", {"id": "1"}, who, known=registry(access=access)).result == {"id": "1"}


def test_a_right_that_cannot_be_told_lets_nobody_through() -> None:
    known = registry(verbs=[verb_data("change", {"properties": {"id": {}}}, requires=["write job:<id>"])])
    for arguments in ({}, {"id": 1}, {"id": None}):
        outcome = ask("change", arguments, caller("all"), known=known)
        assert outcome.refusal is not None
        assert outcome.refusal.kind == "internal"


def test_calls_of_several_callers_do_not_mix() -> None:
    async def work() -> list[Outcome]:
        admission = Admission(registry(), {"local": Functions()})
        callers = [caller("run", account=f"acct_{number}") for number in range(20)]
        requests = [Request("run", {"id": "1", "job": {"account_id": "acct_7"}}, caller=who) for who in callers]
        return await asyncio.gather(*map(admission.admit, requests))

    outcomes = finish(work())
    assert [number for number, outcome in enumerate(outcomes) if outcome.refusal is None] == [7]


class Reaching(Functions):
    """A backend that knows only from the arguments what a call reaches."""

    async def plan(self, call: Call) -> Plan:
        return Plan(call, rights=tuple(Right.of("write job:<id>", {"id": name}) for name in call.arguments["ids"]))


def test_rights_that_only_the_plan_knows_are_asked_for_as_well() -> None:
    ids = {"properties": {"ids": {"type": "array", "items": {"type": "string"}}}, "required": ["ids"]}
    known = registry(verbs=[verb_data("wait", ids)])
    assert ask("wait", {"ids": ["mine", "mine"]}, caller("mine"), Reaching(), known).refusal is None
    backend = Reaching()
    outcome = ask("wait", {"ids": ["mine", "theirs"]}, caller("mine"), backend, known)
    assert outcome.refusal is not None
    assert (outcome.refusal.kind, outcome.refusal.detail) == ("insufficient_scope", {"scopes": ["all"]})
    assert backend.ran == []
