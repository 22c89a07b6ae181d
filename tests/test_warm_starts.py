"""A program that starts at once is to itself, and to whoever starts it, what one of an interpreter of its own is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import warm_starts
from tests.warm_starts import run, start

PATIENCE = 60.0  # seconds
# Tells what a program can see of its start, and then ends as it is told to.
PROGRAM = """
import json, os, signal, sys
told = {
    "name": __name__,
    "arguments": sys.argv,
    "paths": [path for path in sys.path if "site-packages" not in path and "lib/python" not in path],
    "folder": os.getcwd(),
    "environment": dict(os.environ),
    "leads": os.getsid(0) == os.getpid(),
    "ignored": [number for number in range(1, 32) if signal.getsignal(number) == signal.SIG_IGN],
    "interrupted": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "files": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:3],
    "more files": len(os.listdir("/proc/self/fd")) - 4,
    "forms": [(stream.encoding, stream.errors, stream.line_buffering) for stream in (sys.stdin, sys.stdout, sys.stderr)],
    "read": sys.stdin.read(),
    "main": sys.modules["__main__"].__dict__.get("told") is not None,
}
print(json.dumps(told))
print("said on stderr", file=sys.stderr)
match sys.argv[-1].split():
    case ["exit", code]:
        sys.exit(int(code))
    case ["signal", number]:
        os.kill(os.getpid(), int(number))
    case ["raise"]:
        raise ValueError("raised")
"""


@pytest.fixture(params=["warm", "cold"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "warm" and warm_starts.COLD:
        pytest.skip("all programs are started by interpreters of their own")
    monkeypatch.setattr(warm_starts, "COLD", request.param == "cold")
    return str(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "working").mkdir()
    return tmp_path


def told(how: str, folder: Path, arguments: list[str], **options: Any) -> Any:
    """What a program says of its start, and how it ended, when it is started in this way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warm_starts, "COLD", how == "cold")
        pipe = subprocess.PIPE
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": f"{folder}:/nowhere", "ONE": "é"}
        program = start(
            arguments,
            cwd=folder / "working",
            env=environment,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            **options,
        )
        assert program.stdin is not None
        program.stdin.write("ü\n")
        program.stdin.flush()
        printed, errors = program.communicate(timeout=PATIENCE)
        return json.loads(printed), errors, program.wait()


@pytest.mark.skipif(warm_starts.COLD, reason="all programs are started by interpreters of their own")
@pytest.mark.parametrize("session", [False, True])
@pytest.mark.parametrize("ignored", [[], [signal.SIGHUP, signal.SIGINT]])
@pytest.mark.parametrize("is_module", [True, False])
def test_a_program_finds_all_as_it_would_without(
    folder: Path, session: bool, ignored: list[signal.Signals], is_module: bool
) -> None:
    arguments = [*(["-m", "program"] if is_module else [str(folder / "program.py")]), "an argument", "exit 3"]
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
    try:
        warm, cold = (told(how, folder, arguments, start_new_session=session) for how in ("warm", "cold"))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert warm == cold
    found, errors, code = warm
    assert (found["arguments"][1:], found["read"], errors, code) == (
        ["an argument", "exit 3"],
        "ü\n",
        "said on stderr\n",
        3,
    )
    assert (found["leads"], signal.SIGHUP in found["ignored"]) == (session, bool(ignored))
    assert found["more files"] == 0


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("exit 0", 0),
        ("exit 255", 255),
        ("raise", 1),
        (f"signal {signal.SIGKILL:d}", -9),
        (f"signal {signal.SIGTERM:d}", -15),
    ],
)
def test_how_it_has_ended_is_told(folder: Path, how: str, ending: str, code: int) -> None:
    done = run(["-m", "program", ending], cwd=folder, timeout=PATIENCE)
    assert done.returncode == code
    assert (done.stderr.splitlines()[-1] == "ValueError: raised") == (ending == "raise")


def test_it_is_there_until_its_end_was_told(folder: Path, how: str) -> None:
    waiting = "import sys; print('up', flush=True); sys.stdin.read()"
    (folder / "waiting.py").write_text(waiting, encoding="utf-8")
    pipe = subprocess.PIPE
    program = start(["-m", "waiting"], cwd=folder, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT)
    assert program.stdin is not None
    assert program.stdout is not None
    with program.stdin, program.stdout:
        assert program.stdout.readline() == b"up\n"
        assert program.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            program.wait(0)
        os.kill(program.pid, 0)
        program.send_signal(signal.SIGTERM)
        assert program.wait(PATIENCE) == program.wait() == program.poll() == -signal.SIGTERM
        program.kill()  # which reaches nobody
        assert program.returncode == -signal.SIGTERM
        with pytest.raises(ProcessLookupError):
            os.kill(program.pid, 0)


def test_files_can_be_given(folder: Path, how: str) -> None:
    source, sink = folder / "in", folder / "out"
    source.write_text("from a file", encoding="utf-8")
    with source.open("rb") as stdin, sink.open("wb") as stdout:
        program = start(["-m", "program", "exit 0"], cwd=folder, stdin=stdin, stdout=stdout, stderr=subprocess.STDOUT)
        assert program.wait(PATIENCE) == 0
    told: Any = sink.read_text(encoding="utf-8").splitlines()
    assert json.loads(next(line for line in told if line.startswith("{")))["read"] == "from a file"
    assert "said on stderr" in told
