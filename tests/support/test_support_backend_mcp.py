"""Verbs that are tools of one MCP server: the arguments that go there, and how what comes back is read."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from verbc.support.backend import Plan
from verbc.support.backend_mcp import McpBackend
from verbc.support.binding import Bindings
from verbc.support.refusal import Refusal
from verbc.support.registry import Registry, from_data
from verbc.support.upstream_errors import InvalidListError, NotStartedError, UpstreamError

from .gateways import EVENT, GET, PUT, Upstream, a_call, manifest, offered, tool_data
from .programs import finish
from .samples import DATA, verb_data

CORRELATION = "corr_0123456789abcdef"
DOUBT = " It is not known whether the tool did it."
SHAPE = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


def verb(name: str, tool_id: str, properties: dict[str, Any], **changes: Any) -> dict[str, Any]:
    run = {"backend": "cal", "target": [tool_id], "reply": {"form": "json"}, "refusals": {}}
    return verb_data(
        name, {"properties": properties}, run={**run, "module": "gateway_verbs", "function": name}, **changes
    )


EVENT_PARAM = {"event": {"type": "string"}}
VERBS = [
    verb("event", "event_get", EVENT_PARAM),
    verb("change", "event_put", EVENT_PARAM, effect="write"),
    verb("shaped", "event_get", EVENT_PARAM, result=SHAPE),
    verb("everything", "event_all", {}),
]
ALL = tool_data("event_all", "cal.all", input_schema={})


def registry(*, warm: bool = False, **changes: Any) -> Registry:
    of = manifest(**{"tools": [GET, PUT, ALL], **changes})
    entry = {"kind": "mcp", "manifest": of.data, "env": ["CAL_*"], "warm": warm}
    return from_data({**copy.deepcopy(DATA), "backends": {"cal": entry}, "verbs": VERBS})


@dataclass
class Calendar:
    """A backend over a scripted upstream."""

    backend: McpBackend
    registry: Registry
    upstream: Upstream
    plan: Plan | None = None

    async def ask(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """What the caller gets: the result, or the refusal as data."""
        verb = self.registry.verb(name)
        assert verb is not None
        given = {"event": "e1"} if arguments is None and verb.params["properties"] else arguments or {}
        try:
            self.plan = await self.backend.plan(a_call(verb, given, self.registry))
            if (refusal := self.plan.obstacle()) is not None:
                raise refusal
            return await self.backend.run(self.plan)
        except Refusal as refusal:
            return refusal.as_error()


def over(
    work: Callable[[Calendar], Awaitable[Any]],
    changes: dict[str, Any] | None = None,
    *,
    warm: bool = False,
    **upstream: Any,
) -> Any:
    async def inner() -> Any:
        made = registry(warm=warm, **(changes or {}))
        scripted = Upstream(**{"tools": [offered(), offered("cal.put"), offered("cal.all")], **upstream})
        backend = McpBackend(made, "cal", Bindings(__package__), environ={}, upstreams=scripted)  # type: ignore[arg-type]
        try:
            return await work(Calendar(backend, made, scripted))
        finally:
            await backend.close()
            assert scripted.closed

    return finish(inner())


def asked(name: str = "event", arguments: dict[str, Any] | None = None, **upstream: Any) -> Any:
    return over(lambda calendar: calendar.ask(name, arguments), **upstream)


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def test_a_verb_calls_its_tool_with_the_arguments_that_its_function_gives() -> None:
    async def work(calendar: Calendar) -> Any:
        answers = [await calendar.ask("event"), await calendar.ask("change"), await calendar.ask("everything")]
        assert calendar.plan is not None
        return answers, calendar.upstream, calendar.plan

    answers, upstream, plan = over(work)
    assert answers == ["done"] * 3
    assert upstream.calls == [("cal.get", {"event_id": "e1"}), ("cal.put", {"event_id": "e1"}), ("cal.all", {})]
    assert (upstream.lists, upstream.sessions[0]["generation"]) == (3, 0)
    assert plan.target["server_id"] == "calendar"
    assert plan.target["tool_id"] == "event_all"
    assert (plan.rights, plan.outright, plan.guard) == ((), (), None)
    assert (plan.evidence.contacted, plan.evidence.sent, plan.evidence.status) == (True, True, "ok")


@pytest.mark.parametrize(
    ("result", "value"),
    [
        ({"content": [text("one")]}, "one"),
        ({"content": [text("one")], "structuredContent": {"n": 1}}, {"n": 1}),
        ({"content": [text('{"n": 1}')], "structuredContent": {"n": 1}}, {"n": 1}),
        ({"content": [text('{"n": 1}')]}, '{"n": 1}'),
        ({"content": []}, {"content": []}),
        ({"content": [text("a"), text("b")]}, {"content": [text("a"), text("b")]}),
        (
            {"content": [{"type": "resource_link", "uri": "a:b"}]},
            {"content": [{"type": "resource_link", "uri": "a:b"}]},
        ),
    ],
)
def test_without_a_declared_result_it_is_the_simplest_form_of_what_came(result: Any, value: Any) -> None:
    assert asked(result=result) == value


@pytest.mark.parametrize(
    "result",
    [
        {"content": [], "structuredContent": {"n": 1, "more": 2}},
        {"content": [text('{"n": 1, "more": 2}')]},
        {"content": [text("ignored")], "structuredContent": {"n": 1}},
    ],
)
def test_a_declared_result_is_read_from_data_and_cut_to_what_it_names(result: Any) -> None:
    assert asked("shaped", result=result) == {"n": 1}


@pytest.mark.parametrize("content", [[], [text("no data")], [text("1"), text("2")]])
def test_a_declared_result_that_is_not_there_is_told_with_what_was(content: list[Any]) -> None:
    assert asked("shaped", result={"content": content}) == {
        "kind": "internal",
        "message": "`event_get` of `cal` returned no data.",
        "detail": {"content": content},
    }


def test_an_error_of_the_tool_is_a_conflict_with_its_own_words_as_data() -> None:
    result = {"content": [text("gone\u202e")], "structuredContent": {"n": 1}, "isError": True}
    assert asked("change", result=result) == {
        "kind": "conflict",
        "message": "`event_put` of `cal` ended in an error.",
        "detail": {"content": [text("gone\\u202e")], "structured_content": {"n": 1}},
    }


@pytest.mark.parametrize(
    ("upstream", "code", "error_type", "message"),
    [
        (
            {"connecting": UpstreamError("McpConnectionLost")},
            "mcp_provider_error",
            "McpConnectionLost",
            "`cal` cannot be reached; nothing was called.",
        ),
        (
            {"answering": UpstreamError("McpTimeout")},
            "mcp_provider_error",
            "McpTimeout",
            "The result of `event_put` of `cal` did not come." + DOUBT,
        ),
        (
            {"tools": InvalidListError()},
            "mcp_invalid_response",
            "LiveToolValidationError",
            "`cal` does not offer `event_put` as it is registered; nothing was called.",
        ),
        (
            {"tools": [offered("cal.put", inputSchema={**EVENT, "title": "T"})]},
            "mcp_invalid_response",
            "LiveToolValidationError",
            "`cal` does not offer `event_put` as it is registered; nothing was called.",
        ),
        (
            {"result": {"content": [text("x" * (1 << 20))]}},
            "mcp_response_too_large",
            "response_too_large",
            "The result of `event_put` of `cal` has more than 1048576 bytes." + DOUBT,
        ),
        (
            {"starting": NotStartedError("McpCommandNotFound")},
            "mcp_provider_not_started",
            "McpCommandNotFound",
            "`calendar` cannot be reached; nothing was sent to it.",
        ),
    ],
)
def test_what_is_no_result_is_unavailable_and_says_what_is_known(
    upstream: dict[str, Any], code: str, error_type: str, message: str
) -> None:
    detail = {"code": code, "error_type": error_type, "correlation_id": CORRELATION}
    assert asked("change", **upstream) == {"kind": "unavailable", "message": message, "detail": detail}


def test_of_a_tool_that_only_reads_nothing_is_in_doubt() -> None:
    assert asked(answering=UpstreamError("McpTimeout"))["message"] == "The result of `event_get` of `cal` did not come."


def test_nothing_is_sent_twice() -> None:
    async def work(calendar: Calendar) -> Any:
        await calendar.ask("change")
        return calendar.upstream.calls

    assert len(over(work, answering=UpstreamError("McpConnectionLost"))) == 1


@pytest.mark.parametrize(
    ("arguments", "changes", "kind"),
    [
        ({}, {}, "invalid_input"),
        ({"event": "refused"}, {}, "invalid_input"),
        ({"event": "e" * 90}, {"max_request_bytes": 100}, "invalid_input"),
        ({"event": "e1"}, {"tools": [{**GET, "input_schema": {}, "right": "write"}]}, "conflict"),
    ],
)
def test_what_cannot_be_sent_is_refused_before_any_contact(
    arguments: dict[str, Any], changes: dict[str, Any], kind: str
) -> None:
    async def work(calendar: Calendar) -> Any:
        answer = await calendar.ask("event", arguments)
        return answer["kind"], calendar.upstream.sessions

    assert over(work, changes) == (kind, [])


@pytest.mark.parametrize(
    ("warm", "name", "kept"), [(True, "event", True), (False, "event", False), (True, "change", False)]
)
def test_a_session_is_kept_where_the_backend_says_so(warm: bool, name: str, kept: bool) -> None:
    async def work(calendar: Calendar) -> Any:
        await calendar.ask(name)
        return calendar.upstream.kept

    assert over(work, warm=warm) == [kept]


def test_a_secret_that_is_not_there_is_named_and_nothing_is_started() -> None:
    async def work(calendar: Calendar) -> Any:
        answer = await calendar.ask("event")
        assert calendar.plan is not None
        return answer, calendar.plan.evidence.contacted, calendar.upstream.sessions

    stdio = {"command": "calendar", "env": {"TOKEN": "CAL_TOKEN"}}
    answer, contacted, sessions = over(work, {"stdio": stdio})
    assert answer["kind"] == "unavailable"
    assert "CAL_TOKEN" in json.dumps(answer)
    assert (contacted, sessions) == (False, [])


def test_a_tool_that_the_manifest_does_not_have_is_a_fault() -> None:
    async def work(calendar: Calendar) -> Any:
        with pytest.raises(KeyError):
            await calendar.ask("everything")
        return calendar.upstream.sessions

    assert over(work, {"tools": [GET]}) == []


PROGRAM = Path(__file__).with_name("upstream_program.py")


@pytest.mark.parametrize(("warm", "starts"), [(False, 2), (True, 1)])
def test_a_program_is_called_through_the_same_checks(warm: bool, starts: int, tmp_path: Path) -> None:
    record = tmp_path / "record"
    args = ["-I", str(PROGRAM), str(record), "well"]

    async def inner() -> Any:
        made = registry(warm=warm, tools=[GET], stdio={"command": sys.executable, "args": args})
        backend = McpBackend(made, "cal", Bindings(__package__), environ={})
        try:
            calendar = Calendar(backend, made, Upstream())
            return [await calendar.ask("event"), await calendar.ask("event", {"event": "e2"})]
        finally:
            await backend.close()

    assert finish(inner()) == [{"secret": "", "event_id": "e1"}, {"secret": "", "event_id": "e2"}]
    heard = record.read_text().splitlines()
    assert heard.count("start") == starts
    assert [line for line in heard if line != "start"] == ["list", "call e1", "list", "call e2"]
