"""The log: JSON lines, without the values that were sent."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from verbc.support import log
from verbc.support.stderr import PIECE, unhurried


@pytest.fixture(autouse=True)
def configured(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    with monkeypatch.context() as streams:
        for name in ("stdout", "stderr"):
            streams.setattr(sys, name, getattr(sys, name))  # put back at the end
        log.configure()
        yield
    logging.captureWarnings(False)
    root.handlers[:], root.level = before


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_an_event_is_one_line_with_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    log.event("warning", "something\nhappened", verb="a.b", count=2)
    (entry,) = lines(capsys)
    assert entry["level"] == "warning"
    assert (entry["event"], entry["verb"], entry["count"]) == ("something", "a.b", 2)
    assert entry["time"].endswith("+00:00")


def test_an_exception_is_logged_without_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        try:
            int("secret")
        except ValueError as error:
            raise RuntimeError("another secret") from error
    except RuntimeError as error:
        log.failure("it failed", error, correlation_id="c1")
    (entry,) = lines(capsys)
    assert entry["correlation_id"] == "c1"
    assert [part["type"] for part in entry["error"]] == ["RuntimeError", "ValueError"]
    assert f"{__file__}:" in entry["error"][0]["frames"][-1]
    assert "secret" not in json.dumps(entry)


def test_what_libraries_log_is_taken_without_its_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        int("secret")
    except ValueError:
        logging.getLogger("some.library").exception("handler for %r raised", "secret")
    (entry,) = lines(capsys)
    assert (entry["logger"], entry["event"]) == ("some.library", "handler for %r raised")
    assert entry["error"][0]["type"] == "ValueError"
    assert "secret" not in json.dumps(entry)


def test_warnings_are_lines_too(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("take care", UserWarning, stacklevel=1)
    (entry,) = lines(capsys)
    assert "take care" in entry["event"]


def test_a_stderr_that_nobody_reads_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as unread, os.fdopen(writing, "w", encoding="utf-8") as stderr:
        monkeypatch.setattr(sys, "stderr", unhurried(stderr.fileno()))
        for _ in range(200):
            log.failure("x" * 200, chained(20))  # would block for ever if it waited
        monkeypatch.undo()
        *whole, _last = unread.read1(10_000_000).splitlines()
        assert len(whole) > 8
        assert {json.loads(line)["event"] for line in whole} == {"x" * 200}


def test_the_process_prints_where_nothing_waits() -> None:
    log.configure()
    for stream in (sys.stdout, sys.stderr):
        assert stream.fileno() == 2
        assert type(stream.buffer) is type(unhurried().buffer)


def chained(depth: int) -> Exception:
    """An exception with more causes than are told, each of them from some calls down."""

    def fail(left: int) -> None:
        if left:
            fail(left - 1)
        raise ValueError("secret")

    caught: Exception = ValueError()
    for _ in range(6):
        try:
            try:
                raise caught
            except ValueError:
                fail(depth)
        except ValueError as error:
            caught = error
    return caught


@pytest.mark.parametrize("depth", [1, 10, 200])
def test_a_line_fits_into_a_pipe_at_once(depth: int, capsys: pytest.CaptureFixture[str]) -> None:
    log.failure("it failed", chained(depth), verb="a.b")
    text = capsys.readouterr().err
    entry = json.loads(text)
    assert len(text.encode()) <= PIECE
    assert [part["type"] for part in entry["error"]] == ["ValueError"] * 4
    assert all(part["frames"][-1].endswith(" fail") for part in entry["error"])


def test_of_what_is_too_long_all_the_same_the_beginning_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    log.event("error", "x" * 10_000)
    text = capsys.readouterr().err
    assert len(text) <= PIECE
    assert json.loads(text)["event"] == "x" * 200


def test_correlation_ids_differ() -> None:
    assert re.fullmatch(r"corr_[0-9a-f]{16}", log.correlation_id())
    assert log.correlation_id() != log.correlation_id()
