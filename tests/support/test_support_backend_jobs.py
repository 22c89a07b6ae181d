"""Background runs from submit to end, with real processes: what callers are told, and what is left of it outside."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from verbc.support.call import Call
from verbc.support.job_hooks import Ask
from verbc.support.launch import Launch, start
from verbc.support.refusal import Refusal
from verbc.support.run_record import End, RunRecord
from verbc.support.run_store import RunStore
from verbc.support.worker_threads import WorkerThreads

from .jobs import Demo, Fifo, at_once, make_tool, serving
from .programs import finish

NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reports").mkdir()
    monkeypatch.setenv("PATH", f"{make_tool(tmp_path)}:{os.environ['PATH']}")
    monkeypatch.setenv("DEMO_SECRET", "s3cret-value")


@pytest.fixture
def fifo(tmp_path: Path) -> Callable[[str], Fifo]:
    return lambda name: Fifo(tmp_path / name)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()


class Hooks:
    """Handlers that note what they are told, and say what a test wants said."""

    def __init__(self, end: End | None = None) -> None:
        self.end: Any = end
        self.late: Any = None
        self.told: list[str] = []
        self.details: Any = {}
        self.more: Any = None

    async def runs_prepare(self, launch: Launch, params: Any, call: Call) -> None:
        launch.details["kind"] = "work"

    async def runs_ended(self, record: RunRecord, ask: Ask | None) -> Any:
        said = self.end if ask else self.late
        if isinstance(said, BaseException):
            raise said
        return said

    async def runs_settled(self, record: RunRecord) -> Any:
        assert record.end is not None
        self.told.append(f"{record.run_id} {record.end.outcome}")
        return self.more

    async def runs_details(self, record: RunRecord) -> Any:
        if isinstance(self.details, BaseException):
            raise self.details
        return self.details


DONE = End("completed", "succeeded", "lifecycle", "run.completed.ok", details={"cost": 3}, at=NOW)


# A run and its end.


def test_a_run_from_start_to_end(tmp_path: Path, fifo: Callable[[str], Fifo]) -> None:
    async def work() -> None:
        gate = fifo("gate")
        async with serving(tmp_path) as demo:
            started = await demo.call("work.submit", script=f"read x < {gate}; echo $x", label="mine", level=3)
            run_id = started["run_id"]
            assert (started["status"], started["terminal"], started["outcome"]) == ("running", False, None)
            assert (started["spawn_state"], started["label"], started["details"]) == ("started", "mine", {})
            assert started["log"] == str(tmp_path / "state" / "runs" / run_id / "console.log")
            status = await demo.status(run_id)
            assert (status["status"], status["alive"], status["pid_identity"]) == ("running", True, "confirmed")
            assert (status["verb"], status["pid"]) == ("work.submit", started["pid"])
            await gate.write("hello\n")
            [row] = await demo.wait(run_id)
            assert (row["status"], row["outcome"], row["exit_code"]) == ("exited", "succeeded", 0)
            assert (row["terminal_source"], row["finished_at_precision"]) == ("exit_code", "observed")
            output = await demo.call("job.output", run_id=run_id)
            assert (output["console"], output["log_bytes"], output["truncated"]) == ("hello\n", 6, False)
            assert await demo.runs() == [row]

    finish(work())


def test_how_it_was_started_is_told_on_request(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            run_id = await demo.submit("echo hello", level=2)
            await demo.wait(run_id)
            status = await demo.call("job.status", run_id=run_id, detail=True)
            assert status["launch"]["command"] == ["${TOOL:-tool}", "work", "--level=2", "--", "echo hello"]
            assert status["launch"]["cwd"] == os.getcwd()
            assert (status["launch"]["log_bytes"], status["launch"]["pgid"]) == (6, status["pid"])
            assert status["log_tail"] == "hello\n"
            assert "launch" not in await demo.status(run_id)

    finish(work())


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -9 $$", -9)])
def test_a_run_that_fails(tmp_path: Path, script: str, code: int) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            [row] = await demo.wait(await demo.submit(script))
            assert (row["outcome"], row["reason_code"], row["exit_code"]) == ("failed", "exited_nonzero", code)

    finish(work())


def test_wait_and_output_in_one_go_give_the_whole_answer(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            for _ in range(5):
                run_id = await demo.submit("i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); done; echo last")
                await demo.wait(run_id)
                output = await demo.call("job.output", run_id=run_id, tail_chars=5)
                assert (output["terminal"], output["console"], output["truncated"]) == (True, "last\n", True)

    finish(work())


def test_a_descendant_that_holds_the_log_open_delays_nothing(tmp_path: Path, fifo: Callable[[str], Fifo]) -> None:
    async def work() -> None:
        gate, late = fifo("gate"), fifo("late")
        async with serving(tmp_path) as demo:
            run_id = await demo.submit(f"(read x < {gate}; echo late; echo > {late}) & echo first")
            [row] = await demo.wait(run_id)
            assert row["outcome"] == "succeeded"
            await gate.write()
            await late.read()
            assert (await demo.call("job.output", run_id=run_id))["console"] == "first\nlate\n"

    finish(work())


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    class Writing(Hooks):
        async def runs_prepare(self, launch: Launch, params: Any, call: Call) -> None:
            launch.file("prompt.txt", "secret")

    async def work() -> None:
        umask = os.umask(0)
        try:
            async with serving(tmp_path, Writing(DONE)) as demo:
                await demo.wait(await demo.submit("true"))
        finally:
            os.umask(umask)
        for path in [tmp_path / "state", *(tmp_path / "state").rglob("*")]:
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path

    finish(work())


def test_no_value_of_the_environment_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL", str(tmp_path / "bin" / "tool"))

    async def work() -> None:
        async with serving(tmp_path) as demo:
            run_id = await demo.submit('test -n "$DEMO_SECRET"')
            [row] = await demo.wait(run_id)
            assert row["outcome"] == "succeeded"
        for path in (tmp_path / "state").rglob("*"):
            if path.is_file():
                kept = path.read_bytes()
                assert b"s3cret-value" not in kept
                assert bytes(tmp_path / "bin") not in kept

    finish(work())


def test_a_program_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            monkeypatch.setenv("TOOL", "s3cret-tool")
            refused = await demo.call("work.submit", script="true", idempotency_key="k")
            assert refused["kind"] == "unavailable"
            assert "s3cret" not in str(refused)
            status = await demo.status(refused["detail"]["run_id"])
            assert (status["status"], status["outcome"], status["spawn_state"]) == ("failed", "failed", "failed")
            assert (status["reason_code"], status["terminal_source"]) == ("spawn_failed", "spawn_failure")
            assert (status["pid"], status["alive"], status["log_tail"]) == (None, False, "")
            again = await demo.call("work.submit", script="true", idempotency_key="k")
            assert again["detail"]["run_id"] != refused["detail"]["run_id"]

    finish(work())


@pytest.mark.parametrize("arguments", [{"script": "a\0b"}, {"script": "x" * 140_000}])
def test_what_no_command_line_can_carry_leaves_nothing_behind(tmp_path: Path, arguments: dict[str, Any]) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            assert (await demo.call("work.submit", **arguments))["kind"] == "invalid_input"
            assert await demo.runs() == []
            assert list((tmp_path / "state" / "runs").iterdir()) == []

    finish(work())


# Ids.


def test_an_unknown_run(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            unknown = "20260101T000000-000000"
            status = await demo.status(unknown)
            assert (status["known"], status["record_state"], status["status"]) == (False, "absent", "unknown")
            output = await demo.call("job.output", run_id=unknown)
            assert (output["known"], output["console"], output["log_bytes"]) == (False, None, None)
            killed = await demo.kill(unknown)
            assert (killed["killed"], killed["reason_code"], killed["pid"]) == (False, "no_such_job", None)

    finish(work())


@pytest.mark.parametrize("run_id", ["../../../evil", "/etc", "", "20260101T000000-00000G", "20260101T000000-000000\n"])
def test_an_id_is_checked_before_it_touches_a_path(tmp_path: Path, run_id: str) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            for verb in ("job.status", "job.output", "job.kill"):
                assert (await demo.call(verb, run_id=run_id))["kind"] == "invalid_input"
            keeper = await demo.backend._keeper()
            assert (await keeper.look(run_id, 100))[0] is None  # also where no schema has looked at it

    finish(work())


@pytest.mark.parametrize(
    ("characters", "fits"), [(0, False), (1, True), (200_000, True), (200_001, False), (-5, False)]
)
def test_how_much_of_the_output_can_be_asked_for(tmp_path: Path, characters: int, fits: bool) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            run_id = await demo.submit("printf abc")
            await demo.wait(run_id)
            output = await demo.call("job.output", run_id=run_id, tail_chars=characters)
            assert output.get("console") == ("abc"[-characters:] if fits else None)

    finish(work())


def test_a_run_whose_folder_was_removed_by_hand(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            run_id = await demo.submit("echo hello")
            [row] = await demo.wait(run_id)
            folder = tmp_path / "state" / "runs" / run_id
            (folder / "console.log").unlink()
            folder.rmdir()
            status = await demo.call("job.status", run_id=run_id, detail=True)
            assert (status["outcome"], status["log_tail"], status["launch"]["log_bytes"]) == ("succeeded", None, 0)
            output = await demo.call("job.output", run_id=run_id)
            assert (output["known"], output["console"], output["log_bytes"]) == (True, None, None)
            assert await demo.runs() == [row]

    finish(work())


# Keys.


def test_the_same_key_and_arguments_give_the_same_run(tmp_path: Path, fifo: Callable[[str], Fifo]) -> None:
    async def work() -> None:
        gate = fifo("gate")
        script = f"read x < {gate}"
        async with serving(tmp_path) as demo:
            first = await demo.call("work.submit", script=script, idempotency_key="k")
            again = await demo.call("work.submit", script=script, idempotency_key="k")
            assert again == first
            assert first["idempotency_key"] == "k"
            other = await demo.call("work.submit", script="true", idempotency_key="k")
            assert other["kind"] == "conflict"
            labelled = await demo.call("work.submit", script=script, label="x", idempotency_key="k")
            assert labelled["kind"] == "conflict"
            await gate.write()
            await demo.wait(first["run_id"])
            ended = await demo.call("work.submit", script=script, idempotency_key="k")
            assert (ended["run_id"], ended["terminal"], ended["outcome"]) == (first["run_id"], True, "succeeded")
            assert len(await demo.runs()) == 1

    finish(work())


def test_a_key_is_minted_and_can_be_used_later(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            first = await demo.call("work.submit", script="true")
            second = await demo.call("work.submit", script="true")
            assert first["run_id"] != second["run_id"]
            assert first["idempotency_key"] != second["idempotency_key"]
            again = await demo.call("work.submit", script="true", idempotency_key=first["idempotency_key"])
            assert again["run_id"] == first["run_id"]
            await demo.wait(first["run_id"], second["run_id"])

    finish(work())


def test_a_key_belongs_to_one_caller(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            one = await demo.call("work.submit", "ann", script="true", idempotency_key="k")
            two = await demo.call("work.submit", "bob", script="true", idempotency_key="k")
            assert one["run_id"] != two["run_id"]
            await demo.wait(one["run_id"], two["run_id"])

    finish(work())


def test_many_calls_with_one_key_at_the_same_time_start_one_run(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(tmp_path) as one, serving(tmp_path) as two:
            script = f"echo started >> {tmp_path}/starts"
            calls = [demo.call("work.submit", script=script, idempotency_key="k") for demo in (one, two) * 8]
            ids = {started["run_id"] for started in await at_once(*calls)}
            assert len(ids) == 1
            await one.wait(*ids)
            assert (tmp_path / "starts").read_text() == "started\n"

    finish(work())


# Hooks.


def test_hooks_shape_a_start(tmp_path: Path) -> None:
    class Shaping(Hooks):
        async def runs_prepare(self, launch: Launch, params: Any, call: Call) -> None:
            launch.flag("--notify", "--level=9")
            launch.environment["EXTRA"] = "more"
            launch.cwd = Path(params.cwd)
            launch.label = "from the hooks"
            path = launch.file("prompt.txt", "the prompt")
            launch.details["verb"] = call.verb.name
            launch.argv[-1] = f'cat {path}; echo; echo "$EXTRA $DEMO_RUN_ID $DEMO_MCP_RUN_ID"; pwd'

    async def work() -> None:
        async with serving(tmp_path, Shaping(DONE)) as demo:
            started = await demo.call("work.submit", script="-", cwd=str(tmp_path))
            run_id = started["run_id"]
            assert started["details"]["verb"] == "work.submit"
            await demo.wait(run_id)
            output = await demo.call("job.output", run_id=run_id)
            assert output["console"] == f"the prompt\nmore  {run_id}\n{tmp_path}\n"
            status = await demo.call("job.status", run_id=run_id, detail=True)
            assert status["label"] == "from the hooks"
            assert status["launch"]["command"][1:4] == ["work", "--notify=--level=9", "--"]
            assert status["launch"]["cwd"] == str(tmp_path)

    finish(work())


@pytest.mark.parametrize(
    ("raised", "kind"), [(Refusal("not_found", "No profile."), "not_found"), (RuntimeError("s3cret"), "internal")]
)
def test_hooks_that_refuse_a_start_leave_nothing_behind(tmp_path: Path, raised: Exception, kind: str) -> None:
    class Refusing(Hooks):
        async def runs_prepare(self, launch: Launch, params: Any, call: Call) -> None:
            launch.file("prompt.txt", "text")
            raise raised

    async def work() -> None:
        async with serving(tmp_path, Refusing()) as demo:
            refused = await demo.call("work.submit", script="true", idempotency_key="k")
            assert refused["kind"] == kind
            assert "s3cret" not in str(refused)
            assert await demo.runs() == []
            assert list((tmp_path / "state" / "runs").iterdir()) == []

    finish(work())


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda launch: launch.argv.__setitem__(0, "trust"), "internal"),
        (lambda launch: launch.positional("a\0b"), "invalid_input"),
        (lambda launch: launch.environment.update(A="\0"), "invalid_input"),
        (lambda launch: launch.environment.update(A="x" * 200_000), "invalid_input"),
        (lambda launch: launch.details.update(a={1}), "internal"),
        (lambda launch: launch.details.update(a=float("nan")), "internal"),
    ],
)
def test_what_hooks_make_is_checked(tmp_path: Path, change: Callable[[Launch], None], kind: str) -> None:
    class Changing(Hooks):
        async def runs_prepare(self, launch: Launch, params: Any, call: Call) -> None:
            change(launch)

    async def work() -> None:
        async with serving(tmp_path, Changing()) as demo:
            assert (await demo.call("work.submit", script="true"))["kind"] == kind
            assert await demo.runs() == []

    finish(work())


def test_hooks_tell_how_a_run_ended(tmp_path: Path) -> None:
    async def work() -> None:
        hooks = Hooks(DONE)
        hooks.details = {"artifacts": ["a"], "cost": 4}
        async with serving(tmp_path, hooks) as demo:
            run_id = await demo.submit("exit 1")
            [row] = await demo.wait(run_id)
            assert (row["status"], row["outcome"], row["terminal_source"]) == ("completed", "succeeded", "lifecycle")
            assert (row["exit_code"], row["details"]) == (1, {"kind": "work", "cost": 3})
            for verb in ("job.status", "job.output"):
                told = await demo.call(verb, run_id=run_id)
                assert told["details"] == {"kind": "work", "cost": 4, "artifacts": ["a"]}
        assert hooks.told == [f"{run_id} succeeded"]

    finish(work())


@pytest.mark.parametrize(
    ("script", "outcome", "reason"),
    [
        ("exit 3", "failed", "exited_nonzero_without_report"),
        ("exit 0", "indeterminate", "process_gone_without_outcome"),
        ("kill -9 $$", "failed", "exited_nonzero_without_report"),
    ],
)
def test_a_run_that_hooks_know_nothing_of(tmp_path: Path, script: str, outcome: str, reason: str) -> None:
    async def work() -> None:
        async with serving(tmp_path, Hooks()) as demo:
            run_id = await demo.submit(script)
            [row] = await demo.wait(run_id)
            assert (row["outcome"], row["reason_code"]) == (outcome, reason)
            status = await demo.status(run_id)
            assert "do not start it again unasked" in status["reason_detail"]
            assert status["terminal_evidence"]["kind"] == "exit_code"

    finish(work())


WRONG: list[Any] = [
    RuntimeError("s3cret"),
    Refusal("unavailable", "Not now."),
    KeyboardInterrupt(),
    asyncio.CancelledError(),
    "completed",
    replace(DONE, status=""),
    replace(DONE, status="x" * 65),
    replace(DONE, status="running"),
    replace(DONE, status="unknown"),
    replace(DONE, status="exited"),
    replace(DONE, source=""),
    replace(DONE, outcome="fine"),  # type: ignore[arg-type]
    replace(DONE, reason_code="x" * 101),
    replace(DONE, reason_detail=3),  # type: ignore[arg-type]
    replace(DONE, details={"a": {1}}),
    replace(DONE, evidence={"kind": "x"}),
    replace(DONE, evidence={"kind": "x", "finding": "y", "observed_at": "yesterday"}),
]


@pytest.mark.parametrize("wrong", WRONG, ids=[str(number) for number in range(len(WRONG))])
def test_hooks_that_fail_are_asked_a_few_times_and_then_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: Any
) -> None:
    monkeypatch.setattr("verbc.support.run_asking.BETWEEN_ATTEMPTS", 0.0)

    async def work() -> None:
        asked: list[str] = []

        class Failing(Hooks):
            async def runs_ended(self, record: RunRecord, ask: Ask | None) -> Any:
                if ask:
                    asked.append(record.run_id)
                return await super().runs_ended(record, ask)

        hooks = Failing()
        hooks.end = wrong
        async with serving(tmp_path, hooks) as demo:
            run_id = await demo.submit("true")
            [row] = await demo.wait(run_id)
            assert (row["outcome"], row["reason_code"]) == ("indeterminate", "process_gone_without_outcome")
            assert "s3cret" not in str(row)
            assert asked == [run_id] * 3

    finish(work())


def test_a_hook_that_fails_once_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verbc.support.run_asking.BETWEEN_ATTEMPTS", 0.0)

    async def work() -> None:
        class Once(Hooks):
            async def runs_ended(self, record: RunRecord, ask: Ask | None) -> Any:
                self.told.append("asked")
                if len(self.told) == 1:
                    raise RuntimeError
                return DONE

        async with serving(tmp_path, Once()) as demo:
            [row] = await demo.wait(await demo.submit("true"))
            assert row["outcome"] == "succeeded"

    finish(work())


@pytest.mark.parametrize("wrong", [RuntimeError("s3cret"), asyncio.CancelledError(), {"a": {1}}, "text", 3], ids=repr)
def test_details_that_fail_are_left_out(tmp_path: Path, wrong: Any) -> None:
    async def work() -> None:
        hooks = Hooks(DONE)
        hooks.details = hooks.more = wrong
        async with serving(tmp_path, hooks) as demo:
            run_id = await demo.submit("true")
            await demo.wait(run_id)
            status = await demo.status(run_id)
            assert status["details"] == {"kind": "work", "cost": 3}

    finish(work())


def test_what_comes_back_when_an_end_is_told_joins_the_details(tmp_path: Path) -> None:
    async def work() -> None:
        told = asyncio.Event()

        class Telling(Hooks):
            async def runs_settled(self, record: RunRecord) -> Any:
                told.set()
                return {"notice": "delivered"}

        async with serving(tmp_path, Telling(DONE)) as demo:
            run_id = await demo.submit("true")
            await demo.wait(run_id)
            await told.wait()
            while "notice" not in (status := await demo.status(run_id))["details"]:
                pass
            assert status["details"] == {"kind": "work", "cost": 3, "notice": "delivered"}

    finish(work())


def test_hooks_ask_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_REPORTS", str(tmp_path))
    (tmp_path / "bin" / "tool").write_text('#!/bin/sh\n[ "$1" = report ] && cat "$DEMO_REPORTS/$2"; exit 0\n')

    async def work() -> None:
        class Asking(Hooks):
            async def runs_ended(self, record: RunRecord, ask: Ask | None) -> Any:
                if ask is None:
                    return None
                for words in (["trust"], ["trust", "me"], ["report", "a\0b"]):
                    with pytest.raises(Refusal):
                        await ask(words)
                report = await ask(["report", "answer"], timeout=30.0)
                return End(report["status"], "failed", "lifecycle")

        (tmp_path / "answer").write_text('{"status": "timed_out"}')
        async with serving(tmp_path, Asking()) as demo:
            [row] = await demo.wait(await demo.submit("true"))
            assert (row["status"], row["outcome"]) == ("timed_out", "failed")

    finish(work())


def test_a_report_that_comes_late_is_kept_and_changes_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        hooks = Hooks()
        async with serving(tmp_path, hooks) as demo:
            run_id = await demo.submit("exit 2")
            await demo.wait(run_id)
            assert (await demo.status(run_id))["late_report"] is None
            hooks.late = DONE
            status = await demo.status(run_id)
            assert status["late_report"]["status"] == "completed"
            assert (status["status"], status["outcome"]) == ("exited", "failed")
            hooks.late = replace(DONE, status="other")
            assert await demo.status(run_id) == status

    finish(work())


# Reads that never block.


def test_no_read_waits_for_a_slow_hook_nor_another_read(tmp_path: Path, fifo: Callable[[str], Fifo]) -> None:
    async def work() -> None:
        held = asyncio.Event()

        class Slow(Hooks):
            async def runs_ended(self, record: RunRecord, ask: Ask | None) -> Any:
                await held.wait()
                return DONE

        gate = fifo("gate")
        async with serving(tmp_path, Slow()) as demo:
            dead = [await demo.submit("true") for _ in range(10)]
            living = await demo.submit(f"read x < {gate}")
            while sum(row["possibly_orphaned"] for row in await demo.runs()) < len(dead):
                pass
            rows = {row["run_id"]: row for row in await demo.runs()}
            assert {rows[run_id]["status"] for run_id in dead} == {"exited"}
            assert not any(row["terminal"] for row in rows.values())
            waited = await demo.call("job.wait", run_ids=[*dead, living], max_wait=0)
            assert (waited["stopped_without_end"], waited["pending"]) == (dead, [living])
            assert (waited["timed_out"], waited["all_terminal"]) == (True, False)
            held.set()
            assert {row["outcome"] for row in await demo.wait(*dead)} == {"succeeded"}
            await gate.write()
            await demo.wait(living)

    finish(work())


def test_no_status_read_blocks_another_request(tmp_path: Path, fifo: Callable[[str], Fifo]) -> None:
    """The command line is still being asked about one run, and holds its answer back, when the other is answered."""

    async def work() -> None:
        asked, answer = fifo("asked"), fifo("answer")
        script = f'#!/bin/sh\n[ "$1" = report ] || exit 0\necho > {asked}; cat {answer}\n'
        (tmp_path / "bin" / "tool").write_text(script)

        class Asking(Hooks):
            async def runs_ended(self, record: RunRecord, ask: Ask | None) -> Any:
                assert ask
                await ask(["report"])
                return DONE

        async with serving(tmp_path, Asking()) as demo:
            run_id = await demo.submit("true")
            await asked.read()
            waiting = asyncio.ensure_future(demo.wait(run_id))
            for _ in range(3):
                assert (await demo.status(run_id))["possibly_orphaned"]
                assert (await demo.call("job.output", run_id=run_id))["status"] == "exited"
            assert not waiting.done()
            await answer.write("{}")
            [row] = await waiting
            assert row["outcome"] == "succeeded"

    finish(work())


def test_what_the_hooks_know_without_asking_waits_for_no_ask(
    tmp_path: Path, fifo: Callable[[str], Fifo], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the command line is asked about many, and answers nobody, other runs end, and a kill takes no longer."""

    async def work() -> None:
        held, asked = asyncio.Event(), 0

        class Slow(Hooks):
            async def runs_ended(self, record: RunRecord, ask: Ask | None) -> Any:
                nonlocal asked
                if record.label == "known":
                    return DONE
                if ask and record.stop_reason is None:
                    asked += 1
                    await held.wait()
                return None

        gate, up = fifo("gate"), fifo("up")
        async with serving(tmp_path, Slow()) as demo:
            dead = [await demo.submit("true") for _ in range(10)]
            while asked < 4:
                await demo.runs()
            [row] = await demo.wait(await demo.submit("true", label="known"))
            assert row["outcome"] == "succeeded"
            stopped = await demo.submit(f"echo > {up}; read x < {gate}")
            await up.read()
            assert (await demo.kill(stopped))["killed"]
            assert (await demo.status(stopped))["outcome"] == "cancelled"
            assert asked == 4
            assert not any(row["terminal"] for row in await demo.runs() if row["run_id"] in dead)
            held.set()
            await demo.wait(*dead)

    finish(work())


def test_a_run_that_was_stopped_is_asked_about_for_a_bounded_time(
    tmp_path: Path, fifo: Callable[[str], Fifo], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verbc.support.run_asking.STOPPED_SECONDS", 0.01)

    async def work() -> None:
        class Slow(Hooks):
            async def runs_ended(self, record: RunRecord, ask: Ask | None) -> Any:
                return await asyncio.Event().wait() if ask else None

        gate, up = fifo("gate"), fifo("up")
        async with serving(tmp_path, Slow()) as demo:
            run_id = await demo.submit(f"echo > {up}; read x < {gate}")
            await up.read()
            assert (await demo.kill(run_id))["killed"]
            assert (await demo.status(run_id))["outcome"] == "cancelled"

    finish(work())


def test_reading_a_finished_run_takes_one_hop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verbc.support.run_watch.SECONDS", 0.01)
    hops: list[str] = []

    def counted(name: str) -> Any:
        method = getattr(WorkerThreads, name)

        async def hop(self: WorkerThreads, work: Any) -> Any:
            hops.append(name)
            return await method(self, work)

        return hop

    async def work() -> None:
        async with serving(tmp_path, Hooks(DONE)) as demo:
            ids = [await demo.submit("true") for _ in range(3)]
            await demo.wait(*ids)
            keeper = await demo.backend._keeper()
            while keeper._watch._watching:  # noqa: ASYNC110 - it rests once all is told
                await asyncio.sleep(0.01)
            for name in ("read", "write", "wait"):
                monkeypatch.setattr(WorkerThreads, name, counted(name))
            for verb, arguments in (
                ("job.status", {"run_id": ids[0]}),
                ("job.output", {"run_id": ids[0]}),
                ("job.list", {"limit": 2}),
                ("job.list", {"status": "completed"}),
                ("job.wait", {"run_ids": ids * 33}),
            ):
                hops.clear()
                assert "kind" not in await demo.call(verb, **arguments)
                assert hops == ["read"], verb

    finish(work())


# Lists and waits.


def test_a_list_has_the_newest_first_and_says_whether_there_are_more(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            ids = sorted([await demo.submit(f"exit {number % 2}") for number in range(4)], reverse=True)
            await demo.wait(*ids)
            page = await demo.call("job.list", limit=3)
            assert ([row["run_id"] for row in page["jobs"]], page["has_more"]) == (ids[:3], True)
            page = await demo.call("job.list", limit=4)
            assert ([row["run_id"] for row in page["jobs"]], page["has_more"]) == (ids, False)

    finish(work())


def test_a_list_is_filtered_by_what_readers_are_told(tmp_path: Path, fifo: Callable[[str], Fifo]) -> None:
    async def work() -> None:
        gate, up = fifo("gate"), fifo("up")
        async with serving(tmp_path) as demo:
            living = await demo.submit(f"read x < {gate}")
            done = await demo.submit("true")
            killed = await demo.submit(f"echo > {up}; read x < {gate}")
            await up.read()
            await demo.kill(killed)
            await demo.wait(done, killed)
            for status, run_id in (("running", living), ("exited", done), ("killed", killed)):
                page = await demo.call("job.list", status=status)
                assert [row["run_id"] for row in page["jobs"]] == [run_id]
                assert page["jobs"][0]["status"] == status
            assert (await demo.call("job.list", status="unheard_of"))["jobs"] == []
            await gate.write()
            await demo.wait(living)

    finish(work())


def test_a_wait_for_nothing_and_for_the_unknown_is_over_at_once(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            waited = await demo.call("job.wait", run_ids=[])
            assert (waited["all_terminal"], waited["timed_out"], waited["runs"]) == (True, False, [])
            unknown = "20260101T000000-000000"
            run_id = await demo.submit("true")
            await demo.wait(run_id)
            waited = await demo.call("job.wait", run_ids=[unknown, run_id, unknown])
            assert [row["run_id"] for row in waited["runs"]] == [unknown, run_id, unknown]
            assert waited["runs"][0]["error"]["kind"] == "not_found"
            assert (waited["all_terminal"], waited["timed_out"], waited["pending"]) == (False, False, [])

    finish(work())


def test_giving_up_a_wait_leaves_the_run_alone(tmp_path: Path, fifo: Callable[[str], Fifo]) -> None:
    async def work() -> None:
        gate = fifo("gate")
        async with serving(tmp_path) as demo:
            run_id = await demo.submit(f"read x < {gate}; echo $x")
            looked = asyncio.Event()
            keeper = await demo.backend._keeper()
            each = keeper.each

            async def noting(*arguments: Any, **named: Any) -> Any:
                found = await each(*arguments, **named)
                looked.set()
                return found

            keeper.each = noting  # type: ignore[method-assign]
            waiting = asyncio.ensure_future(demo.wait(run_id))
            await looked.wait()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert (await demo.status(run_id))["status"] == "running"
            await gate.write()
            [row] = await demo.wait(run_id)
            assert row["outcome"] == "succeeded"

    finish(work())


def test_a_wait_ends_with_its_time(tmp_path: Path, fifo: Callable[[str], Fifo]) -> None:
    async def work() -> None:
        gate = fifo("gate")
        async with serving(tmp_path) as demo:
            run_id = await demo.submit(f"read x < {gate}")
            waited = await demo.call("job.wait", run_ids=[run_id], max_wait=0.1, poll_interval=60)
            assert (waited["timed_out"], waited["pending"], waited["max_wait"]) == (True, [run_id], 0.1)
            await gate.write()
            await demo.wait(run_id)

    finish(work())


# Starts that are given up, and stops.


class Held:
    """Holds starts back, right before the process is made."""

    def __init__(self) -> None:
        self.entered, self.go = threading.Event(), threading.Event()

    def start(self, *arguments: Any) -> Any:
        self.entered.set()
        self.go.wait()
        return start(*arguments)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    made = Held()
    monkeypatch.setattr("verbc.support.run_start.start", made.start)
    return made


def test_a_cancelled_submit_leaves_no_half_started_run(tmp_path: Path, fifo: Callable[[str], Fifo], held: Held) -> None:
    async def work() -> None:
        gate = fifo("gate")
        async with serving(tmp_path) as demo:
            submitting = asyncio.ensure_future(demo.call("work.submit", script=f"read x < {gate}"))
            await asyncio.to_thread(held.entered.wait)
            [row] = await demo.runs()
            assert (row["status"], row["spawn_state"], row["alive"]) == ("running", "preparing", None)
            submitting.cancel()
            held.go.set()
            with pytest.raises(asyncio.CancelledError):
                await submitting
            while (row := (await demo.runs())[0])["spawn_state"] != "started":
                pass
            await gate.write()
            [row] = await demo.wait(row["run_id"])
            assert row["outcome"] == "succeeded"

    finish(work())


def test_a_run_that_is_killed_while_it_starts_is_stopped_right_after(
    tmp_path: Path, fifo: Callable[[str], Fifo], held: Held
) -> None:
    async def work() -> None:
        gate = fifo("gate")
        async with serving(tmp_path) as demo:
            submitting = asyncio.ensure_future(demo.call("work.submit", script=f"read x < {gate}"))
            await asyncio.to_thread(held.entered.wait)
            [row] = await demo.runs()
            killed = await demo.kill(row["run_id"])
            assert (killed["killed"], killed["reason_code"]) == (False, "no_pid_on_record")
            held.go.set()
            await submitting
            [row] = await demo.wait(row["run_id"])
            assert (row["status"], row["outcome"], row["reason_code"]) == ("killed", "cancelled", "killed")

    finish(work())


def test_a_kill_ends_a_run(tmp_path: Path, fifo: Callable[[str], Fifo]) -> None:
    async def work() -> None:
        gate, up = fifo("gate"), fifo("up")
        async with serving(tmp_path) as demo:
            started = await demo.call("work.submit", script=f"echo > {up}; read x < {gate}")
            run_id = started["run_id"]
            await up.read()
            killed = await demo.kill(run_id)
            assert (killed["killed"], killed["reason_code"], killed["signal"]) == (True, "signalled", "SIGTERM")
            assert killed["pid"] == killed["pgid"] == started["pid"]
            status = await demo.status(run_id)
            assert (status["status"], status["terminal"], status["outcome"]) == ("killed", True, "cancelled")
            assert (status["reason_code"], status["terminal_source"]) == ("killed", "kill")
            assert (status["exit_code"], status["alive"]) == (-signal.SIGTERM, False)
            again = await demo.kill(run_id)
            assert (again["killed"], again["reason_code"], again["signal"]) == (False, "group_gone", None)

    finish(work())


def test_a_run_that_ignores_the_request_is_forced(tmp_path: Path, fifo: Callable[[str], Fifo]) -> None:
    async def work() -> None:
        gate, up = fifo("gate"), fifo("up")
        async with serving(tmp_path, grace=0.2) as demo:
            run_id = await demo.submit(f"trap '' TERM; echo > {up}; read x < {gate}")
            await up.read()
            killed = await demo.kill(run_id)
            assert (killed["killed"], killed["reason_code"], killed["signal"]) == (True, "signalled", "SIGKILL")
            assert (await demo.status(run_id))["outcome"] == "cancelled"

    finish(work())


def test_a_kill_reaches_what_left_the_group(tmp_path: Path, fifo: Callable[[str], Fifo]) -> None:
    async def work() -> None:
        gate, up = fifo("gate"), fifo("up")
        async with serving(tmp_path) as demo:
            run_id = await demo.submit(f"setsid sh -c 'echo $$ > {up}; read x < {gate}' & read x < {gate}")
            child = int(await up.read())
            assert (await demo.kill(run_id))["killed"]
            assert not is_alive(child)

    finish(work())


def test_a_kill_reaches_a_child_in_its_own_session_when_the_leader_is_gone(
    tmp_path: Path, fifo: Callable[[str], Fifo]
) -> None:
    async def work() -> None:
        gate, up = fifo("gate"), fifo("up")
        hooks = Hooks(DONE)
        async with serving(tmp_path, hooks) as demo:
            run_id = await demo.submit(f"setsid sh -c 'echo $$ > {up}; read x < {gate}' &")
            child = int(await up.read())
            [row] = await demo.wait(run_id)
            killed = await demo.kill(run_id)
            assert (killed["killed"], killed["reason_code"], killed["signal"]) == (True, "signalled", "SIGTERM")
            assert "ended before" in killed["reason"]
            assert not is_alive(child)
            assert await demo.runs() == [row]
            assert (await demo.kill(run_id))["reason_code"] == "group_gone"

    finish(work())


def test_two_kills_at_the_same_time_agree(tmp_path: Path, fifo: Callable[[str], Fifo]) -> None:
    async def work() -> None:
        gate, up = fifo("gate"), fifo("up")
        hooks = Hooks()
        async with serving(tmp_path, hooks) as demo:
            run_id = await demo.submit(f"echo > {up}; read x < {gate}")
            await up.read()
            one, two = await at_once(demo.kill(run_id), demo.kill(run_id))
            assert one == two
            assert one["killed"]
            [row] = await demo.wait(run_id)
            assert row["outcome"] == "cancelled"
        assert hooks.told == [f"{run_id} cancelled"]

    finish(work())


def test_a_kill_goes_on_when_its_caller_gives_up(tmp_path: Path, fifo: Callable[[str], Fifo]) -> None:
    async def work() -> None:
        gate, up, asked = fifo("gate"), fifo("up"), fifo("asked")
        async with serving(tmp_path, grace=0.2) as demo:
            run_id = await demo.submit(f"trap 'echo > {asked}' TERM; echo > {up}; while :; do read x < {gate}; done")
            await up.read()
            killing = asyncio.ensure_future(demo.kill(run_id))
            await asked.read()
            killing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await killing
            [row] = await demo.wait(run_id)
            assert (row["outcome"], row["exit_code"]) == ("cancelled", -signal.SIGKILL)

    finish(work())


def test_a_run_that_was_killed_and_says_that_it_failed_is_cancelled(
    tmp_path: Path, fifo: Callable[[str], Fifo]
) -> None:
    async def work() -> None:
        gate, up = fifo("gate"), fifo("up")
        async with serving(tmp_path, Hooks(replace(DONE, status="failed", outcome="failed"))) as demo:
            run_id = await demo.submit(f"echo > {up}; read x < {gate}")
            await up.read()
            await demo.kill(run_id)
            status = await demo.status(run_id)
            assert (status["status"], status["outcome"]) == ("killed", "cancelled")
            assert status["late_report"]["status"] == "failed"

    finish(work())


def test_a_kill_that_comes_after_the_exit_says_that_the_run_was_gone(
    tmp_path: Path, fifo: Callable[[str], Fifo], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code is on record, and its process not yet let go; the end is what it would have been without a kill."""

    async def work() -> None:
        exited, go = threading.Event(), threading.Event()
        put_on_record = RunStore.exited

        def slowly(self: RunStore, *arguments: Any) -> None:
            put_on_record(self, *arguments)
            exited.set()
            go.wait()

        monkeypatch.setattr(RunStore, "exited", slowly)
        monkeypatch.setattr("verbc.support.run_stopping._REAP_SECONDS", 0.0)
        async with serving(tmp_path) as demo:
            run_id = await demo.submit("exit 3")
            await asyncio.to_thread(exited.wait)
            killing = asyncio.ensure_future(demo.kill(run_id))
            killed = await killing
            assert (killed["killed"], killed["reason_code"], killed["signal"]) == (False, "process_gone", None)
            go.set()
            [row] = await demo.wait(run_id)
            assert (row["reason_code"], row["exit_code"]) == ("exited_nonzero", 3)

    finish(work())


def test_the_name_of_a_run_is_bounded_and_holds_no_nul(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            run_id = await demo.submit("true", label="\u00e9" * 1000)
            assert (await demo.status(run_id))["label"] == "\u00e9" * 199 + "\u2026"
            refused = await demo.call("work.submit", script="true", label="a\0b")
            assert refused["kind"] == "invalid_input"
            [row] = await demo.wait(run_id)
            assert len(row["label"]) == 200

    finish(work())


def test_runs_are_listed_in_the_order_of_their_submits(tmp_path: Path) -> None:
    async def work() -> None:
        async with serving(tmp_path) as demo:
            ids = [await demo.submit("true") for _ in range(20)]
            rows = await demo.runs()
            assert [row["run_id"] for row in rows] == ids[::-1]
            times = [row["submitted_at"] for row in rows]
            assert times == sorted(times, reverse=True)
            await demo.wait(*ids)

    finish(work())


def test_a_run_gets_the_signals_that_its_server_does_not(tmp_path: Path, fifo: Callable[[str], Fifo]) -> None:
    async def work() -> None:
        gate, up = fifo("gate"), fifo("up")
        async with serving(tmp_path) as demo:
            run_id = await demo.submit(f"grep -E '^Sig(Blk|Ign)' /proc/self/status; echo > {up}; read x < {gate}")
            await up.read()
            lines = (await demo.call("job.output", run_id=run_id))["console"].split()
            blocked, ignored = (int(word, 16) for word in (lines[1], lines[3]))
            assert blocked == 0
            assert not ignored & (1 << signal.SIGPIPE - 1)
            assert (await demo.kill(run_id))["signal"] == "SIGTERM"

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
    try:
        finish(work())
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) >= {signal.SIGTERM, signal.SIGUSR1}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_a_run_that_prints_too_much_is_stopped(
    tmp_path: Path, fifo: Callable[[str], Fifo], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verbc.support.run_watch.SECONDS", 0.01)

    async def work() -> None:
        gate = fifo("gate")
        async with serving(tmp_path, log=1000) as demo:
            modest = await demo.submit(f"echo enough; read x < {gate}")
            run_id = await demo.submit("while :; do echo more and more; done")
            [row] = await demo.wait(run_id)
            assert (row["status"], row["outcome"]) == ("failed", "failed")
            assert (row["reason_code"], row["terminal_source"]) == ("log_limit_exceeded", "log_limit")
            assert (await demo.status(modest))["status"] == "running"
            await gate.write()
            await demo.wait(modest)

    finish(work())


def test_a_store_that_cannot_be_used_is_told_plainly(tmp_path: Path) -> None:
    async def work() -> None:
        (tmp_path / "state").mkdir(mode=0o700)
        (tmp_path / "state" / "runs.db").write_text("this is no database, and never was one" * 100)
        async with serving(tmp_path) as demo:
            for refused in (
                await demo.call("work.submit", script="true"),
                await demo.call("work.submit", script="true", idempotency_key="k"),
                await demo.status("20260101T000000-000000"),
                await demo.call("job.list"),
                await demo.call("job.wait", run_ids=["20260101T000000-000000"]),
            ):
                assert refused["kind"] == "unavailable"
            assert list((tmp_path / "state" / "runs").iterdir()) == []

    finish(work())


def test_a_state_folder_that_is_open_to_others_is_told_plainly(tmp_path: Path) -> None:
    async def work() -> None:
        (tmp_path / "state").mkdir(mode=0o755)
        async with serving(tmp_path) as demo:
            assert (await demo.call("job.list"))["kind"] == "unavailable"
            (tmp_path / "state").chmod(0o700)
            assert await demo.runs() == []

    finish(work())


def test_planning_opens_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        Demo(tmp_path)
        assert not (tmp_path / "state").exists()

    finish(work())


def test_a_server_that_starts_loads_nothing_of_the_store() -> None:
    code = "import sys, verbc.support.backend_jobs; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
