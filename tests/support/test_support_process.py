"""Child processes: bounded in time and output, killed as a group, reaped, and nothing left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from verbc.support.process import (
    ArgumentsTooLongError,
    DeadlineError,
    Finished,
    NotLaunchableError,
    OutputLimitError,
    run,
)

from .programs import FOR_EVER, STUB, Watch, assert_reaped, finish, move_clock, note_starts

ENVIRONMENT = {"PATH": os.environ["PATH"]}


async def stub(*words: str, output: int = 1_000_000, env: dict[str, str] | None = None) -> Finished:
    deadline = asyncio.get_running_loop().time() + FOR_EVER
    return await run([*STUB, *words], ENVIRONMENT if env is None else env, deadline=deadline, output=output)


def test_output_and_exit_code_are_what_the_program_gave() -> None:
    finished = finish(stub("say", "--text=out", "--stderr=err", "--exit=7"))
    assert finished == Finished(7, b"out", "err")


@pytest.mark.parametrize("value", ["$(id)", "a;b|c&d", "*", "'\"", "line\nbreak", "--machine", "", " ", "ünï — 日本"])
def test_a_value_is_one_token_whatever_it_holds(value: str) -> None:
    assert json.loads(finish(stub("echo", value)).stdout) == ["echo", value]


def test_arguments_are_utf8_in_any_locale() -> None:
    script = (
        "import asyncio, sys; from verbc.support.process import run\n"
        "async def main():\n"
        "    end = asyncio.get_running_loop().time() + 1000\n"
        "    return await run([*sys.argv[1:], 'echo', '\\u65e5'], {}, deadline=end, output=1000)\n"
        "sys.stdout.buffer.write(asyncio.run(main()).stdout)"
    )
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", script, *STUB], env=env, capture_output=True, check=True)
    assert json.loads(done.stdout)[1] == "日"


def test_a_program_has_no_input_a_session_of_its_own_and_no_files_of_the_server(tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        seen = json.loads(finish(stub("circumstances")).stdout)
    assert seen["stdin"] == ""
    assert seen["leads"] is True
    assert file.closed
    assert len(seen["descriptors"]) == 4  # three, and the one that looks


def test_a_program_gets_the_given_environment_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s")
    seen = json.loads(finish(stub("environment", env={"A": "1"})).stdout)
    assert {name: value for name, value in seen.items() if name != "LC_CTYPE"} == {"A": "1"}


def test_a_signal_shows_as_a_negative_code() -> None:
    assert finish(stub("die", "--text=last words")) == Finished(-signal.SIGKILL, b"last words", "")


def test_exit_codes_are_true_where_the_server_inherited_ignored_child_signals() -> None:
    script = (
        "import asyncio, sys; from verbc.support.process import run\n"
        "async def main():\n"
        "    end = asyncio.get_running_loop().time() + 1000\n"
        "    return await run(sys.argv[1:], {}, deadline=end, output=1000)\n"
        "print(asyncio.run(main()).code)"
    )
    command = [sys.executable, "-c", script, *STUB, "say", "--exit=7"]
    ignore = [
        sys.executable,
        "-c",
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])",
    ]
    done = subprocess.run([*ignore, *command], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("7\n", "")


@pytest.mark.parametrize("limit", [0, 1, 65536])
def test_a_flood_is_cut_off_and_its_group_killed(limit: int) -> None:
    async def work() -> None:
        async with Watch() as watch:
            with pytest.raises(OutputLimitError):
                await stub("flood", f"--port={watch.port}", output=limit)
            life = await watch.life()
            assert_reaped(life.pid)
            await life.end()

    finish(work())


def test_output_of_just_the_limit_is_whole() -> None:
    assert finish(stub("say", "--text=1234", output=4)).stdout == b"1234"
    with pytest.raises(OutputLimitError):
        finish(stub("say", "--text=12345", output=4))


def test_of_stderr_the_end_is_kept() -> None:
    finished = finish(stub("noisy"))
    assert finished.stdout == b'"done"\n'
    assert finished.stderr == "é" * 1993 + "the end"


def test_control_and_bidi_characters_of_stderr_are_escaped() -> None:
    assert finish(stub("say", "--stderr=a\x1b[31m\u202eb\n\tc\r")).stderr == "a\\u001b[31m\\u202eb\n\tc\\u000d"


def test_at_the_deadline_the_whole_group_is_killed_even_if_it_ignores_signals() -> None:
    async def work() -> None:
        async with Watch() as watch:
            running = asyncio.create_task(stub("stubborn", f"--port={watch.port}"))
            life = await watch.life()
            move_clock(2 * FOR_EVER)
            with pytest.raises(DeadlineError):
                await running
            assert_reaped(life.pid)
            await life.end()

    finish(work())


def test_nothing_starts_after_the_deadline(tmp_path: Path) -> None:
    async def work() -> None:
        with pytest.raises(DeadlineError):
            await run(["touch", str(tmp_path / "made")], ENVIRONMENT, deadline=0.0, output=1)

    finish(work())
    assert not (tmp_path / "made").exists()


def test_a_cancellation_leaves_when_the_group_is_killed_and_reaped() -> None:
    async def work() -> None:
        async with Watch() as watch:
            running = asyncio.create_task(stub("stubborn", f"--port={watch.port}"))
            life = await watch.life()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert_reaped(life.pid)
            await life.end()

    finish(work())


def test_a_scope_that_cancels_again_and_again_still_sees_the_program_reaped() -> None:
    async def work() -> None:
        async with Watch() as watch:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(stub, "stubborn", f"--port={watch.port}")
                    life = await watch.life()
                    scope.cancel()
            assert scope.cancelled_caught
            assert_reaped(life.pid)
            await life.end()

    finish(work())


@pytest.mark.parametrize("turns", range(6))
def test_a_cancellation_during_the_start_leaves_no_process(turns: int) -> None:
    started: list[int] = []

    async def work() -> None:
        note_starts(started)
        async with Watch() as watch:
            running = asyncio.create_task(stub("hang", f"--port={watch.port}"))
            for _ in range(turns):
                await asyncio.sleep(0)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    finish(work())
    assert len(started) == (1 if turns else 0)
    for pid in started:
        assert_reaped(pid)


def test_a_descendant_that_keeps_the_pipes_open_does_not_hold_the_answer() -> None:
    async def work() -> None:
        async with Watch() as watch:
            finished = await stub("leave", f"--port={watch.port}", "--text=kept", "--stderr=too", "--exit=3")
            assert finished == Finished(3, b"kept", "too")
            life = await watch.life()
            assert_reaped(life.pid)

    finish(work())


def test_programs_run_side_by_side() -> None:
    async def work() -> None:
        async with Watch() as watch:
            hanging = [asyncio.create_task(stub("hang", f"--port={watch.port}")) for _ in range(2)]
            lives = [await watch.life() for _ in hanging]
            assert (await stub("say", "--text=third")).stdout == b"third"
            assert not any(task.done() for task in hanging)
            for task in hanging:
                task.cancel()
            await asyncio.gather(*hanging, return_exceptions=True)
            for life in lives:
                await life.end()

    finish(work())


def test_a_program_that_cannot_start_is_told_with_the_reason(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")

    async def start(program: str) -> None:
        await run([program], ENVIRONMENT, deadline=asyncio.get_running_loop().time() + FOR_EVER, output=1)

    for program, reason in [
        ("no-such-program", "No such file"),
        (str(plain), "Permission denied"),
        (str(plain / "x"), "Not a dir"),
    ]:
        with pytest.raises(NotLaunchableError, match=reason):
            finish(start(program))
    plain.chmod(0o755)
    with pytest.raises(NotLaunchableError, match="Exec format"):
        finish(start(str(plain)))


def test_arguments_beyond_what_the_system_takes_are_a_fault_of_their_own() -> None:
    with pytest.raises(ArgumentsTooLongError):
        finish(stub("echo", "x" * 10_000_000))
