"""How runs ended: what the reporter writes down, what li's store says, whether anybody answered, and why a run failed."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from .hand_written import RUN_ID, HandWritten, imported

OK = "run.completed.ok"
GARBAGE = (
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"status": NaN}',
    b'{"class": ["x"], "status": {"a": 1}}',
    b'{"status": "two words", "class": "two words"}',
    b'{"status": "", "class": ""}',
    b"9" * 5_000,
    b'{"status": "' + b"x" * 2_000_000 + b'"}',
    b'{"status": "completed"' + b" " * 200_000 + b"}",
)


@pytest.fixture(scope="module")
def parts(lion_mcp: Path) -> Iterator[HandWritten]:
    with imported(lion_mcp) as made:
        yield made


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where li keeps its runs."""
    monkeypatch.setenv("LIONAGI_HOME", str(tmp_path / "lionagi"))
    return tmp_path / "lionagi"


def reported(
    parts: HandWritten, folder: Path, told: object, status: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Starts the reporter as li does, with what li tells in its environment and on its standard input."""
    payload = told if isinstance(told, str) else json.dumps(told)
    variables = {"LIONAGI_NOTIFY_PAYLOAD": payload} | ({"LIONAGI_NOTIFY_STATUS": status} if status else {})
    return subprocess.run(
        parts.notices.reporter(folder), input=payload, env=variables, capture_output=True, text=True, check=False
    )


def ended(parts: HandWritten, record: Any, ask: Any = None) -> Any:
    return asyncio.run(parts.handlers.runs_ended(record, ask))


def with_report(record: Any, **told: Any) -> Any:
    (record.folder / "report.json").write_text(json.dumps({"status": "completed", "reason_code": OK, **told}))
    return record


# What li tells when it is there.


def test_the_reporter_writes_down_what_li_tells(parts: HandWritten, tmp_path: Path, home: Path) -> None:
    record, now = parts.record(tmp_path), time.time()
    done = reported(
        parts, record.folder, {"status": "timed_out", "reason_code": "run.timed_out.deadline", "ended_at": now}
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (path,) = record.folder.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    end = ended(parts, record)
    assert (end.status, end.outcome, end.source) == ("timed_out", "failed", "report")
    assert (end.reason_code, end.at) == ("run.timed_out.deadline", datetime.fromtimestamp(now, UTC))


def test_a_later_report_takes_the_place_of_an_earlier_one(parts: HandWritten, tmp_path: Path, home: Path) -> None:
    record = parts.record(tmp_path)
    for status in ("timed_out", "completed"):
        assert reported(parts, record.folder, {"status": status}).returncode == 0
    assert ended(parts, record).status == "completed"
    assert [path.name for path in record.folder.iterdir()] == ["report.json"]


@pytest.mark.parametrize("told", ["", "{", "[]", '"x"', "[" * 50_000])
def test_a_payload_that_is_none(parts: HandWritten, tmp_path: Path, home: Path, told: str) -> None:
    record = parts.record(tmp_path)
    assert reported(parts, record.folder, told).returncode == 0
    assert ended(parts, record) is None
    assert reported(parts, record.folder, told, status="failed").returncode == 0
    assert ended(parts, record).status == "failed"


def test_a_folder_that_is_gone_is_told_on_stderr(parts: HandWritten, tmp_path: Path) -> None:
    done = reported(parts, tmp_path / "missing", {"status": "completed"})
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("completed", "succeeded"),
        ("cancelled", "cancelled"),
        ("aborted", "cancelled"),
        ("failed", "failed"),
        ("timed_out", "failed"),
        ("completed_empty", "failed"),
        ("COMPLETED", "failed"),
        ("news", "failed"),
    ],
)
def test_outcomes(parts: HandWritten, tmp_path: Path, home: Path, status: str, outcome: str) -> None:
    end = ended(parts, with_report(parts.record(tmp_path), status=status))
    assert (end.status, end.outcome) == (status, outcome)


def test_reasons(parts: HandWritten, tmp_path: Path, home: Path) -> None:
    record = parts.record(tmp_path)
    cases: dict[tuple[str, object], str | None] = {
        ("completed_empty", None): "no_artifacts",
        ("completed_empty", "run.completed_empty.no_evidence"): "run.completed_empty.no_evidence",
        ("failed", None): None,
        ("failed", "two words"): None,
        ("failed", "x" * 101): None,
        ("failed", 7): None,
    }
    for (status, code), expected in cases.items():
        assert ended(parts, with_report(record, status=status, reason_code=code)).reason_code == expected


@pytest.mark.parametrize("at", [None, True, "now", -1e30, 1e30, 0, 4e9, "NaN"])
def test_moments_that_cannot_be(parts: HandWritten, tmp_path: Path, home: Path, at: object) -> None:
    assert ended(parts, with_report(parts.record(tmp_path), ended_at=at)).at is None


@pytest.mark.parametrize("content", GARBAGE, ids=range(len(GARBAGE)))
def test_files_of_any_kind_are_no_report(parts: HandWritten, tmp_path: Path, home: Path, content: bytes) -> None:
    record = parts.record(tmp_path)
    for name in ("report.json", "cause.json", "notice.json"):
        (record.folder / name).write_bytes(content)
    assert ended(parts, record) is None
    details = asyncio.run(parts.handlers.runs_details(record))
    assert details["notice"] == {"state": "unknown", "failure": None, "exit_code": None}
    assert details.get("failure_cause", {}).get("class") in (None, "unknown")


@pytest.mark.parametrize("status", ["running", "unknown", "exited"])
def test_a_word_for_what_has_no_end_is_no_report(parts: HandWritten, tmp_path: Path, home: Path, status: str) -> None:
    assert ended(parts, with_report(parts.record(tmp_path), status=status)) is None


def test_a_pipe_or_a_folder_is_no_report(parts: HandWritten, tmp_path: Path, home: Path) -> None:
    record = parts.record(tmp_path)
    os.mkfifo(record.folder / "report.json")
    (record.folder / "cause.json").mkdir()
    assert ended(parts, record) is None


# What its store says afterwards.


def answering(value: Mapping[str, Any] | None, **more: Any) -> tuple[Any, list[Any]]:
    asked: list[Any] = []

    async def ask(words: list[str], **limits: float) -> Any:
        asked.append((words, limits))
        lifecycle = {"available": value is not None, "value": value, "reason_code": None, "detail": None, **more}
        return {"contract_version": 1, "data": {"run_id": RUN_ID, "lifecycle": lifecycle}}

    return ask, asked


def test_a_store_that_knows_the_end(parts: HandWritten, tmp_path: Path, home: Path) -> None:
    now = time.time()
    ask, asked = answering(
        {"terminal": True, "status": "cancelled", "reason_code": "run.cancelled.sigterm", "ended_at": now}
    )
    end = ended(parts, parts.record(tmp_path), ask)
    assert asked == [(["lifecycle", RUN_ID], {"timeout": 20.0})]
    assert (end.status, end.outcome, end.source) == ("cancelled", "cancelled", "lifecycle")
    assert (end.reason_code, end.at) == ("run.cancelled.sigterm", datetime.fromtimestamp(now, UTC))


def test_a_report_is_enough(parts: HandWritten, tmp_path: Path, home: Path) -> None:
    ask, asked = answering({"terminal": True, "status": "failed"})
    assert ended(parts, with_report(parts.record(tmp_path)), ask).status == "completed"
    assert asked == []


@pytest.mark.parametrize(
    "value",
    [
        {"found": False, "terminal": False, "status": None},
        {"found": True, "terminal": False, "status": "running"},
        {"terminal": True, "status": None},
        {"terminal": True, "status": "two words"},
        {"terminal": True, "status": "running"},
        {"terminal": True, "status": "unknown"},
        {"terminal": True, "status": "exited"},
        {"terminal": "yes", "status": "completed"},
        {},
    ],
)
def test_a_store_that_does_not_know(parts: HandWritten, tmp_path: Path, home: Path, value: dict[str, Any]) -> None:
    ask, _ = answering(value)
    assert ended(parts, parts.record(tmp_path), ask) is None


def test_a_store_that_is_not_there_or_cannot_be_read(parts: HandWritten, tmp_path: Path, home: Path) -> None:
    record = parts.record(tmp_path)
    ask, _ = answering(None, reason_code="not_found")
    assert ended(parts, record, ask) is None
    for reason in ("unreadable", None):  # to be asked again
        ask, _ = answering(None, reason_code=reason)
        with pytest.raises(parts.interface.Refusal, match="store"):
            ended(parts, record, ask)
    assert ended(parts, record) is None


def test_an_answer_of_another_form_is_to_be_asked_for_again(parts: HandWritten, tmp_path: Path, home: Path) -> None:
    answers: tuple[Any, ...] = (None, [], {"data": None}, {"data": {"lifecycle": "x"}})
    for answer in answers:

        async def ask(words: list[str], *, answer: Any = answer, **limits: float) -> Any:
            return answer

        with pytest.raises(parts.interface.Refusal):
            ended(parts, parts.record(tmp_path), ask)


# Why it failed.


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (
            {"class": "RateLimitError", "retryable": True, "status_source": "received", "provider_status": 429},
            {"class": "RateLimitError", "retryable": True, "status_source": "received", "provider_status": 429},
        ),
        (
            {"class": "unknown", "retryable": False, "status_source": "absent", "provider_status": 503},
            {"class": "unknown", "retryable": False, "status_source": "absent"},
        ),
        (
            {"class": "x" * 65, "retryable": 1, "status_source": "received", "provider_status": "429"},
            {"class": "unknown", "retryable": False, "status_source": "unreadable"},
        ),
        (
            {"status_source": ["received"], "message": "the key is sk-secret"},
            {"class": "unknown", "retryable": False, "status_source": "unreadable"},
        ),
    ],
)
def test_the_cause_of_a_failure(
    parts: HandWritten, tmp_path: Path, home: Path, written: dict[str, Any], told: dict[str, Any]
) -> None:
    record = with_report(parts.record(tmp_path), status="failed")
    (record.folder / "cause.json").write_text(json.dumps(written))
    assert ended(parts, record).details == {"failure_cause": told}
    assert asyncio.run(parts.handlers.runs_details(record))["failure_cause"] == told


def test_a_success_has_no_cause(parts: HandWritten, tmp_path: Path, home: Path) -> None:
    record = with_report(parts.record(tmp_path))
    # A run that went on after its time was up leaves the cause of that behind.
    (record.folder / "cause.json").write_text('{"class": "unknown", "retryable": false, "status_source": "absent"}')
    end = ended(parts, record)
    assert "failure_cause" not in end.details
    assert "failure_cause" not in asyncio.run(parts.handlers.runs_details(parts.record(tmp_path, end)))


# Whether anybody answered.


def conversation(*messages: tuple[str, Any]) -> dict[str, Any]:
    said = [
        {"role": role, "content": {"assistant_response": text} if role == "assistant" else {}}
        for role, text in messages
    ]
    return {"messages": {"collections": said}}


ANSWERED = conversation(("user", ""), ("assistant", "Done."))
EMPTY = conversation(("user", ""))
BLANK = conversation(("user", ""), ("assistant", " \n"))
RESUMED = conversation(("user", ""), ("assistant", "Before."), ("user", ""))
IN_PARTS = conversation(("user", ""), ("assistant", "I look."), ("action", ""), ("assistant", ""))
BUILT = conversation(("user", ""), ("assistant", {"a": 1}))


def kept_by_li(home: Path, branches: Mapping[str, object], run_id: str = RUN_ID, **summary: Any) -> Path:
    (folder := home / "runs" / run_id / "branches").mkdir(parents=True)
    for name, content in branches.items():
        (folder / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    (folder.parent / "run.json").write_text(json.dumps({"branch_id": "first", "status": "completed", **summary}))
    return folder.parent


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (ANSWERED, "given"),
        (IN_PARTS, "given"),
        (BUILT, "given"),
        (EMPTY, "empty"),
        (BLANK, "empty"),
        (RESUMED, "empty"),
        (conversation(), "unknown"),
        ({"messages": []}, "unknown"),
        ({"messages": {"collections": ["x", {"role": 7}]}}, "unknown"),
        ("{", "unknown"),
    ],
)
def test_the_answer_to_an_agent(parts: HandWritten, tmp_path: Path, home: Path, content: object, answer: str) -> None:
    kept_by_li(home, {"first": content, "before": EMPTY})
    end = ended(parts, with_report(parts.record(tmp_path)))
    assert (end.outcome, end.details) == ("succeeded", {"answer": answer})
    assert end.reason_code == ("empty_answer" if answer == "empty" else OK)
    assert (end.reason_detail is None) == (answer != "empty")


@pytest.mark.parametrize(
    ("kind", "branches", "answer"),
    [
        ("flow", {"first": ANSWERED, "a": ANSWERED, "b": ANSWERED}, "given"),
        ("play", {"first": EMPTY, "a": ANSWERED}, "given"),
        ("fanout", {"first": ANSWERED, "a": EMPTY, "b": BLANK}, "empty"),
        ("fanout", {"first": ANSWERED, "a": EMPTY, "b": ANSWERED}, "partly_empty"),
        ("flow", {"first": ANSWERED, "a": EMPTY, "b": "{"}, "unknown"),
        ("flow", {"first": ANSWERED}, "unknown"),  # a plan was wanted
        ("fanout", {"first": ANSWERED}, "empty"),
        ("fanout", {}, "empty"),
        ("fanout", dict.fromkeys(map(str, range(70)), EMPTY), "unknown"),
    ],
)
def test_the_answers_of_workers(
    parts: HandWritten, tmp_path: Path, home: Path, kind: str, branches: dict[str, object], answer: str
) -> None:
    kept_by_li(home, branches)
    end = ended(parts, with_report(parts.record(tmp_path, kind=kind)))
    assert (end.outcome, end.details) == ("succeeded", {"answer": answer})
    assert end.reason_code == ("empty_answer" if answer == "empty" else OK)
    if answer == "partly_empty":
        assert end.reason_detail == "1 of 2 workers answered with nothing."


def test_a_reason_that_says_more_is_kept(parts: HandWritten, tmp_path: Path, home: Path) -> None:
    kept_by_li(home, {"first": EMPTY})
    end = ended(parts, with_report(parts.record(tmp_path), reason_code="run.completed.gate_rejected"))
    assert (end.reason_code, end.details["answer"]) == ("run.completed.gate_rejected", "empty")


def test_nothing_is_said_of_a_run_that_went_on_elsewhere(parts: HandWritten, tmp_path: Path, home: Path) -> None:
    kept_by_li(home, {"first": EMPTY}, status="timed_out")
    assert ended(parts, with_report(parts.record(tmp_path))).details == {"answer": "unknown"}
    other = "20260930T120001-0a1b2c"
    kept_by_li(home, {"first": ANSWERED}, other)
    record = with_report(parts.record(tmp_path), save_dir=str(home / "runs" / other / "artifacts"))
    assert ended(parts, record).details == {"answer": "given"}
    assert asyncio.run(parts.handlers.runs_details(record))["run_dir"] == str(home / "runs" / other)


@pytest.mark.parametrize("folder", ["/etc/artifacts", "/x/20260930T120001-0a1b2c/artifacts", "runs/x", "a\0b", "", 7])
def test_other_folders_are_not_taken_for_a_run_s(
    parts: HandWritten, tmp_path: Path, home: Path, folder: object
) -> None:
    record = with_report(parts.record(tmp_path), save_dir=folder)
    assert asyncio.run(parts.handlers.runs_details(record))["run_dir"] == str(home / "runs" / RUN_ID)


# What else is told of it.


def test_what_li_keeps_of_a_run(parts: HandWritten, tmp_path: Path, home: Path) -> None:
    folder = kept_by_li(home, {}, name="a\u202eb", deep=[[1.5]])
    for name in ("b.md", "a/c.md", "a\nb"):
        (path := folder / "artifacts" / name).parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (folder / "artifacts" / "link").symlink_to(tmp_path)
    (folder / "artifacts" / "dangling").symlink_to("nowhere")
    told = asyncio.run(parts.handlers.runs_details(parts.record(tmp_path)))
    assert told == {
        "run_dir": str(folder),
        "run": {"branch_id": "first", "status": "completed", "name": "a\\u202eb", "deep": [[1.5]]},
        "artifacts_dir": str(folder / "artifacts"),
        "artifacts": ["a\nb", "a/c.md", "b.md"],
        "artifacts_state": "ok",
        "notice": {"state": "none", "failure": None, "exit_code": None},
    }


def test_artifacts_that_were_saved_elsewhere(parts: HandWritten, tmp_path: Path, home: Path) -> None:
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "worker.md").touch()
    kept_by_li(home, {}, artifact_root=str(tmp_path / "saved"))
    told = asyncio.run(parts.handlers.runs_details(parts.record(tmp_path)))
    assert (told["artifacts_dir"], told["artifacts"]) == (str(tmp_path / "saved"), ["worker.md"])


def test_the_list_of_artifacts_is_bounded(parts: HandWritten, tmp_path: Path, home: Path) -> None:
    folder = kept_by_li(home, {}) / "artifacts"
    folder.mkdir()
    for number in range(501):
        (folder / str(number)).touch()
    told = asyncio.run(parts.handlers.runs_details(parts.record(tmp_path)))
    assert (len(told["artifacts"]), told["artifacts_state"]) == (500, "cut")


def test_nothing_is_kept_of_a_run_that_li_never_saw(parts: HandWritten, tmp_path: Path, home: Path) -> None:
    told = asyncio.run(parts.handlers.runs_details(parts.record(tmp_path)))
    assert (told["run"], told["artifacts"], told["artifacts_state"]) == (None, [], "ok")


def test_a_summary_that_is_too_large_is_not_told(parts: HandWritten, tmp_path: Path, home: Path) -> None:
    kept_by_li(home, {}, more="x" * 70_000)
    assert asyncio.run(parts.handlers.runs_details(parts.record(tmp_path)))["run"] is None


def test_the_reporter_needs_nothing_but_python(parts: HandWritten) -> None:
    command = parts.notices.reporter(Path("/run"))
    assert command[0] == sys.executable
    assert command[1:3] == ["-I", "-S"]
    source = Path(command[3]).read_text()
    named = {line.split()[1].partition(".")[0] for line in source.splitlines() if line.startswith(("import ", "from "))}
    assert named <= sys.stdlib_module_names
