"""Upstreams that are programs: what they are told and given, and that none of them can do more harm than not to answer."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from verbc.support.upstream_errors import NotStartedError, UpstreamError
from verbc.support.upstream_process import Program, end, start
from verbc.support.upstream_request import list_cost
from verbc.support.upstream_stdio import StdioChannel

from .programs import Watch, assert_reaped, finish, move_clock, note_starts
from .upstream_programs import COMMAND, ECHO
from .upstream_samples import Visits, far, program

INITIALIZE = "initialize"
LIST = "tools/list"
CALL = "tools/call"
LIMIT = 2000  # bytes
DONE: dict[str, Any] = {"content": []}


def failing(script: dict[str, Any], **fields: Any) -> tuple[UpstreamError, Visits]:
    """How a call ends, and what was told on the way."""

    async def work() -> tuple[UpstreamError, Visits]:
        async with Visits() as visits:
            with pytest.raises(UpstreamError) as error:
                await visits.call(program(script, **fields))
            return error.value, visits

    return finish(work())


def test_a_tool_is_listed_and_called() -> None:
    async def work() -> None:
        async with Visits() as visits, visits.session(program()) as session:
            listed = await visits.listed(session, program())
            assert listed.tools == [ECHO]
            received = await visits.called(session, {"text": "ünï", "n": [1, 2.5, None]})
            seen = received.result["structuredContent"]
            assert seen["arguments"] == {"text": "ünï", "n": [1, 2.5, None]}
            assert seen["heard"] == [INITIALIZE, "notifications/initialized", LIST, CALL]
            assert len(json.dumps(received.result)) < received.response_bytes + 400
            assert received.response_bytes > len(json.dumps(received.result, separators=(",", ":"))) - 20
            assert (visits.contacted, visits.sent) == (1, 1)

    finish(work())


def test_a_program_has_its_variables_and_a_path_and_leads_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER", "not for you")
    secret = secrets.token_hex()

    async def work() -> dict[str, Any]:
        async with Visits() as visits:
            manifest = program(stdio={"env": {"TOKEN": "HOST_TOKEN"}})
            return await visits.seen(manifest, environ={"HOST_TOKEN": secret, "OTHER": "not for you"})

    seen = finish(work())
    environment = {name: value for name, value in seen["environment"].items() if name != "LC_CTYPE"}
    assert environment == {"TOKEN": secret, "PATH": f"/usr/local/bin:/usr/bin:/bin:{Path(sys.executable).parent}"}
    assert seen["leads"] is True


def test_a_path_of_its_own_is_where_the_program_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "mine").symlink_to(sys.executable)

    async def work() -> None:
        async with Visits() as visits:
            manifest = program(stdio={"command": "mine", "env": {"PATH": "HOST_PATH"}})
            seen = await visits.seen(manifest, environ={"HOST_PATH": str(tmp_path)})
            assert seen["environment"]["PATH"] == str(tmp_path)
            with pytest.raises(NotStartedError) as error:
                await visits.seen(program(stdio={"command": "mine"}))
            assert error.value.error_type == "McpCommandNotFound"
            assert visits.contacted == 1

    finish(work())


def test_a_folder_is_below_that_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    (here / "below").mkdir(parents=True)
    (here / "away").symlink_to(tmp_path)
    monkeypatch.chdir(here)

    async def work() -> None:
        async with Visits() as visits:
            assert (await visits.seen(program(stdio={"cwd": "below"})))["cwd"] == str((here / "below").resolve())
            for folder in ("away", "missing"):
                with pytest.raises(NotStartedError) as error:
                    await visits.seen(program(stdio={"cwd": folder}))
                assert error.value.error_type == "McpWorkingFolder"
            assert visits.contacted == 1

    finish(work())


def test_a_program_that_the_system_cannot_start_is_not_started(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("no program")
    broken.chmod(0o755)
    error, _ = failing({}, stdio={"command": str(broken), "args": []})
    assert isinstance(error, NotStartedError)
    assert error.error_type == "McpStartFailed"


@pytest.mark.parametrize("revision", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
def test_a_revision_that_begins_with_a_handshake_is_spoken(revision: str) -> None:
    async def work() -> None:
        async with Visits() as visits:
            await visits.call(program({"revision": revision}))

    finish(work())


@pytest.mark.parametrize("revision", ["2026-07-28", "2024-10-07", "", None, 1])
def test_another_revision_is_not(revision: Any) -> None:
    error, visits = failing({"revision": revision})
    assert error.error_type == "McpProtocolVersion"
    assert (visits.contacted, visits.sent) == (1, 0)


REPLY = {"jsonrpc": "2.0", "id": 3, "result": {"content": []}}

MISBEHAVIOR: list[tuple[list[dict[str, Any]], str]] = [
    ([{"stop": 0}], "McpConnectionLost"),
    ([{"text": '{"jsonrpc":"2.0","id":3,"res'}, {"stop": 1}], "McpConnectionLost"),
    ([{"shut": 1}, {"hang": True}], "McpConnectionLost"),
    ([{"text": "Server is running\n"}], "McpProtocolError"),
    ([{"text": "\udcff\udcfe\n"}], "McpProtocolError"),
    ([{"text": "[]\n"}], "McpProtocolError"),
    ([{"text": "null\n"}], "McpProtocolError"),
    ([{"text": '{"jsonrpc":"2.0","id":3,"id":3,"result":{"content":[]}}\n'}], "McpProtocolError"),
    ([{"say": {**REPLY, "jsonrpc": "1.0"}}], "McpProtocolError"),
    ([{"say": {**REPLY, "id": 4}}], "McpProtocolError"),
    ([{"say": {**REPLY, "id": "3"}}], "McpProtocolError"),
    ([{"say": {**REPLY, "id": None}}], "McpProtocolError"),
    ([{"say": {**REPLY, "id": True}}], "McpProtocolError"),
    ([{"say": {**REPLY, "id": 2}}], "McpProtocolError"),
    ([{"say": {**REPLY, "error": {"code": 1, "message": "x"}}}], "McpProtocolError"),
    ([{"say": {"jsonrpc": "2.0", "id": 3}}], "McpProtocolError"),
    ([{"say": {"jsonrpc": "2.0", "method": 5}}], "McpProtocolError"),
    ([{"reply": []}], "McpProtocolError"),
    ([{"reply": "text"}], "McpProtocolError"),
    ([{"reply": {}}], "McpProtocolError"),
    ([{"reply": {"content": {}}}], "McpProtocolError"),
    ([{"reply": {"content": [], "isError": "yes"}}], "McpProtocolError"),
    ([{"reply": {"content": [], "structuredContent": [1]}}], "McpProtocolError"),
    ([{"text": '{"jsonrpc":"2.0","id":3,"result":' + '{"a":' * 200 + "1" + "}" * 201 + "\n"}], "McpProtocolError"),
    ([{"error": {"code": -32603, "message": "a secret"}}], "McpErrorReply"),
    ([{"flood": {"descriptor": 1, "piece": "x"}}], "McpStdioFrameTooLarge"),
    ([{"flood": {"descriptor": 1, "piece": "\n"}}], "McpStdioStdoutTooLarge"),
    ([{"flood": {"descriptor": 1, "piece": '{"jsonrpc":"2.0","method":"x"}\n'}}], "McpStdioStdoutTooLarge"),
    ([{"flood": {"descriptor": 2, "piece": "x\n"}}], "McpStdioStderrTooLarge"),
    ([{"text": "x" * 6200 + "\n"}, {"hang": True}], "McpStdioFrameTooLarge"),
    ([{"reply": {"content": [], "_meta": {"x": "y" * 6200}}}], "McpStdioFrameTooLarge"),
]


@pytest.mark.parametrize(("steps", "error_type"), MISBEHAVIOR)
def test_what_is_no_answer_to_a_call_is_told_by_its_name_alone(steps: list[dict[str, Any]], error_type: str) -> None:
    error, visits = failing({CALL: steps}, max_response_bytes=LIMIT)
    assert type(error) is UpstreamError
    assert str(error) == error.error_type == error_type
    assert (visits.contacted, visits.sent) == (1, 1)


@pytest.mark.parametrize("method", [INITIALIZE, LIST])
@pytest.mark.parametrize(("steps", "error_type"), [MISBEHAVIOR[0], MISBEHAVIOR[3], MISBEHAVIOR[9], MISBEHAVIOR[25]])
def test_before_a_call_it_is_the_same_and_nothing_was_sent(
    method: str, steps: list[dict[str, Any]], error_type: str
) -> None:
    error, visits = failing({method: steps}, max_response_bytes=LIMIT)
    assert error.error_type == error_type
    assert (visits.contacted, visits.sent) == (1, 0)


def test_what_it_says_on_its_way_does_not_matter() -> None:
    chatter = [
        {"text": "\n \n\r\n"},
        {"say": {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}},
        {"noise": LIMIT},
        {"usual": True},
    ]

    async def work() -> None:
        async with Visits() as visits:
            script = dict.fromkeys((INITIALIZE, LIST, CALL), chatter)
            assert (await visits.seen(program(script, max_response_bytes=4 * LIMIT)))["arguments"] == {}

    finish(work())


def test_a_last_word_counts_also_when_the_program_ends_with_it() -> None:
    async def work() -> None:
        async with Visits() as visits:
            received = await visits.call(program({CALL: [{"reply": {"content": []}}, {"stop": 3}]}))
            assert received.result == {"content": []}

    finish(work())


def test_requests_of_the_upstream_are_answered_and_granted_nothing() -> None:
    asked = [
        {"say": {"jsonrpc": "2.0", "id": "a", "method": "ping"}},
        {"say": {"jsonrpc": "2.0", "id": 3, "method": "sampling/createMessage", "params": {"messages": []}}},
        {"say": {"jsonrpc": "2.0", "id": 0, "method": "roots/list"}},
        {"say": {"jsonrpc": "2.0", "id": 9, "method": "elicitation/create", "params": {}}},
        {"usual": True},
    ]

    async def work() -> list[Any]:
        async with Visits() as visits, visits.session(program({LIST: asked})) as session:
            await visits.listed(session, program())
            received = await visits.called(session)
            answers: list[Any] = received.result["structuredContent"]["answers"]
            return answers

    answers = finish(work())
    assert answers[0] == {"jsonrpc": "2.0", "id": "a", "result": {}}
    assert [(answer["id"], answer["error"]["code"]) for answer in answers[1:]] == [
        (3, -32601),
        (0, -32601),
        (9, -32601),
    ]


def late(script: dict[str, Any], *, sent: int, error_type: str = "McpTimeout") -> None:
    """Let time run out once the upstream has come to its last step."""

    async def work() -> None:
        async with Watch() as watch, Visits() as visits:
            calling = asyncio.create_task(visits.call(program({**script, "port": watch.port})))
            life = await watch.life()
            move_clock(2_000_000)
            with pytest.raises(UpstreamError) as error:
                await calling
            assert error.value.error_type == error_type
            assert visits.sent == sent
            await life.end()
            await visits.upstreams.close()
            assert_reaped(life.pid)

    finish(work())


def test_time_runs_out_while_the_upstream_starts() -> None:
    late({INITIALIZE: [{"hang": True}]}, sent=0)


def test_nothing_begins_after_the_deadline() -> None:
    async def work() -> None:
        async with Visits() as visits:
            with pytest.raises(NotStartedError) as error:
                await visits.call(program(), deadline=asyncio.get_running_loop().time())
            assert error.value.error_type == "McpDeadlineExceeded"
            assert visits.contacted == 0
            async with visits.session(program()) as session:
                with pytest.raises(UpstreamError) as after:
                    await session.call_tool("echo", {}, deadline=0.0, sent=lambda: pytest.fail("sent"))
                assert after.value.error_type == "McpDeadlineExceeded"

    finish(work())


def test_a_call_that_takes_too_long_is_called_off_and_its_program_ended() -> None:
    async def work() -> None:
        async with Watch() as watch, Visits() as visits:
            manifest = program({CALL: [{"noise": 1024}], "port": watch.port})
            async with visits.session(manifest) as session:
                await visits.listed(session, manifest)

                def sent() -> None:
                    move_clock(2_000_000)

                with pytest.raises(UpstreamError) as error:
                    await session.call_tool("echo", {}, deadline=far(), sent=sent)
                assert error.value.error_type == "McpTimeout"
                assert not session.usable
            life = await watch.life()
            await life.end()
            await visits.upstreams.close()
            assert_reaped(life.pid)

    finish(work())


@pytest.mark.parametrize("end", [[], [{"hang": True}]])
def test_a_program_that_takes_no_notice_of_its_end_is_killed_with_its_group(end: list[Any]) -> None:
    async def work() -> None:
        async with Watch() as watch, Visits() as visits:
            await visits.call(program({"start": [{"stubborn": True}] if end else [], "end": end, "port": watch.port}))
            life = await watch.life()
            await visits.upstreams.close()
            assert_reaped(life.pid)
            await life.end()

    finish(work())


@pytest.mark.parametrize("stubborn", [[], [{"stubborn": True}]])
def test_when_a_program_ends_by_itself_its_group_ends_with_it(stubborn: list[Any]) -> None:
    async def work() -> None:
        async with Watch() as watch, Visits() as visits:
            await visits.call(program({"start": [*stubborn, {"offspring": True}], "port": watch.port}))
            life = await watch.life()
            await life.end()
            await visits.upstreams.close()
            assert_reaped(life.pid)

    finish(work())


def test_when_a_kept_program_dies_its_group_is_not_kept() -> None:
    async def work() -> None:
        async with Watch() as watch, Visits() as visits:
            script = {"start": [{"offspring": True}], "port": watch.port}
            await visits.call(program(script), warm=True)
            life = await watch.life()
            os.kill(life.pid, signal.SIGKILL)
            await life.end()

    finish(work())


def test_without_a_hold_on_a_program_its_group_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)

    async def work() -> None:
        async with Watch() as watch, Visits() as visits:
            await visits.call(program({"start": [{"offspring": True}], "port": watch.port}))
            await (await watch.life()).end()

    finish(work())


def test_nothing_is_signalled_by_a_number_that_is_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    signalled: list[int] = []

    async def work() -> None:
        channel = StdioChannel(LIMIT)
        await start(Program(sys.executable, ("python", "-c", ""), {}, None), channel)
        await end(channel)
        monkeypatch.setattr(os, "killpg", lambda group, _number: signalled.append(group))
        channel.signal_group(signal.SIGKILL)

    finish(work())
    assert signalled == []


@pytest.mark.parametrize(("chatter", "error_type"), [(3, None), (4, "McpStdioStdoutTooLarge")])
def test_all_that_comes_in_a_call_has_one_bound(chatter: int, error_type: str | None) -> None:
    notice = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 1900}}
    script = {LIST: [{"say": notice}, {"usual": True}], CALL: [{"say": notice}] * (chatter - 1) + [{"reply": DONE}]}
    if error_type is not None:
        assert failing(script, max_response_bytes=LIMIT)[0].error_type == error_type
        return

    async def work() -> None:
        async with Visits() as visits:
            manifest = program(script, max_response_bytes=LIMIT)
            async with visits.session(manifest) as session:
                listed = await visits.listed(session, manifest)
                received = await visits.called(session)
            come = listed.response_bytes + received.response_bytes
            assert 3 * 1900 < come < list_cost(manifest)

    finish(work())


def test_what_came_from_a_program_that_was_lost_counts_as_well() -> None:
    def chatter(size: int) -> dict[str, Any]:
        return {"say": {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * size}}}

    lists = [[chatter(2000), {"usual": True}], [chatter(4000), {"stop": 0}]]
    script = {LIST: lists, CALL: [chatter(2000), {"reply": DONE}]}

    async def work() -> None:
        async with Visits() as visits:
            manifest = program(script, max_response_bytes=LIMIT)
            await visits.call(manifest, warm=True)
            with pytest.raises(UpstreamError) as error:
                await visits.call(manifest, warm=True)
            assert error.value.error_type == "McpStdioStdoutTooLarge"

    finish(work())


@pytest.mark.parametrize("word", ["a\0b", "\ud800"])
def test_a_word_that_no_program_can_be_given_is_not_started(word: str) -> None:
    async def work() -> None:
        with pytest.raises(NotStartedError) as error:
            await start(Program(sys.executable, ("python", word), {}, None), StdioChannel(LIMIT))
        assert error.value.error_type == "McpStartFailed"

    finish(work())


def test_words_are_given_in_utf_8_whatever_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = os.fsencode
    monkeypatch.setattr(os, "fsencode", lambda name: name.encode("ascii") if isinstance(name, str) else plain(name))
    script = {CALL: [{"reply": {"content": [{"type": "text", "text": "ünï"}]}}]}
    block = {"args": [*COMMAND[1:], json.dumps(script, ensure_ascii=False)]}

    async def work() -> None:
        async with Visits() as visits:
            received = await visits.call(program(stdio=block))
            assert received.result["content"] == [{"type": "text", "text": "ünï"}]

    finish(work())


def test_a_server_that_has_to_leave_leaves_no_program_behind() -> None:
    async def work() -> None:
        async with Watch() as watch, Visits() as visits:
            script = {"start": [{"stubborn": True}], "end": [{"hang": True}], "port": watch.port}
            await visits.call(program(script))
            life = await watch.life()
            await asyncio.sleep(0)  # its end has begun
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            move_clock(-1_000_000)  # nobody waits for a grace
            await life.end()

    finish(work())


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 20])
def test_a_cancellation_leaves_no_process(turns: int) -> None:
    started: list[int] = []

    async def work() -> None:
        note_starts(started)
        async with Visits() as visits:
            calling = asyncio.create_task(visits.call(program()))
            for _ in range(turns):
                await asyncio.sleep(0)
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling

    finish(work())
    assert len(started) == (1 if turns else 0)
    for pid in started:
        assert_reaped(pid)


def test_a_server_of_the_sdk_is_listed_and_called() -> None:
    script = (
        "from mcp.server import MCPServer\n"
        "server = MCPServer('sdk')\n"
        "@server.tool()\n"
        "def echo(text: str) -> str:\n"
        "    return text\n"
        "server.run(transport='stdio')\n"
    )

    async def work() -> None:
        async with Visits() as visits:
            manifest = program(stdio={"args": ["-c", script]})
            for text in ("hello", "x" * 200_000):
                received = await visits.call(manifest, {"text": text}, warm=True)
                assert received.result["content"] == [{"type": "text", "text": text}]
            assert visits.sent == 2

    finish(work())


def test_when_the_server_is_killed_its_upstreams_end(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(
        "import asyncio, os, signal, sys\n"
        "sys.path[:0] = sys.argv[2:]\n"
        "from tests.support.upstream_samples import Visits, far, program\n"
        "async def main():\n"
        "    visits, manifest = Visits(), program({'port': int(sys.argv[1])})\n"
        "    async with visits.session(manifest) as session:\n"
        "        await visits.listed(session, manifest)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )

    async def work() -> None:
        async with Watch() as watch:
            server = await asyncio.to_thread(
                subprocess.run, [sys.executable, str(script), str(watch.port), *sys.path], check=False
            )
            assert server.returncode == -9
            await (await watch.life()).end()

    finish(work())
