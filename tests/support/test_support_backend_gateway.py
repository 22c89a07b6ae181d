"""The gateway: from a call of one of its four verbs to what an upstream said, and what is told of it."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import sys
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verbc.support import audit, registrations
from verbc.support.backend import Plan
from verbc.support.backend_gateway import GatewayBackend
from verbc.support.binding import Bindings
from verbc.support.refusal import Refusal
from verbc.support.registry import Registry, from_data
from verbc.support.state_store import StateStore
from verbc.support.upstream_errors import InvalidListError, NotStartedError, UpstreamError

from .gateways import EVENT, GET, HTTP, NOW, PUT, Heap, Upstream, a_call, manifest, offered, tool_data
from .programs import finish
from .samples import DATA, verb_data

FITTING = {"event_id": "e1"}
CALENDAR = {"server_id": "calendar"}
GETTING = {**CALENDAR, "tool_id": "event_get", "arguments": FITTING}
PUTTING = {**GETTING, "tool_id": "event_put"}
CORRELATION = "corr_0123456789abcdef"
TEXT = {"type": "string"}
FAILED = {"result": None, "ok": False, "schema_protection": "pinned", "mcp_name": "cal.get"}


def verb(name: str, operation: str, properties: dict[str, Any], **changes: Any) -> dict[str, Any]:
    run = {"backend": "gate", "target": [operation], "reply": {"form": "json"}, "refusals": {}}
    return verb_data(
        name, {"properties": properties}, run={**run, "module": "gateway_verbs", "function": name}, **changes
    )


VERBS = [
    verb("servers", "servers", {"text": {"type": ["string", "null"]}, "limit": {"type": ["integer", "null"]}}),
    verb("server", "server", {"server_id": TEXT}),
    verb("tools", "tools", {"server_id": TEXT, "refresh": {"type": "boolean"}}),
    verb("call", "call", {"server_id": TEXT, "tool_id": TEXT, "arguments": {"type": "object"}}),
]


def registry(*manifests: Any) -> Registry:
    gate = {"kind": "gateway", "env": ["CAL_*"], "list": 3, "manifests": list(manifests)}
    return from_data({**copy.deepcopy(DATA), "backends": {"gate": gate}, "verbs": VERBS})


@dataclass
class Gate:
    """A gateway over a store in memory and a scripted upstream."""

    backend: GatewayBackend
    registry: Registry
    store: Heap
    upstream: Upstream
    plan: Plan | None = None

    def add(self, **changes: Any) -> None:
        self.store.now(lambda connection: registrations.add(connection, manifest(**changes), "operator", NOW))

    async def ask(self, name: str, arguments: dict[str, Any], **about: Any) -> Any:
        """What the caller gets: the result, or the refusal as data."""
        try:
            return await self.run(await self.planned(name, arguments, **about))
        except Refusal as refusal:
            return refusal.as_error()

    async def planned(self, name: str, arguments: dict[str, Any], **about: Any) -> Plan:
        verb = self.registry.verb(name)
        assert verb is not None
        return await self.backend.plan(a_call(verb, arguments, self.registry, **about))

    async def run(self, plan: Plan) -> Any:
        self.plan = plan
        if (refusal := plan.obstacle()) is not None:
            raise refusal
        return await self.backend.run(plan)

    @property
    def evidence(self) -> tuple[bool, bool, int | None, str | None]:
        assert self.plan is not None
        found = self.plan.evidence
        return found.contacted, found.sent, found.response_bytes, found.status


def over(
    work: Callable[[Gate], Awaitable[Any]], *manifests: Any, environ: dict[str, str] | None = None, **upstream: Any
) -> Any:
    """What `work` gives with a gateway that has `calendar`, unless the spec has `manifests`."""

    async def inner() -> Any:
        made, store, scripted = registry(*manifests), Heap(), Upstream(**upstream)
        given: dict[str, Any] = {"environ": environ or {}, "upstreams": scripted}
        backend = GatewayBackend(made, "gate", Bindings(__package__), cast("Any", store), **given)
        gate = Gate(backend, made, store, scripted)
        if not manifests:
            gate.add()
        try:
            return await work(gate)
        finally:
            await backend.close()
            store.close()

    return finish(inner())


def called(arguments: dict[str, Any] | None = None, **upstream: Any) -> Any:
    """What a call gives, without its time; the evidence; and what the upstream was told."""

    async def work(gate: Gate) -> Any:
        answer = await gate.ask("call", arguments or GETTING)
        assert answer.pop("duration_s", 0) >= 0
        return answer, gate.evidence, gate.upstream.calls

    return over(work, **upstream)


def logged(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [getattr(record, "verbc_fields", {}) | {"event": record.msg} for record in caplog.records]


# The registry


def test_servers_are_found_up_to_a_limit_which_is_never_lowered_unasked() -> None:
    async def work(gate: Gate) -> Any:
        for number in range(3):
            gate.add(server_id=f"s{number}")
        answers = [await gate.ask("servers", arguments) for arguments in ({}, {"limit": 2}, {"text": "S1"})]
        seen = [([server["server_id"] for server in answer["servers"]], answer["has_more"]) for answer in answers]
        return seen, await gate.ask("servers", {"limit": 4}), gate.upstream.sessions

    seen, refused, sessions = over(work)
    assert seen == [(["calendar", "s0", "s1"], True), (["calendar", "s0"], True), (["s1"], False)]
    assert refused["kind"] == "invalid_input"
    assert sessions == []


NAMES = ("calendar", "s0", "s1", "s2")


@given(st.frozensets(st.sampled_from(NAMES)), st.integers(1, 3), st.sampled_from([None, "S1"]))
@settings(max_examples=40, deadline=None)
def test_what_may_not_be_read_is_in_no_search(readable: frozenset[str], limit: int, text: str | None) -> None:
    async def work(gate: Gate) -> Any:
        for name in NAMES[1:]:
            gate.add(server_id=name)
        plan = await gate.planned("servers", {"limit": limit, "text": text})
        plan.call.may = lambda right: right.parts[0] == "read mcp_server" and right.parts[1] in readable
        answer = await gate.run(plan)
        return [server["server_id"] for server in answer["servers"]], answer["has_more"]

    expected = [name for name in NAMES if name in readable and text in (None, name.upper())]
    assert over(work) == (expected[:limit], len(expected) > limit)


def test_a_server_is_shown_without_its_address_and_secrets() -> None:
    http = {"url": "https://calendar.example.org/hidden", "headers": {"X-Key": {"env": "CAL_KEY", "prefix": "Bearer "}}}

    async def work(gate: Gate) -> Any:
        gate.add(server_id="web", transport="streamable_http", http=http)
        return await gate.ask("server", {"server_id": "web"}), gate.upstream.sessions

    answer, sessions = over(work, environ={"CAL_KEY": "value"})
    assert answer["server"]["transport"]["url"] is None
    assert "hidden" not in json.dumps(answer)
    assert "value" not in json.dumps(answer)
    assert sessions == []


@pytest.mark.parametrize(("name", "more"), [("server", {}), ("tools", {}), ("tools", {"refresh": True})])
def test_what_is_not_registered_is_not_found(name: str, more: dict[str, Any]) -> None:
    async def work(gate: Gate) -> Any:
        gate.store.now(lambda connection: registrations.remove(connection, "calendar", "operator", NOW))
        return [await gate.ask(name, {"server_id": server, **more}) for server in ("calendar", "ghost", "\x00")]

    assert over(work) == [
        {"kind": "not_found", "message": f"There is no server `{server}`."}
        for server in ("calendar", "ghost", "\\u0000")
    ]


def test_the_registered_tools_are_told_without_contact() -> None:
    async def work(gate: Gate) -> Any:
        return await gate.ask("tools", CALENDAR), gate.upstream.sessions

    answer, sessions = over(work)
    assert [tool["tool_id"] for tool in answer["tools"]] == ["event_get", "event_put"]
    assert not any("live" in tool for tool in answer["tools"])
    assert {name: answer[name] for name in ("server_id", "transport", "refreshed", "response_bytes")} == {
        "server_id": "calendar",
        "transport": "stdio",
        "refreshed": False,
        "response_bytes": 0,
    }
    assert sessions == []


def test_a_refresh_puts_the_live_tools_beside_the_registered_ones() -> None:
    async def work(gate: Gate) -> Any:
        return await gate.ask("tools", {**CALENDAR, "refresh": True}), gate.evidence, gate.upstream

    answer, evidence, upstream = over(
        work, tools=[offered("extra"), offered(description="a\u202e", inputSchema={**EVENT, "title": "T"})]
    )
    get, put = answer["tools"]
    assert get["live"] == {
        "name": "cal.get",
        "description": "a\\u202e",
        "input_schema": {**EVENT, "title": "T"},
        "schema_matches_manifest": False,
    }
    assert "live" not in put
    assert (answer["refreshed"], answer["response_bytes"]) == (True, 200)
    assert evidence == (True, False, 200, "ok")
    assert (upstream.lists, upstream.calls) == (1, [])


@pytest.mark.parametrize(
    ("upstream", "code", "error_type"),
    [
        ({"connecting": UpstreamError("McpConnectionLost")}, "mcp_provider_error", "McpConnectionLost"),
        ({"connecting": UpstreamError("McpDnsTimeout")}, "mcp_dns_timeout", "McpDnsTimeout"),
        ({"tools": UpstreamError("McpTimeout")}, "mcp_provider_error", "McpTimeout"),
        ({"tools": InvalidListError()}, "mcp_invalid_response", "LiveToolValidationError"),
        ({"tools": [offered(), offered()]}, "mcp_invalid_response", "LiveToolValidationError"),
        ({"tools": [offered(inputSchema={"title": "x" * (1 << 20)})]}, "mcp_response_too_large", "response_too_large"),
    ],
)
def test_a_refresh_that_fails_tells_no_part_of_a_list(
    upstream: dict[str, Any], code: str, error_type: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(gate: Gate) -> Any:
        return await gate.ask("tools", {**CALENDAR, "refresh": True}), gate.evidence

    answer, (contacted, sent, _, _) = over(work, **upstream)
    detail = {"code": code, "error_type": error_type, "correlation_id": CORRELATION}
    message = "The live tools of `calendar` could not be read."
    assert answer == {"kind": "unavailable", "message": message, "detail": detail}
    assert (contacted, sent) == (True, False)
    assert [entry["correlation_id"] for entry in logged(caplog)] == [CORRELATION]


# Calls


def test_a_call_looks_at_the_live_tools_first_and_runs_once() -> None:
    async def work(gate: Gate) -> Any:
        answer = await gate.ask("call", GETTING)
        return answer, gate.evidence, gate.upstream

    answer, evidence, upstream = over(work)
    duration = answer.pop("duration_s")
    assert 0 <= duration < 60
    size = len(json.dumps(upstream.result, separators=(",", ":")))
    assert answer == {
        "server_id": "calendar",
        "tool_id": "event_get",
        "mcp_name": "cal.get",
        "status": "ok",
        "ok": True,
        "result": {"content": [{"type": "text", "text": "done"}], "structured_content": None},
        "error": None,
        "call_started": True,
        "schema_protection": "pinned",
        "response_bytes": 200 + size,
    }
    assert evidence == (True, True, 200 + size, "ok")
    assert (len(upstream.sessions), upstream.lists, upstream.calls) == (1, 1, [("cal.get", FITTING)])
    (session,) = upstream.sessions
    assert (session["generation"], session["subject"], session["warm"]) == (1, "ann", False)


def test_the_name_of_a_tool_steers_no_display() -> None:
    name = "get\u202e\u0007"

    async def work(gate: Gate) -> Any:
        gate.add(server_id="odd", tools=[{**GET, "mcp_name": name}])
        gate.upstream.tools = [offered(name)]
        shown = (await gate.ask("tools", {"server_id": "odd"}))["tools"][0]["mcp_name"]
        return (await gate.ask("call", {**GETTING, "server_id": "odd"}))["mcp_name"], shown, gate.upstream.calls

    assert over(work) == ("get\\u202e\\u0007", "get\\u202e\\u0007", [(name, FITTING)])


def test_without_arguments_an_empty_object_is_sent() -> None:
    async def work(gate: Gate) -> Any:
        gate.add(server_id="free", tools=[{**GET, "input_schema": {}}])
        answer = await gate.ask("call", {"server_id": "free", "tool_id": "event_get"})
        return answer["schema_protection"], gate.upstream.calls

    assert over(work) == ("absent", [("cal.get", {})])


def test_the_result_is_projected() -> None:
    data = b64encode(b"picture").decode()
    result = {
        "content": [{"type": "image", "data": data, "mimeType": "image/png"}, {"type": "text", "text": '{"a": 1}'}],
        "structuredContent": {"a": 1},
        "_meta": {"more": "dropped"},
    }
    answer, _, _ = called(result=result)
    (block,) = answer["result"]["content"]
    assert block["bytes"] == 7
    assert answer["result"]["structured_content"] == {"a": 1}
    assert data not in json.dumps(answer)


def test_an_error_of_the_tool_is_a_result_with_its_content(caplog: pytest.LogCaptureFixture) -> None:
    content = [{"type": "text", "text": "no such \u202eevent"}]
    answer, evidence, calls = called(result={"content": content, "isError": True})
    assert answer == {
        **FAILED,
        **{name: GETTING[name] for name in ("server_id", "tool_id")},
        "status": "mcp_error",
        "error": {
            "code": "mcp_tool_error",
            "error_type": "mcp_error",
            "correlation_id": CORRELATION,
            "message": "The tool says itself that it ended in an error.",
            "content": [{"type": "text", "text": "no such \\u202eevent"}],
        },
        "call_started": True,
        "response_bytes": answer["response_bytes"],
    }
    assert evidence == (True, True, answer["response_bytes"], "mcp_error")
    assert len(calls) == 1
    (entry,) = logged(caplog)
    assert (entry["status"], entry["correlation_id"]) == ("mcp_error", CORRELATION)
    assert "no such" not in json.dumps(entry)


@pytest.mark.parametrize(
    ("upstream", "error_type", "sent", "known"),
    [
        ({"connecting": UpstreamError("McpConnectionLost")}, "McpConnectionLost", False, None),
        ({"tools": UpstreamError("McpStdioFrameTooLarge")}, "McpStdioFrameTooLarge", False, None),
        ({"answering": UpstreamError("McpTimeout")}, "McpTimeout", True, None),
        ({"answering": UpstreamError("McpErrorReply")}, "McpErrorReply", True, None),
        ({"result": {"content": "none"}}, "McpProtocolError", True, 218),
        ({"result": {"content": [], "structuredContent": {"a\u202e": 1, "a\\u202e": 1}}}, "McpProtocolError", True, 0),
    ],
)
def test_what_fails_on_the_way_is_told_by_its_type_alone(
    upstream: dict[str, Any], error_type: str, sent: bool, known: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    answer, evidence, calls = called(**upstream)
    assert (answer["status"], answer["ok"], answer["result"]) == ("transport_error", False, None)
    expected = {"code": "mcp_provider_error", "error_type": error_type, "correlation_id": CORRELATION}
    assert {name: answer["error"][name] for name in expected} == expected
    assert answer["error"].keys() - expected.keys() <= {"message"}
    assert answer["call_started"] is sent
    assert evidence[:2] == (True, sent)
    assert (evidence[2] is None) is (known is None)
    assert len(calls) == sent
    (entry,) = logged(caplog)
    assert (entry["correlation_id"], entry["error_type"]) == (CORRELATION, error_type)


def test_a_name_that_is_not_found_in_time_has_a_code_of_its_own() -> None:
    answer, _, _ = called(connecting=UpstreamError("McpDnsTimeout"))
    assert (answer["status"], answer["error"]["code"]) == ("transport_error", "mcp_dns_timeout")


@pytest.mark.parametrize(
    "tools",
    [
        [],
        [offered("cal.put")],
        [offered(inputSchema={**EVENT, "title": "T"})],
        [offered(inputSchema={})],
        [offered(), {}],
        [offered(), offered()],
        InvalidListError(),
    ],
)
def test_a_tool_that_is_not_offered_as_it_is_registered_is_not_called(tools: Any) -> None:
    answer, evidence, calls = called(tools=tools)
    assert (answer["status"], answer["call_started"]) == ("invalid_response", False)
    assert answer["error"] == {
        "code": "mcp_invalid_response",
        "error_type": "LiveToolValidationError",
        "correlation_id": CORRELATION,
        "message": "The server does not offer the tool as it is registered; nothing was called.",
    }
    assert calls == []
    assert evidence[:2] == (True, False)
    assert evidence[3] == "invalid_response"


def test_a_result_that_is_too_large_is_told_without_any_of_it() -> None:
    answer, evidence, calls = called(result={"content": [{"type": "text", "text": "ä" * 400_000}]})
    assert (answer["status"], answer["call_started"], answer["result"]) == ("response_too_large", True, None)
    assert answer["error"]["code"] == "mcp_response_too_large"
    assert "ä" not in json.dumps(answer, ensure_ascii=False)
    assert evidence[3] == "response_too_large"
    assert len(calls) == 1


@pytest.mark.parametrize("change", ["replace", "remove"])
def test_a_registration_that_changed_before_the_call_stops_it(change: str) -> None:
    async def work(gate: Gate) -> Any:
        def changed() -> None:
            if change == "replace":
                gate.store.now(lambda connection: registrations.replace(connection, manifest(), "operator", NOW))
            else:
                gate.store.now(lambda connection: registrations.remove(connection, "calendar", "operator", NOW))

        gate.upstream.listing = changed
        return await gate.ask("call", GETTING), gate.evidence, gate.upstream

    answer, evidence, upstream = over(work)
    assert (answer["status"], answer["error"]["error_type"]) == ("invalid_response", "RegistrationChanged")
    assert answer["call_started"] is False
    assert evidence == (True, False, 200, "invalid_response")
    assert (upstream.calls, upstream.kept) == ([], [False])


def test_what_was_never_started_is_a_refusal_that_undoes_everything(caplog: pytest.LogCaptureFixture) -> None:
    answer, evidence, calls = called(starting=NotStartedError("McpCommandNotFound"))
    detail = {
        "code": "mcp_provider_not_started",
        "error_type": "McpCommandNotFound",
        "correlation_id": CORRELATION,
    }
    message = "`calendar` cannot be reached; nothing was sent to it."
    assert answer == {"kind": "unavailable", "message": message, "detail": detail}
    assert evidence == (False, False, None, None)
    assert calls == []
    answer, evidence, _ = called(connecting=NotStartedError("McpStartFailed"))
    assert answer["kind"] == "unavailable"
    assert evidence[0] is False
    assert [entry["correlation_id"] for entry in logged(caplog)] == [CORRELATION] * 2


def test_a_secret_that_is_not_there_keeps_everything_from_starting() -> None:
    stdio = {"command": "calendar", "env": {"TOKEN": "CAL_TOKEN"}}

    async def work(gate: Gate) -> Any:
        gate.add(server_id="keyed", stdio=stdio)
        return await gate.ask("call", {**GETTING, "server_id": "keyed"}), gate.evidence, gate.upstream.sessions

    answer, evidence, sessions = over(work)
    assert answer["kind"] == "unavailable"
    assert "CAL_TOKEN" in answer["message"]
    assert (evidence, sessions) == ((False, False, None, None), [])
    answer, _, sessions = over(work, environ={"CAL_TOKEN": "value"})
    assert answer["status"] == "ok"
    assert "value" not in repr(sessions)


@pytest.mark.parametrize(
    ("server", "changes", "tool_id", "kept"),
    [
        (True, {}, "event_get", True),
        (False, {}, "event_get", False),
        (True, {}, "event_put", False),
        (True, {"warm_mutation": "allow"}, "event_put", True),
        (False, {"warm_mutation": "allow"}, "event_put", False),
    ],
)
def test_a_session_is_kept_where_the_manifest_says_so(
    server: bool, changes: dict[str, Any], tool_id: str, kept: bool
) -> None:
    async def work(gate: Gate) -> Any:
        gate.add(server_id="warm", warm=server, tools=[GET, {**PUT, **changes}])
        answer = await gate.ask("call", {**GETTING, "server_id": "warm", "tool_id": tool_id})
        return answer["status"], gate.upstream.kept

    assert over(work) == ("ok", [kept])


def test_a_call_ends_with_its_own_time_or_with_that_of_the_manifest() -> None:
    async def work(gate: Gate) -> Any:
        gate.add(server_id="quick", timeout_s=2)
        begun = asyncio.get_running_loop().time()
        await gate.ask("call", {**GETTING, "server_id": "quick"})
        await gate.ask("call", GETTING, seconds=5)
        quick, short = (session["deadline"] - begun for session in gate.upstream.sessions)
        return quick, short

    quick, short = over(work)
    assert 2 <= quick < 5
    assert 4.5 < short < 6


def test_each_call_reads_the_registry_anew() -> None:
    async def work(gate: Gate) -> Any:
        first = await gate.ask("call", GETTING)
        gate.store.now(lambda connection: registrations.remove(connection, "calendar", "operator", NOW))
        return first["status"], await gate.ask("call", GETTING), await gate.ask("server", CALENDAR)

    status, call, server = over(work)
    assert status == "ok"
    assert call == {"kind": "not_found", "message": "There is no tool `event_get` of a server `calendar`."}
    assert server["kind"] == "not_found"


def test_a_refusal_of_the_plan_contacts_nothing() -> None:
    async def work(gate: Gate) -> Any:
        changes: list[dict[str, Any]] = [{"arguments": {}}, {"tool_id": "cal.get"}, {"server_id": "ghost"}]
        answers = [await gate.ask("call", {**GETTING, **change}) for change in changes]
        return [answer["kind"] for answer in answers], gate.evidence, gate.upstream.sessions

    assert over(work) == (["invalid_input", "not_found", "not_found"], (False, False, None, None), [])


def test_a_function_that_asks_for_another_call_than_was_planned_is_at_fault() -> None:
    async def work(gate: Gate) -> Any:
        plan = await gate.planned("call", GETTING)
        for changes in ({"arguments": {"event_id": "other"}}, {"tool_id": "event_put"}, {"server_id": "other"}):
            params = plan.bound.params.model_copy(update=changes)
            other = replace(plan, bound=replace(plan.bound, params=params))
            with pytest.raises(ValueError, match="was planned"):
                await gate.backend.run(other)
        return gate.upstream.sessions

    assert over(work) == []


def test_a_store_that_cannot_be_used_is_told_and_nothing_is_sent() -> None:
    problem = Refusal("unavailable", "Not now.")

    async def work(gate: Gate) -> Any:
        def broken() -> None:
            gate.store.problem = problem

        gate.upstream.listing = broken
        during = await gate.ask("call", GETTING)
        evidence = gate.evidence
        return during, evidence, await gate.ask("call", GETTING), gate.upstream

    during, evidence, before, upstream = over(work)
    assert during == before == problem.as_error()
    assert evidence[:2] == (True, False)
    assert (upstream.lists, upstream.calls) == (1, [])


# The servers of the spec


def test_the_servers_of_the_spec_are_registered_once() -> None:
    async def work(gate: Gate) -> Any:
        answers = await asyncio.gather(*(gate.ask("call", GETTING) for _ in range(4)))
        writes = gate.store.writes
        gate.backend = GatewayBackend(gate.registry, "gate", Bindings(__package__), cast("Any", gate.store), environ={})
        found = await gate.ask("server", CALENDAR)
        recorded = gate.store.now(lambda connection: audit.lines(connection, NOW, limit=10))
        return [answer["status"] for answer in answers], writes, gate.store.writes, found["server"], recorded

    statuses, first, second, server, (row,) = over(work, manifest().data)
    assert statuses == ["ok"] * 4
    assert (first, second) == (1, 1)
    assert (server["generation"], server["registered_by"]) == (1, None)
    assert (row["kind"], row["outcome"], row["actor"]) == ("registry", "seed", "spec")
    assert row["target"] == {
        "server_id": "calendar",
        "registration_digest": manifest().digest,
        "registration_generation": 1,
    }


def test_registering_what_the_spec_has_is_tried_again_after_a_failure() -> None:
    async def work(gate: Gate) -> Any:
        gate.store.problem = Refusal("unavailable", "Not now.")
        first = await gate.ask("call", GETTING)
        gate.store.problem = None
        return first["kind"], (await gate.ask("call", GETTING))["status"]

    assert over(work, manifest().data) == ("unavailable", "ok")


def test_a_server_over_http_needs_nothing_else() -> None:
    async def work(gate: Gate) -> Any:
        answer = await gate.ask("call", {**GETTING, "server_id": "web"})
        assert gate.plan is not None
        return answer["status"], gate.plan.outright

    assert over(work, manifest(server_id="web", **HTTP).data) == ("ok", ())


def test_tools_of_one_server_are_called_side_by_side() -> None:
    async def work(gate: Gate) -> Any:
        gate.add(server_id="other", tools=[tool_data("event_get", "cal.get")])
        both = await asyncio.gather(*(gate.ask("call", {**GETTING, "server_id": s}) for s in ("calendar", "other")))
        return [answer["status"] for answer in both], len(gate.upstream.sessions)

    assert over(work) == (["ok", "ok"], 2)


def test_closing_ends_the_sessions() -> None:
    async def work(gate: Gate) -> Any:
        return gate.upstream

    assert over(work).closed


# With a program, and a store on the disk


PROGRAM = Path(__file__).with_name("upstream_program.py")


def real(
    work: Callable[[Gate], Awaitable[Any]], folder: Path, behaviour: str = "well", **changes: Any
) -> tuple[Any, list[str]]:
    """What `work` gives with a gateway of one server, a program that behaves like this, and what that has heard."""
    record = folder / "record"

    async def inner() -> Any:
        args = ["-I", str(PROGRAM), str(record), behaviour]
        stdio = {"command": sys.executable, "args": args, "env": {"TOKEN": "CAL_TOKEN"}, **changes.pop("stdio", {})}
        made = registry(manifest(stdio=stdio, **changes).data)
        store, memory = StateStore(made, ["governance_tables", "registration_tables"], state=folder / "state"), Heap()
        backend = GatewayBackend(made, "gate", Bindings(__package__), store, environ={"CAL_TOKEN": "hidden"})
        try:
            return await work(Gate(backend, made, memory, Upstream()))
        finally:
            await backend.close()
            await store.close()
            memory.close()

    result = finish(inner())
    return result, record.read_text().splitlines() if record.exists() else []


async def put(gate: Gate) -> Any:
    return await gate.ask("call", PUTTING), gate.evidence


def test_a_program_is_started_asked_and_called(tmp_path: Path) -> None:
    (answer, evidence), record = real(put, tmp_path)
    assert answer["status"] == "ok"
    # The text says the same as the structured content.
    assert answer["result"] == {"content": [], "structured_content": {"secret": "hidden", **FITTING}}
    assert record == ["start", "list", "call e1"]
    assert evidence == (True, True, answer["response_bytes"], "ok")


def test_a_refresh_of_a_program_calls_nothing(tmp_path: Path) -> None:
    async def work(gate: Gate) -> Any:
        return await gate.ask("tools", {**CALENDAR, "refresh": True})

    answer, record = real(work, tmp_path)
    assert [tool["live"]["schema_matches_manifest"] for tool in answer["tools"]] == [True, True]
    assert answer["response_bytes"] > 200
    assert record == ["start", "list"]


@pytest.mark.parametrize(
    ("behaviour", "changes", "error_type", "heard"),
    [
        ("die", {}, "McpConnectionLost", ["start", "list", "call e1"]),
        ("flood", {}, "McpStdioFrameTooLarge", ["start", "list", "call e1"]),
        ("hang-in-list", {"timeout_s": 1}, "McpTimeout", ["start", "list"]),
    ],
)
def test_a_program_that_misbehaves_is_called_once_at_most(
    behaviour: str, changes: dict[str, Any], error_type: str, heard: list[str], tmp_path: Path
) -> None:
    (answer, evidence), record = real(put, tmp_path, behaviour, **changes)
    assert (answer["status"], answer["error"]["error_type"]) == ("transport_error", error_type)
    assert answer["call_started"] is evidence[1] is ("call e1" in heard)
    assert evidence[0] is True
    assert record == heard


def test_a_call_that_there_is_no_time_for_is_not_sent(tmp_path: Path) -> None:
    async def work(gate: Gate) -> Any:
        loop = asyncio.get_running_loop()
        now = loop.time

        def late(_connection: Any) -> bool:
            loop.time = lambda: now() + 1000  # type: ignore[method-assign]
            return True

        return await gate.run(replace(await gate.planned("call", PUTTING), guard=late)), gate.evidence

    (answer, evidence), record = real(work, tmp_path)
    assert (answer["status"], answer["error"]["error_type"]) == ("transport_error", "McpDeadlineExceeded")
    assert (answer["call_started"], evidence[:2]) == (False, (True, False))
    assert answer["response_bytes"] > 200
    assert record == ["start", "list"]


def test_a_program_that_is_not_there_undoes_everything(tmp_path: Path) -> None:
    (answer, evidence), record = real(put, tmp_path, stdio={"command": "no-such-calendar"})
    assert (answer["kind"], answer["detail"]["code"]) == ("unavailable", "mcp_provider_not_started")
    assert (evidence, record) == ((False, False, None, None), [])


def test_a_kept_session_is_used_again_and_checked_again(tmp_path: Path) -> None:
    async def work(gate: Gate) -> Any:
        answers = [await gate.ask("call", GETTING) for _ in range(3)]
        return [answer["status"] for answer in answers]

    statuses, record = real(work, tmp_path / "well", warm=True)
    assert statuses == ["ok"] * 3
    assert record == ["start", *["list", "call e1"] * 3]
    statuses, record = real(work, tmp_path / "drift", "drift", warm=True)
    assert statuses == ["ok", "invalid_response", "ok"]
    assert record == ["start", "list", "call e1", "list", "start", "list", "call e1"]


@pytest.fixture(autouse=True)
def _everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
