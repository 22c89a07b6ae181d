"""What `li mcp` does wrong in the background, one test for each; over a stand-in for `li` where the real one always behaves."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .mcp_process import McpProcess
from .meetings import Meeting
from .places import Place, package_with
from .stubs import FakeClaude, StubLi
from .submits import console, ended, plain, refusal, result, run_ids, submit, wait, waited_and_read

# Number of a fault → the tests that show that lion-mcp does not have it.
FAULTS: dict[int, tuple[str, ...]] = {
    1: (
        "test_terminal_only_after_the_answer_is_in_the_log",
        "test_a_child_that_keeps_the_log_open_does_not_delay_the_end",
        "test_lion_runs.test_wait_and_output_in_one_request_have_the_answer",
    ),
    2: ("test_a_notify_command_that_ignores_stdin_harms_nothing",),
    3: ("test_a_killed_run_is_cancelled_with_a_reason",),
    4: ("test_a_kill_is_verified_and_escalates",),
    5: ("test_a_kill_reaches_processes_that_left_the_group", "test_a_kill_after_the_end_stops_what_is_left"),
    6: ("test_exit_code_without_report_is_failed", "test_exit_0_without_report_is_indeterminate"),
    7: ("test_a_recycled_pid_is_recognised",),
    8: ("test_no_status_read_blocks_another_request", "test_lion_time.test_requests_run_side_by_side"),
    9: ("test_a_relative_folder_is_refused",),
    10: ("test_tail_chars_are_bounded",),
    11: ("test_a_run_id_is_checked_before_it_touches_a_path",),
    12: (
        "test_lion_refusals.test_whole_calls",
        "test_lion_refusals.test_texts_are_in_json_terms_and_hold_no_value",
        "test_lion_misbehaviour.test_what_goes_wrong_below_is_one_op_s_refusal",
    ),
    13: (
        "test_the_cause_of_a_failure_is_told",
        "test_lion_misbehaviour.test_an_undeclared_kind_is_kept_as_data",
        "test_lion_misbehaviour.test_what_goes_wrong_below_is_one_op_s_refusal",
    ),
    14: ("test_lion_side_by_side.test_tool_lists_agree", "test_lion_protocol.test_there_is_one_small_tool"),
    15: ("test_files_of_a_run_are_private", "test_finished_runs_are_forgotten_and_live_ones_never"),
    16: ("test_lion_parser_drift.test_parameters_are_those_of_the_parser",),
    17: (
        "test_an_empty_answer_is_reported_as_such",
        "test_schemas_speak_of_no_refused_parameter",
        "test_a_caller_s_mistakes_do_not_fill_the_log",
    ),
}


def test_each_fault_has_its_test() -> None:
    texts = {path.stem: path.read_text() for path in Path(__file__).parent.glob("test_lion_*.py")}
    places = [name.rpartition(".") for names in FAULTS.values() for name in names]
    missing = [name for module, _, name in places if f"\ndef {name}(" not in texts[module or Path(__file__).stem]]
    assert FAULTS.keys() == set(range(1, 18))
    assert not missing


@pytest.fixture(scope="module")
def stub_li(tmp_path_factory: pytest.TempPathFactory) -> StubLi:
    return StubLi.made_in(tmp_path_factory.mktemp("li"))


@pytest.fixture(scope="module")
def place(lion_mcp: Path, stub_li: StubLi, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place.made_in(tmp_path_factory.mktemp("place"), stub_li.program)


@pytest.fixture(scope="module")
def lion(place: Place) -> Iterator[McpProcess]:
    """One server over the stub, for tests that do not end it."""
    with place.server() as server:
        yield server


@pytest.fixture
def meet(stub_li: StubLi) -> Iterator[Callable[[str], Meeting]]:
    """Makes meetings that end with the test."""
    made: list[Meeting] = []

    def make(name: str) -> Meeting:
        made.append(stub_li.meeting(name))
        return made[-1]

    yield make
    for meeting in made:
        meeting.close()


@pytest.fixture(autouse=True)
def nothing_known(stub_li: StubLi) -> Iterator[None]:
    """`li lifecycle` knows of no run, unless a test says otherwise."""
    yield
    stub_li.lifecycle_says("")
    stub_li.tell()


Meet = Callable[[str], Meeting]


def start(server: McpProcess, *steps: str, **more: Any) -> str:
    """Starts a run that goes through these steps, and gives its id."""
    run_id: str = submit(server, query=[", ".join(steps)], prompt="x", **more)["run_id"]
    return run_id


def end_of(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["status"], row["outcome"], row["reason_code"]


def asked(server: McpProcess, *ops: dict[str, Any]) -> int:
    """Sends ops in one request, without waiting."""
    return server.send("tools/call", {"name": "request", "arguments": {"ops": list(ops)}})


def answers(server: McpProcess, request: int) -> list[dict[str, Any]]:
    entries = server.reply_to(request)["result"]["structuredContent"]["ops"]
    return [entry["result"] for entry in entries]


# 1


def test_terminal_only_after_the_answer_is_in_the_log(lion: McpProcess, meet: Meet) -> None:
    meeting = meet("reported")
    run_id = start(lion, "report completed", "hold reported", "say the answer")
    meeting.begun()
    (looked,) = result(lion, "job.wait", run_ids=[run_id], max_wait=0)["runs"]
    read = result(lion, "job.output", run_id=run_id)
    for told in (looked, read, result(lion, "job.status", run_id=run_id)):
        assert (told["status"], told["terminal"], told["outcome"]) == ("running", False, None)
    request = asked(
        lion,
        {"op": "job.wait", "args": {"run_ids": [run_id], "poll_interval": 0.05}},
        {"op": "job.output", "args": {"run_id": run_id}},
    )
    meeting.let_go()
    waited, read = answers(lion, request)
    assert end_of(waited["runs"][0]) == ("completed", "succeeded", "run.completed.ok")
    assert read["console"].endswith("the answer\n")


def test_a_child_that_keeps_the_log_open_does_not_delay_the_end(lion: McpProcess, meet: Meet) -> None:
    meeting = meet("child")
    run_id = start(lion, "leave child", "report completed", "say the answer")
    meeting.begun()
    row, read = waited_and_read(lion, run_id)
    assert meeting.lasts()
    assert row["outcome"] == "succeeded"
    assert read["console"] == "the answer\n"


# 2


def test_a_notify_command_that_ignores_stdin_harms_nothing(place: Place) -> None:
    with place.server() as server:
        for command in ("/bin/true", "/bin/false", "/nonexistent/program", "/dev/null"):
            for step in ("die 9", "exit 0", "report completed"):
                run_id = start(server, step, notify_command=json.dumps([command]), notify_seat="x" * 100_000)
                ended(server, run_id)
        assert server.op("server.info")["ok"]
        assert server.close() == 0


# 3


@pytest.mark.parametrize(
    ("before", "status", "reason"),
    [((), "killed", "killed"), (("polite cancelled",), "cancelled", "run.cancelled.sigterm")],
    ids=["no report", "a report"],
)
def test_a_killed_run_is_cancelled_with_a_reason(
    lion: McpProcess, meet: Meet, before: tuple[str, ...], status: str, reason: str
) -> None:
    meeting = meet("victim")
    run_id = start(lion, *before, "hold victim")
    meeting.begun()
    killed = result(lion, "job.kill", run_id=run_id)
    assert (killed["killed"], killed["reason_code"], killed["signal"]) == (True, "signalled", "SIGTERM")
    assert meeting.has_ended()
    told = ended(lion, run_id)
    assert end_of(told) == (status, "cancelled", reason)
    assert told["alive"] is False
    if not before:
        assert told["terminal_source"] == "kill"


def test_a_report_of_failure_after_a_kill_changes_nothing(lion: McpProcess, meet: Meet) -> None:
    meeting = meet("failing")
    run_id = start(lion, "polite failed", "hold failing")
    meeting.begun()
    assert result(lion, "job.kill", run_id=run_id)["killed"]
    told = ended(lion, run_id)
    assert end_of(told) == ("killed", "cancelled", "killed")
    assert told["late_report"]["status"] == "failed"


# 4


def test_a_kill_is_verified_and_escalates(place: Place, meet: Meet, tmp_path: Path) -> None:
    meeting = meet("deaf")
    with place.server(package_with(tmp_path, grace=1)) as server:
        run_id = start(server, "deaf", "hold deaf")
        meeting.begun()
        killed = result(server, "job.kill", run_id=run_id)
        assert not meeting.lasts()
        assert (killed["killed"], killed["reason_code"], killed["signal"]) == (True, "signalled", "SIGKILL")
        told = ended(server, run_id)
        assert end_of(told) == ("killed", "cancelled", "killed")
        assert told["alive"] is False


# 5


def test_a_kill_reaches_processes_that_left_the_group(lion: McpProcess, meet: Meet) -> None:
    leader, escaped = meet("leader"), meet("escaped")
    run_id = start(lion, "escape escaped", "hold leader")
    assert leader.begun() != escaped.begun()
    killed = result(lion, "job.kill", run_id=run_id)
    assert (killed["killed"], killed["reason_code"]) == (True, "signalled")
    assert not leader.lasts()
    assert not escaped.lasts()
    assert ended(lion, run_id)["outcome"] == "cancelled"


def test_a_kill_after_the_end_stops_what_is_left(lion: McpProcess, meet: Meet) -> None:
    escaped, left = meet("escapee"), meet("remnant")
    run_id = start(lion, "escape escapee", "leave remnant", "report completed")
    escaped.begun()
    left.begun()
    before = ended(lion, run_id)
    assert escaped.lasts()
    result(lion, "job.kill", run_id=run_id)
    assert not escaped.lasts()
    assert not left.lasts()
    after = result(lion, "job.status", run_id=run_id)
    assert end_of(after) == end_of(before) == ("completed", "succeeded", "run.completed.ok")


# 6


@pytest.mark.parametrize(("steps", "code"), [(("say no", "exit 3"), 3), (("die 9",), -9)])
def test_exit_code_without_report_is_failed(lion: McpProcess, steps: tuple[str, ...], code: int) -> None:
    told = ended(lion, start(lion, *steps))
    assert end_of(told) == ("exited", "failed", "exited_nonzero_without_report")
    assert told["exit_code"] == code
    assert told["terminal_source"] == "exit_code"
    assert told["finished_at_precision"] == "observed"
    assert re.search(r"\b3\b" if code == 3 else r"\b9\b|SIGKILL", told["reason_detail"])
    assert re.search(r"do not .*again", told["reason_detail"])


def test_exit_0_without_report_is_indeterminate(lion: McpProcess) -> None:
    told = ended(lion, start(lion, "say something"))
    assert end_of(told) == ("exited", "indeterminate", "process_gone_without_outcome")
    assert told["exit_code"] == 0
    assert re.search(r"do not .*again", told["reason_detail"])
    assert told["terminal_evidence"].keys() >= {"kind", "finding", "observed_at"}


def test_what_li_has_on_record_counts_as_a_report(lion: McpProcess, stub_li: StubLi) -> None:
    stub_li.lifecycle_says("timed_out")
    told = ended(lion, start(lion, "exit 1"))
    assert end_of(told) == ("timed_out", "failed", "run.timed_out.deadline")
    assert told["exit_code"] == 1


def test_an_indeterminate_run_stays_so(lion: McpProcess, stub_li: StubLi) -> None:
    run_id = start(lion, "exit 0")
    before = ended(lion, run_id)
    stub_li.lifecycle_says("completed")
    after = result(lion, "job.status", run_id=run_id)
    assert before["outcome"] == "indeterminate"
    assert plain({**after, "late_report": None}) == plain({**before, "late_report": None})


# 7


def with_another_pid(state: Path, run_id: str, old: int, new: int) -> None:
    """As if the system had given the id of a run's leader to another process."""
    (path,) = (path for path in state.iterdir() if path.is_file() and path.read_bytes()[:16] == b"SQLite format 3\0")
    database = sqlite3.connect(path)
    with database:
        row = database.execute("SELECT * FROM runs WHERE run_id = ?", (run_id,))
        columns = [column for column, *_ in row.description]
        (values,) = row
        changed = [column for column, value in zip(columns, values, strict=True) if value == old]
        assert changed, dict(zip(columns, values, strict=True))
        for column in changed:
            database.execute(f'UPDATE runs SET "{column}" = ? WHERE run_id = ?', (new, run_id))  # noqa: S608
    database.close()


def test_a_recycled_pid_is_recognised(place: Place, meet: Meet) -> None:
    meeting = meet("recycled")
    with place.server() as server:
        run_id = start(server, "hold recycled")
        pid = meeting.begun()
        server.kill()
    meeting.let_go()
    assert meeting.has_ended()
    lifecycle = meet("lifecycle")  # until `li lifecycle` answers, no end is on record
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as stranger:
        with_another_pid(place.state, run_id, pid, stranger.pid)
        with place.server() as server:
            told = result(server, "job.status", run_id=run_id)
            assert (told["status"], told["terminal"]) == ("exited", False)
            assert (told["alive"], told["pid_identity"]) == (False, "recycled")
            request = asked(server, {"op": "job.kill", "args": {"run_id": run_id}})
            lifecycle.begun()
            lifecycle.close()
            (killed,) = answers(server, request)
            assert (killed["killed"], killed["signal"]) == (False, None)
            assert killed["reason_code"] in ("pid_recycled", "group_gone")  # the latter when the end was there first
            (row,) = wait(server, run_id)
            assert row["outcome"] == "indeterminate"
            assert stranger.poll() is None
        assert stranger.stdin is not None
        stranger.stdin.close()
        assert stranger.wait() == 0


# 8


def test_no_status_read_blocks_another_request(lion: McpProcess, stub_li: StubLi, meet: Meet) -> None:
    done = start(lion, "report completed")
    ended(lion, done)
    lifecycle = meet("lifecycle")  # from now on `li lifecycle` waits
    dead = start(lion, "exit 0")
    waiting = asked(lion, {"op": "job.wait", "args": {"run_ids": [dead], "poll_interval": 0.05}})
    lifecycle.begun()
    for verb, args in (
        ("server.info", {}),
        ("job.status", {"run_id": done}),
        ("job.output", {"run_id": dead}),
        ("job.status", {"run_id": dead}),
        ("job.list", {"limit": 5}),
        ("handshake", {}),
    ):
        told = result(lion, verb, **args)  # answered while the stub still holds `lifecycle`
        if args == {"run_id": dead}:
            assert (told["status"], told["terminal"]) == ("exited", False)
    assert result(lion, "job.status", run_id=dead)["possibly_orphaned"]
    assert result(lion, "job.wait", run_ids=[dead], max_wait=0)["stopped_without_end"] == [dead]
    assert lifecycle.lasts()
    another = start(lion, "report completed")  # and it can be started and ended meanwhile
    assert ended(lion, another)["outcome"] == "succeeded"
    assert lifecycle.lasts()
    lifecycle.close()
    (waited,) = answers(lion, waiting)
    assert waited["runs"][0]["outcome"] == "indeterminate"


# 9


def test_a_relative_folder_is_refused(place: Place, stub_li: StubLi) -> None:
    with place.server() as server:
        (server.log_path.parent / "sub").mkdir()
        before = run_ids(server), stub_li.starts(), place.files()
        for cwd in ("sub", "./sub", ".", ""):
            assert refusal(server, query=["exit 0"], prompt="x", cwd=cwd)["kind"] == "invalid_input"
        assert (run_ids(server), stub_li.starts(), place.files()) == before


def test_a_folder_is_where_the_run_works(lion: McpProcess, stub_li: StubLi, tmp_path: Path) -> None:
    run_id = start(lion, "report completed", cwd=str(tmp_path))
    assert ended(lion, run_id)["outcome"] == "succeeded"
    assert stub_li.starts()[-1]["folder"] == str(tmp_path)


# 10


def test_tail_chars_are_bounded(lion: McpProcess) -> None:
    run_id = start(lion, "fill 250000", "report completed")
    ended(lion, run_id)
    for count in (0, -5, 200_001, 1.5, True, "7"):
        assert lion.op("job.output", {"run_id": run_id, "tail_chars": count})["error"]["kind"] == "invalid_input"
    for count in (1, 2, 40_000, 200_000):
        read = result(lion, "job.output", run_id=run_id, tail_chars=count)
        assert read["console"] == "é" * (count - 1) + "E"
        assert (read["truncated"], read["log_bytes"]) == (True, 249_999 * 2 + 1)
    assert len(console(lion, run_id)) == 20_000
    assert len(result(lion, "job.status", run_id=run_id)["log_tail"]) == 4_000


# 11


@pytest.mark.parametrize("verb", ["job.status", "job.output", "job.kill", "job.wait"])
def test_a_run_id_is_checked_before_it_touches_a_path(lion: McpProcess, place: Place, verb: str) -> None:
    known = start(lion, "report completed")
    ended(lion, known)
    evil = (
        "../../../evil",
        f"../{known}",
        f"{known}/",
        f"{known}\n",
        f"x/../{known}",
        known.lower(),
        "",
        str(place.home),
        "..",
        known[:-1],
    )
    for run_id in evil:
        args = {"run_ids": [known, run_id]} if verb == "job.wait" else {"run_id": run_id}
        error = lion.op(verb, args)["error"]
        assert error["kind"] == "invalid_input"
        assert error["detail"]["problems"]


# 13


def test_the_cause_of_a_failure_is_told(lion: McpProcess) -> None:
    run_id = start(lion, "cause RateLimit", "report failed", "exit 1")
    ended(lion, run_id)
    (row,) = (row for row in result(lion, "job.list")["jobs"] if row["run_id"] == run_id)
    told = result(lion, "job.status", run_id=run_id)
    assert end_of(told) == ("failed", "failed", "run.failed.exception")
    assert "RateLimit" in json.dumps(told["details"])
    assert row["details"] == {key: told["details"][key] for key in row["details"]}


# 15


def test_files_of_a_run_are_private(place: Place, lion: McpProcess) -> None:
    told = submit(lion, query=["say hello, report completed"], prompt="a secret task")
    ended(lion, told["run_id"])
    kept = place.files()
    assert Path(told["log"]) in kept
    assert any("a secret task" in path.read_text(errors="replace") for path in kept if path.is_file())
    modes = {path: path.stat().st_mode & 0o777 for path in (place.state, *kept)}
    assert not {path: oct(mode) for path, mode in modes.items() if mode != (0o700 if path.is_dir() else 0o600)}


def test_finished_runs_are_forgotten_and_live_ones_never(
    lion_mcp: Path, stub_li: StubLi, meet: Meet, tmp_path: Path
) -> None:
    for name in ("place", "package"):
        (tmp_path / name).mkdir()
    place = Place.made_in(tmp_path / "place", stub_li.program)
    meeting = meet("living")
    with place.server() as server:
        live = start(server, "hold living", "report completed")
        meeting.begun()
        finished = submit(server, query=["report completed"], prompt="x", idempotency_key="k")
        ended(server, finished["run_id"])
    forgetful = package_with(tmp_path / "package", keep=0)
    with place.server(forgetful) as server:
        end = time.monotonic() + 60
        while result(server, "job.status", run_id=finished["run_id"])["known"]:
            assert time.monotonic() < end, "the finished run is still known"
        told = result(server, "job.status", run_id=finished["run_id"])
        assert (told["record_state"], told["status"], told["terminal"]) == ("absent", "unknown", False)
        assert result(server, "job.status", run_id=live)["status"] == "running"
        assert server.close() == 0
    assert not Path(finished["log"]).parent.exists()
    with place.server() as server:
        assert (
            submit(server, query=["report completed"], prompt="x", idempotency_key="k")["run_id"] != finished["run_id"]
        )
        meeting.let_go()
        assert ended(server, live)["outcome"] == "succeeded"


# 17


def test_an_empty_answer_is_reported_as_such(
    li: Path, lion_mcp: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    claude = FakeClaude.made_in(tmp_path_factory.mktemp("claude"))
    place = Place.made_in(tmp_path_factory.mktemp("real"), li, claude.variables)
    with place.server() as server:
        ids = [
            submit(server, query=["claude/opus"], prompt=f"<<{what}>>")["run_id"]
            for what in ("say something", "empty", "silent")
        ]
        told = [ended(server, run_id) for run_id in ids]
    assert [status["details"]["answer"] for status in told] == ["given", "empty", "empty"]
    assert [end_of(status) for status in told] == [
        ("completed", "succeeded", reason) for reason in ("run.completed.ok", "empty_answer", "empty_answer")
    ]
    assert [status["reason_detail"] is None for status in told] == [True, False, False]


def test_schemas_speak_of_no_refused_parameter(lion: McpProcess) -> None:
    for name in ("agent.submit", "flow.submit", "play.submit", "fanout.submit"):
        told = lion.help(name)
        assert not [word for word in told["refused"] if word in told["schema"]["properties"]]
        assert "prompt_flag" not in json.dumps(told["schema"])


def test_a_caller_s_mistakes_do_not_fill_the_log(place: Place) -> None:
    with place.server() as server:
        for wrong in ({}, {"query": ["a", "b", "c"]}, {"query": ["m"], "prompt": "x", "cwd": "/nonexistent"}, {"x": 1}):
            assert refusal(server, **wrong)["kind"] == "invalid_input"
        assert server.op("job.status", {"run_id": "x"})["error"]["kind"] == "invalid_input"
        log = server.log_path.read_text()
    assert "Traceback" not in log
    assert len(log) < 4_000
