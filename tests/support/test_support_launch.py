"""Starts: what hooks may shape, what the system takes, and what a started run has around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from verbc.support.launch import Launch, StartError, is_too_long, start

ENVIRONMENT = {"PATH": os.environ["PATH"]}
# Tells everything about itself that a start decides.
TELL = """
import json, os, sys
flags = [os.get_blocking(fd) for fd in (0, 1, 2)]
print(json.dumps({
    "argv": sys.argv[1:], "cwd": os.getcwd(), "environment": dict(os.environ), "pid": os.getpid(),
    "group": os.getpgid(0), "session": os.getsid(0), "stdin": os.read(0, 1).decode(),
    "files": {name: open(name).read() for name in sys.argv[1:] if os.path.isabs(name)},
    "open": [fd for fd in map(int, os.listdir("/dev/fd")) if fd > 2 and os.path.exists(f"/dev/fd/{fd}")],
}))
print("and on stderr", file=sys.stderr)
"""
PYTHON = [sys.executable, "-I", "-c", TELL]


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    return Launch("20260501T120000-abcdef", tmp_path / "run", ["work"])


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_flags_stand_before_the_separator_and_positionals_behind_it(launch: Launch) -> None:
    launch.argv += ["--level=3", "--", "a"]
    launch.flag("--notify", "x --y")
    launch.positional("--b")
    launch.flag("--bare")
    assert launch.argv == ["work", "--level=3", "--notify=x --y", "--bare", "--", "a", "--b"]


def test_the_first_positional_brings_the_separator(launch: Launch) -> None:
    launch.flag("--one")
    launch.positional("--")
    launch.flag("--two")
    launch.positional("c")
    assert launch.argv == ["work", "--one", "--two", "--", "--", "c"]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "/a", "../a", "console.log", ".hidden", "a\0", "a b", "x" * 101]
)
def test_a_file_of_a_run_has_a_plain_name(launch: Launch, name: str) -> None:
    with pytest.raises(ValueError, match="plain name"):
        launch.file(name, "text")


def test_a_file_of_a_run_has_a_name_of_its_own(launch: Launch) -> None:
    launch.file("a", "1")
    with pytest.raises(ValueError, match="of its own"):
        launch.file("a", "2")


def test_nothing_exists_before_the_start(launch: Launch) -> None:
    path = launch.file("prompt.txt", "text")
    assert not launch.folder.exists()
    assert path == str(launch.folder / "prompt.txt")


def test_a_started_run(launch: Launch, tmp_path: Path) -> None:
    prompt = launch.file("prompt.txt", "Grüße\n")
    launch.argv.append(prompt)
    inherited = os.open(os.devnull, os.O_RDONLY)
    umask = os.umask(0)
    try:
        child = start(launch, PYTHON, {**ENVIRONMENT, "MARK": "x"}, str(tmp_path))
        assert child.wait() == 0
    finally:
        os.umask(umask)
        os.close(inherited)
    first, second = sorted((launch.folder / "console.log").read_text().splitlines(), reverse=True)
    told = json.loads(first)
    assert second == "and on stderr"
    assert told["argv"] == ["work", prompt]
    assert told["files"] == {prompt: "Grüße\n"}
    assert told["cwd"] == str(tmp_path)
    assert told["environment"].items() >= {"MARK": "x"}.items()
    assert "HOME" not in told["environment"]
    assert told["pid"] == told["group"] == told["session"] == child.pid
    assert told["stdin"] == ""
    assert told["open"] == []
    assert mode(launch.folder) == 0o700
    assert {mode(path) for path in launch.folder.iterdir()} == {0o600}


def test_the_program_is_found_from_the_folder_of_the_server(
    launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho here\n")
    program.chmod(0o700)
    monkeypatch.chdir(tmp_path)
    child = start(launch, ["./program"], ENVIRONMENT, str(tmp_path / "elsewhere"))
    assert child.wait() == 0
    assert (launch.folder / "console.log").read_text() == "here\n"


@pytest.mark.parametrize(
    ("program", "cwd", "reason"),
    [
        (["no-such-program"], "/", "No such file or directory"),
        (["/"], "/", "Permission denied"),
        (PYTHON, "/no/such/folder", "No such file or directory"),
        ([*PYTHON, "x" * 200_000], "/", "Argument list too long"),
        ([*PYTHON, "a\0b"], "/", "unknown reason"),
    ],
)
def test_what_the_system_does_not_start(launch: Launch, program: list[str], cwd: str, reason: str) -> None:
    with pytest.raises(StartError) as raised:
        start(launch, program, ENVIRONMENT, cwd)
    assert str(raised.value) == f"It could not be started: {reason}."


def test_a_folder_that_is_there_already_belongs_to_something_else(launch: Launch) -> None:
    launch.folder.mkdir()
    with pytest.raises(StartError, match="could not be written: File exists"):
        start(launch, PYTHON, ENVIRONMENT, "/")


def test_the_log_is_made_after_everything_else(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    launch.file("prompt.txt", "text")
    there: list[set[str]] = []
    opened = os.open

    def noting(path: str, *rest: int, **named: int) -> int:
        if str(path).startswith(str(launch.folder)):
            there.append({entry.name for entry in launch.folder.iterdir()})
        return opened(path, *rest, **named)

    monkeypatch.setattr(os, "open", noting)
    start(launch, ["true"], ENVIRONMENT, "/").wait()
    assert there == [set(), {"prompt.txt"}]


def test_what_is_too_long_is_known_before_anything_exists() -> None:
    longest = 32 * os.sysconf("SC_PAGE_SIZE") - 1
    assert not is_too_long(["true", "x" * longest], ENVIRONMENT)
    assert is_too_long(["true", "x" * (longest + 1)], ENVIRONMENT)
    assert is_too_long(["true"], {"NAME": "x" * (longest - len("NAME=")) + "x"})
    assert is_too_long(["true"] + ["x" * 1000] * (os.sysconf("SC_ARG_MAX") // 1000), ENVIRONMENT)
    assert not is_too_long(["true"] + ["é" * 100] * 100, ENVIRONMENT)


@pytest.mark.parametrize("short", [0, 1])
def test_the_longest_argument_is_what_the_system_says(short: int) -> None:
    argument = "x" * (32 * os.sysconf("SC_PAGE_SIZE") - short)
    refused = is_too_long(["true", argument], ENVIRONMENT)
    try:
        subprocess.run(["true", argument], check=True)
    except OSError:
        assert refused
    else:
        assert not refused
