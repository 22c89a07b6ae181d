"""Sessions that are kept, and for whom; how many there are at one time; and that all of them end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from verbc.support import upstreams
from verbc.support.refusal import Refusal
from verbc.support.upstream_errors import NotStartedError, UpstreamError
from verbc.support.upstreams import IDLE_SECONDS

from .programs import Life, Watch, assert_reaped, finish, move_clock
from .upstream_samples import Visits, program

CALL = "tools/call"


async def pids(visits: Visits, *options: dict[str, Any]) -> list[int]:
    """Which processes warm calls one after the other are answered by."""
    return [(await visits.seen(**{"manifest": program(), "warm": True, **option}))["pid"] for option in options]


def test_a_warm_session_is_kept_and_a_cold_one_is_not() -> None:
    async def work() -> None:
        async with Visits() as visits:
            first, second, cold, third = await pids(visits, {}, {}, {"warm": False}, {})
            assert first == second == third != cold
            assert (visits.contacted, visits.sent) == (4, 4)

    finish(work())


@pytest.mark.parametrize("other", [{"subject": "you"}, {"generation": 2}, {"manifest": program(timeout_s=9)}])
def test_a_session_is_kept_for_the_same_caller_of_the_same_registration(other: dict[str, Any]) -> None:
    async def work() -> None:
        async with Visits() as visits:
            first, second = await pids(visits, {}, other)
            assert first != second

    finish(work())


def test_a_session_is_kept_for_the_same_secrets() -> None:
    manifest = program(stdio={"env": {"TOKEN": "HOST_TOKEN"}})

    async def work() -> None:
        async with Visits() as visits:
            found = [
                await visits.seen(manifest, warm=True, environ={"HOST_TOKEN": value}) for value in ("a", "b", "a", "b")
            ]
            assert [seen["environment"]["TOKEN"] for seen in found] == ["a", "b", "a", "b"]
            assert len({seen["pid"] for seen in found}) == 2

    finish(work())


def test_callers_at_the_same_time_have_sessions_of_their_own() -> None:
    async def work() -> None:
        async with Visits() as visits:
            found = await asyncio.gather(*(visits.seen(program(concurrency=3), warm=True) for _ in range(3)))
            assert len({seen["pid"] for seen in found}) == 3

    finish(work())


def test_what_was_kept_from_before_a_change_is_ended() -> None:
    async def work() -> None:
        async with Watch() as watch, Visits() as visits:
            manifest = program({"port": watch.port})
            await visits.seen(manifest, warm=True)
            life = await watch.life()
            await visits.seen(manifest, warm=True, generation=2)
            await life.end()

    finish(work())


@pytest.mark.parametrize("steps", [[{"error": {"code": 1, "message": "x"}}], [{"reply": {}}], [{"text": "x\n"}]])
def test_a_session_in_which_something_went_wrong_is_not_kept(steps: list[Any]) -> None:
    async def work() -> None:
        async with Watch() as watch, Visits() as visits:
            with pytest.raises(UpstreamError):
                await visits.call(program({CALL: steps, "port": watch.port}), warm=True)
            await (await watch.life()).end()

    finish(work())


def test_a_session_whose_caller_had_enough_is_not_kept() -> None:
    async def work() -> None:
        async with Watch() as watch, Visits() as visits:
            manifest = program({"port": watch.port})

            async def leave() -> None:
                async with visits.session(manifest, warm=True) as session:
                    await visits.listed(session, manifest)
                    raise Refusal("conflict", "Changed.")

            with pytest.raises(Refusal):
                await leave()
            await (await watch.life()).end()

    finish(work())


def test_a_tool_that_failed_is_no_reason_to_end_a_session() -> None:
    manifest = program({CALL: [[{"reply": {"content": [], "isError": True}}], [{"usual": True}]]})

    async def work() -> None:
        async with Visits() as visits:
            assert (await visits.call(manifest, warm=True)).result["isError"] is True
            assert (await visits.seen(manifest, warm=True))["heard"][-1] == CALL
            assert (await visits.seen(manifest, warm=True))["heard"].count(CALL) == 3

    finish(work())


def test_a_program_that_ended_while_it_was_kept_is_started_again() -> None:
    async def work() -> None:
        async with Watch() as watch, Visits() as visits:
            manifest = program({CALL: [[{"usual": True}, {"stop": 0}]], "port": watch.port})
            await visits.seen(manifest, warm=True)
            await (await watch.life()).end()
            await visits.seen(manifest, warm=True)
            assert visits.sent == 2

    finish(work())


def test_one_that_ends_as_it_is_used_again_is_started_again_for_the_list_and_never_for_a_call() -> None:
    lists = [[{"usual": True}], [{"stop": 0}]]

    async def work() -> None:
        async with Visits() as visits:
            manifest = program({"tools/list": lists})
            first = await visits.seen(manifest, warm=True)
            second = await visits.seen(manifest, warm=True)
            assert first["pid"] != second["pid"]
            assert second["heard"].count(CALL) == 1
            assert visits.sent == 2
            dying = program({CALL: [[{"usual": True}], [{"stop": 0}]]})
            await visits.seen(dying, warm=True)
            with pytest.raises(UpstreamError) as error:
                await visits.seen(dying, warm=True)
            assert error.value.error_type == "McpConnectionLost"
            assert visits.sent == 4

    finish(work())


def test_a_program_that_cannot_be_started_again_was_in_use_all_the_same() -> None:
    lists = [[{"usual": True}], [{"stop": 0}]]

    async def work() -> None:
        async with Visits() as visits:
            manifest = program({"tools/list": lists})
            await visits.seen(manifest, warm=True)

            async def refused(*_: Any, **__: Any) -> Any:
                raise BlockingIOError

            asyncio.get_running_loop().subprocess_exec = refused  # type: ignore[method-assign]
            with pytest.raises(UpstreamError) as error:
                await visits.seen(manifest, warm=True)
            assert not isinstance(error.value, NotStartedError)
            assert error.value.error_type == "McpConnectionLost"

    finish(work())


def test_a_session_that_nobody_uses_is_ended() -> None:
    async def work() -> None:
        async with Watch() as watch, Visits() as visits:
            await visits.seen(program({"port": watch.port}), warm=True)
            life = await watch.life()
            move_clock(IDLE_SECONDS + 1)
            await life.end()

    finish(work())


def test_of_too_many_kept_sessions_the_one_that_waits_longest_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstreams, "MOST_KEPT", 2)

    async def work() -> None:
        async with Watch() as watch, Visits() as visits:
            manifest = program({"port": watch.port})
            lives: list[Life] = []
            for subject in ("a", "b", "a", "c"):
                before = visits.contacted
                await visits.seen(manifest, warm=True, subject=subject)
                assert visits.contacted == before + 1
                if subject != "a" or not lives:
                    lives.append(await watch.life())
            await lives[1].end()
            assert (await pids(visits, {"manifest": manifest, "subject": "a"})) == [lives[0].pid]

    finish(work())


def test_a_flood_while_it_is_kept_ends_a_session() -> None:
    flood = [{"usual": True}, {"flood": {"descriptor": 1, "piece": "\n"}}]

    async def work() -> None:
        async with Watch() as watch, Visits() as visits:
            manifest = program({CALL: [flood], "port": watch.port}, max_response_bytes=100_000)
            await visits.seen(manifest, warm=True)
            await (await watch.life()).end()
            await visits.seen(manifest, warm=True)

    finish(work())


def test_closing_ends_everything() -> None:
    async def work() -> None:
        async with Watch() as watch, Visits() as visits:
            manifest = program({"port": watch.port}, concurrency=2)
            await visits.seen(manifest, warm=True)
            kept = await watch.life()
            async with visits.session(manifest, subject="you", warm=True) as session:
                used = await watch.life()
                await visits.upstreams.close()
                assert_reaped(kept.pid)
                await visits.listed(session, manifest)
            await visits.upstreams.close()
            assert_reaped(used.pid)

    finish(work())


def test_to_one_server_there_are_so_many_at_one_time() -> None:
    async def work() -> None:
        async with Visits() as visits:
            one, other = program(concurrency=2), program(concurrency=1, server_id="other")
            async with visits.session(one), visits.session(one), visits.session(other):
                waiting = asyncio.create_task(visits.seen(one))
                await asyncio.sleep(0)
                contacted = visits.contacted
                with pytest.raises(Refusal) as busy:
                    async with visits.session(one, deadline=asyncio.get_running_loop().time()):
                        pass
                assert (busy.value.kind, visits.contacted) == ("busy", contacted)
                assert not waiting.done()
            assert (await waiting)["arguments"] == {}

    finish(work())


def test_a_place_is_free_again_whatever_became_of_its_call() -> None:
    async def work() -> None:
        async with Visits() as visits:
            broken = program({CALL: [{"stop": 0}]}, concurrency=1)
            for _ in range(3):
                with pytest.raises(UpstreamError):
                    await visits.call(broken)
            missing = program(stdio={"command": "no-such-program"}, concurrency=1)
            for _ in range(3):
                with pytest.raises(NotStartedError):
                    await visits.call(missing)

    finish(work())
