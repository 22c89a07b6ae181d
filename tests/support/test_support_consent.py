"""A client's user is asked in both eras, where the policy lets his word count, and nobody else's word passes for it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import Client
from mcp.client import ClientRequestContext
from mcp_types import (
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    InputRequiredResult,
    InputResponse,
    InputResponses,
    ListRootsResult,
)

from verbc.support import request_state
from verbc.support.call import LOCAL, Caller
from verbc.support.client_consent import ClientConsents
from verbc.support.registry import Registry
from verbc.support.server_mcp import build_server

from .clients import ERAS, structured
from .kept_approvals import ASKED, KeptApprovals
from .programs import finish, move_clock
from .samples import Functions

MODERN = "2026-07-28"
ARGUMENTS = {"id": "a"}
VARIABLE = "SAMPLE_MCP_STATE_KEYS"
ACCEPT, DECLINE, CANCEL = (ElicitResult(action=action) for action in ("accept", "decline", "cancel"))


@dataclass
class Person:
    """Answers what a client asks him, always alike, and keeps the questions."""

    answer: ElicitResult | ErrorData
    asked: list[ElicitRequestFormParams] = field(default_factory=list)

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params)
        return self.answer


@dataclass
class Served:
    """A server with approvals, and what it has run."""

    registry: Registry
    approvals: KeptApprovals
    surface: str = "tools"
    caller: Caller = LOCAL
    environ: dict[str, str] = field(default_factory=dict)
    backend: Functions = field(default_factory=Functions)

    def with_client(
        self, use: Callable[[Client], Awaitable[Any]], person: Any = None, *, era: str = MODERN, asks: bool = True
    ) -> Any:
        """What `use` makes of a client whose user is `person`; None is a client that cannot ask."""

        async def connected() -> Any:
            backends = {"local": self.backend, "li": self.backend}
            consents = ClientConsents(self.registry, self.environ) if asks else None
            server = build_server(self.registry, backends, self.surface, self.caller, self.approvals, consents)
            async with Client(server, mode=era, elicitation_callback=person) as client:
                return await use(client)

        return finish(connected())

    def call(self, person: Any = None, *, era: str = MODERN, **how: Any) -> CallToolResult:
        async def use(client: Client) -> CallToolResult:
            return await client.call_tool(ASKED, ARGUMENTS)

        return cast("CallToolResult", self.with_client(use, person, era=era, **how))

    def send(
        self, *, tool: str = ASKED, arguments: Any = None, state: str | None = None, responses: Any = None
    ) -> CallToolResult | InputRequiredResult:
        """What a client that asks gets for one request, and nothing done about it."""

        async def use(client: Client) -> CallToolResult | InputRequiredResult:
            return await client.session.call_tool(
                tool,
                ARGUMENTS if arguments is None else arguments,
                request_state=state,
                input_responses=responses,
                allow_input_required=True,
            )

        return cast("CallToolResult | InputRequiredResult", self.with_client(use, Person(ACCEPT)))

    def asked(self, **how: Any) -> tuple[str, str]:
        """The state that comes with a question, and the key to answer under."""
        result = self.send(**how)
        assert isinstance(result, InputRequiredResult)
        assert result.request_state is not None
        (key,) = result.input_requests or {}
        return result.request_state, key


@pytest.fixture
def approvals(tmp_path: Path) -> KeptApprovals:
    return KeptApprovals(tmp_path)


@pytest.fixture
def served(registry: Registry, approvals: KeptApprovals) -> Served:
    return Served(registry, approvals)


def kind(result: Any) -> str:
    """The kind of a refusal."""
    assert isinstance(result, CallToolResult)
    assert result.is_error
    return str(structured(result)["error"]["kind"])


@pytest.mark.parametrize("era", ERAS)
def test_a_yes_lets_one_call_through(served: Served, approvals: KeptApprovals, era: str) -> None:
    person = Person(ACCEPT)
    assert structured(served.call(person, era=era)) == ARGUMENTS
    assert (approvals.states, approvals.answers, served.backend.ran) == (["used"], ["approved client"], [ASKED])
    assert structured(served.call(person, era=era)) == ARGUMENTS
    assert (approvals.states, len(person.asked)) == (["used", "used"], 2)


@pytest.mark.parametrize("era", ERAS)
def test_the_person_reads_what_it_is_about_and_fills_in_nothing(served: Served, era: str) -> None:
    person = Person(ACCEPT)
    served.call(person, era=era)
    (question,) = person.asked
    assert question.message.startswith(f"May `local` run `{ASKED}`?")
    assert 'item_id: "a"' in question.message
    assert question.message.endswith('arguments: {\n  "id": "a"\n}')
    assert question.requested_schema == {"type": "object", "properties": {}}


@pytest.mark.parametrize("era", ERAS)
def test_what_is_filled_in_all_the_same_is_ignored(served: Served, era: str) -> None:
    answer = ElicitResult(action="accept", content={"approve": False, "id": "b"})
    assert structured(served.call(Person(answer), era=era)) == ARGUMENTS


@pytest.mark.parametrize("era", ERAS)
def test_a_no_is_kept(served: Served, approvals: KeptApprovals, era: str) -> None:
    assert kind(served.call(Person(DECLINE), era=era)) == "denied"
    assert kind(served.call(Person(ACCEPT), era=era)) == "denied"
    assert (approvals.states, approvals.answers, served.backend.ran) == (["rejected"], ["rejected client"], [])


@pytest.mark.parametrize("era", ERAS)
def test_a_form_that_is_only_closed_leaves_it_pending(served: Served, approvals: KeptApprovals, era: str) -> None:
    result = served.call(Person(CANCEL), era=era)
    assert kind(result) == "pending"
    assert structured(result)["error"]["detail"]["approval"]["target"] == {"item_id": "a"}
    assert (approvals.states, approvals.answers, served.backend.ran) == (["pending"], [], [])
    assert structured(served.call(Person(ACCEPT), era=era)) == ARGUMENTS
    assert approvals.states == ["used"]


@pytest.mark.parametrize("era", ERAS)
def test_a_client_that_cannot_ask_is_told_that_it_is_pending(
    served: Served, approvals: KeptApprovals, era: str
) -> None:
    assert kind(served.call(None, era=era)) == "pending"
    assert (approvals.states, approvals.answers) == (["pending"], [])


@pytest.mark.parametrize("era", ERAS)
def test_nobody_is_asked_where_an_operator_decides(registry: Registry, tmp_path: Path, era: str) -> None:
    person = Person(ACCEPT)
    assert kind(Served(registry, KeptApprovals(tmp_path, "operator")).call(person, era=era)) == "pending"
    assert person.asked == []


@pytest.mark.parametrize("era", ERAS)
def test_nobody_is_asked_by_a_server_that_does_not_ask(served: Served, era: str) -> None:
    person = Person(ACCEPT)
    assert kind(served.call(person, era=era, asks=False)) == "pending"
    assert person.asked == []


@pytest.mark.parametrize("era", ERAS)
def test_nobody_is_asked_about_one_op_among_others(registry: Registry, approvals: KeptApprovals, era: str) -> None:
    person = Person(ACCEPT)

    async def use(client: Client) -> CallToolResult:
        return await client.call_tool("request", {"ops": [{"op": ASKED, "args": ARGUMENTS}, {"op": "free"}]})

    result = Served(registry, approvals, "request").with_client(use, person, era=era)
    first, second = structured(result)["ops"]
    assert (first["error"]["kind"], second["ok"], person.asked) == ("pending", True, [])


@pytest.mark.parametrize("era", ERAS)
def test_what_needs_no_approval_asks_nobody(served: Served, era: str) -> None:
    person = Person(DECLINE)

    async def use(client: Client) -> CallToolResult:
        return await client.call_tool("free", {})

    assert structured(served.with_client(use, person, era=era)) == {}
    assert person.asked == []


def test_a_client_that_fails_to_ask_is_told_that_it_is_pending(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    error = ErrorData(code=-32603, message="sub-mitted")
    assert kind(served.call(Person(error), era="legacy")) == "pending"
    assert caplog.records[-1].getMessage() == "a client could not ask its user"
    assert "sub-mitted" not in caplog.text


def test_a_person_who_takes_too_long_finds_it_pending(served: Served, approvals: KeptApprovals) -> None:
    """The call still has the time then to be answered."""
    gone = []

    async def person(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        move_clock(700)
        try:
            await asyncio.Event().wait()
        finally:
            gone.append(True)
        return ACCEPT

    assert kind(served.call(person, era="legacy")) == "pending"
    assert (gone, approvals.states) == ([True], ["pending"])


def test_a_call_that_is_taken_back_asks_nobody_any_more(served: Served, approvals: KeptApprovals) -> None:
    async def use(client: Client) -> None:
        calling = asyncio.create_task(client.call_tool(ASKED, ARGUMENTS))
        await begun.wait()
        calling.cancel()
        await ended.wait()

    async def person(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ACCEPT

    begun, ended = asyncio.Event(), asyncio.Event()
    served.with_client(use, person, era="legacy")
    assert (approvals.states, served.backend.ran) == (["pending"], [])


def test_the_question_of_the_newer_era_comes_as_an_answer(served: Served, approvals: KeptApprovals) -> None:
    result = served.send()
    assert isinstance(result, InputRequiredResult)
    assert result.input_requests is not None
    (request,) = result.input_requests.values()
    assert request.method == "elicitation/create"
    assert isinstance(request.params, ElicitRequestFormParams)
    (approval,) = approvals.folder.glob("*.pending")
    assert result.request_state is not None
    assert approval.name.split(".")[1] not in result.request_state
    assert served.asked()[0] != result.request_state
    assert approvals.states == ["pending"]


def test_a_call_that_is_sent_again_with_an_answer_goes_on(served: Served, approvals: KeptApprovals) -> None:
    state, key = served.asked()
    assert structured(served.send(state=state, responses={key: ACCEPT})) == ARGUMENTS  # type: ignore[arg-type]
    assert kind(served.send(state=state, responses={key: ACCEPT})) == "invalid_input"
    assert (approvals.answers, served.backend.ran) == (["approved client"], [ASKED])


def test_a_synonym_is_asked_about_as_well(served: Served) -> None:
    state, key = served.asked(tool="show_item")
    assert structured(served.send(tool="show_item", state=state, responses={key: ACCEPT})) == ARGUMENTS  # type: ignore[arg-type]


Bad = Callable[[str, str], dict[str, Any]]
BAD: dict[str, Bad] = {
    "a state that is none": lambda state, key: {"state": "x", "responses": {key: ACCEPT}},
    "an empty state": lambda state, key: {"state": "", "responses": {key: ACCEPT}},
    "a changed state": lambda state, key: {"state": state[:-1] + ("A" if state[-1] != "A" else "B")},
    "a state with more": lambda state, key: {"state": f"{state}A", "responses": {key: ACCEPT}},
    "no state": lambda state, key: {"responses": {key: ACCEPT}},
    "no state and no answer": lambda state, key: {"responses": {}},
    "no answer": lambda state, key: {"state": state},
    "no answer among none": lambda state, key: {"state": state, "responses": {}},
    "an answer to something else": lambda state, key: {"state": state, "responses": {"other": ACCEPT}},
    "an answer of another kind": lambda state, key: {"state": state, "responses": {key: ListRootsResult(roots=[])}},
    "other arguments": lambda state, key: {"state": state, "responses": {key: ACCEPT}, "arguments": {"id": "b"}},
    "more arguments": lambda state, key: {
        "state": state,
        "responses": {key: ACCEPT},
        "arguments": {**ARGUMENTS, "count": 1},
    },
    "another tool": lambda state, key: {"state": state, "responses": {key: ACCEPT}, "tool": "show_item"},
}


@pytest.mark.parametrize("name", BAD)
def test_an_answer_that_is_not_to_the_question_counts_for_nothing(
    served: Served, approvals: KeptApprovals, name: str
) -> None:
    state, key = served.asked()
    assert kind(served.send(**BAD[name](state, key))) == "invalid_input"
    assert (approvals.answers, served.backend.ran) == ([], [])
    assert set(approvals.states) == {"pending"}


def test_an_answer_of_somebody_else_counts_for_nothing(served: Served, registry: Registry, tmp_path: Path) -> None:
    state, key = served.asked()
    other = Served(registry, KeptApprovals(tmp_path), caller=Caller("somebody"))
    assert kind(other.send(state=state, responses={key: ACCEPT})) == "invalid_input"
    assert other.backend.ran == []


def test_an_answer_to_an_approval_that_is_gone_counts_for_nothing(served: Served, approvals: KeptApprovals) -> None:
    state, key = served.asked()
    for path in approvals.folder.glob("*.pending"):
        path.rename(path.with_suffix(".expired"))
    assert kind(served.send(state=state, responses={key: ACCEPT})) == "invalid_input"
    assert (approvals.states, approvals.answers) == (["expired", "pending"], [])


def test_an_answer_that_comes_too_late_counts_for_nothing(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_state, "_LIFETIME_SECONDS", -1.0)
    state, key = served.asked()
    monkeypatch.undo()
    assert kind(served.send(state=state, responses={key: ACCEPT})) == "invalid_input"
    assert served.backend.ran == []


def test_what_is_approved_meanwhile_needs_no_answer(served: Served, approvals: KeptApprovals) -> None:
    state, key = served.asked()
    for path in approvals.folder.glob("*.pending"):
        path.rename(path.with_suffix(".approved"))
    assert structured(served.send(state=state, responses={key: CANCEL})) == ARGUMENTS  # type: ignore[arg-type]
    assert approvals.answers == []


@pytest.mark.parametrize("same", [True, False])
def test_servers_with_the_same_keys_take_each_others_answers(
    registry: Registry, approvals: KeptApprovals, same: bool
) -> None:
    key = secrets.token_hex(32)
    one = Served(registry, approvals, environ={VARIABLE: key})
    other = Served(registry, approvals, environ={VARIABLE: f"{secrets.token_hex(32)},{key if same else key[::-1]}"})
    state, name = one.asked()
    responses: InputResponses = {name: cast("InputResponse", ACCEPT)}
    result = other.send(state=state, responses=responses)
    assert isinstance(result, CallToolResult)
    assert result.is_error is not same
    assert approvals.states == (["used"] if same else ["pending"])
