#!/usr/bin/env python3
"""A stand-in for `li` that can be started in the background, and tells how its runs went as `li lifecycle` does.

`agent` and `orchestrate …` do what their first positional says, a row of steps between commas:

say WORDS      prints these words
fill N         prints N characters, the last of them an E
hold NAME      opens the pipe NAME.up in the folder of the stub, says its process id there, waits for NAME.go to be written to
deaf           from now on no signal but SIGKILL ends it
polite STATUS  on SIGTERM it reports this status and ends with exit code 1
report STATUS  runs the command that was given with --notify, as li does
cause CLASS    writes the file that LIONAGI_MCP_CAUSE_FILE names, as li does
leave NAME     a child stays that keeps the output open, and waits like `hold`
escape NAME    the same, in a session of its own, with the output closed
exit N         ends with this exit code
die N          ends by this signal

Each such start appends a line to the file `starts` there: `{"argv": [...], "environment": {...}, "folder": ..., "pid": ...}`.

`lifecycle RUN_ID` says what the file `lifecycle` there holds: a status, or nothing, which is a run that it does not know.
When there is a pipe `lifecycle.up`, it waits there first like `hold`. All other commands are those of stub_li.py, and so is
`lifecycle` as soon as its settings name a mode.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))
import stub_li

FOLDER = Path(os.environ["LIONAGI_STUB_FOLDER"])
# Status → outcome, reason code.
ENDS = {
    "completed": ("succeeded", "run.completed.ok"),
    "failed": ("failed", "run.failed.exception"),
    "timed_out": ("failed", "run.timed_out.deadline"),
    "cancelled": ("cancelled", "run.cancelled.sigterm"),
}


def meet(name: str) -> None:
    """The pipe stays open, here and in every child, for as long as they live."""
    pipe = os.open(FOLDER / f"{name}.up", os.O_WRONLY)
    os.set_inheritable(pipe, True)
    os.write(pipe, b"%d\n" % os.getpid())


def wait_for(name: str) -> None:
    with open(FOLDER / f"{name}.go", "rb", buffering=0) as pipe:
        pipe.read(1)


def hold(name: str) -> None:
    meet(name)
    wait_for(name)


def say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def fill(count: str) -> None:
    sys.stdout.write("é" * (int(count) - 1) + "E")
    sys.stdout.flush()


def deaf(_: str) -> None:
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def polite(status: str) -> None:
    def leave(*_: object) -> None:
        report(status)
        os._exit(1)

    signal.signal(signal.SIGTERM, leave)


def notify_command() -> list[str]:
    for index, word in enumerate(sys.argv):
        if word == "--notify":
            return shlex.split(sys.argv[index + 1])
        if word.startswith("--notify="):
            return shlex.split(word.removeprefix("--notify="))
    sys.exit("nobody is to be told")


def report(status: str) -> None:
    now = time.time()
    payload = json.dumps(
        {
            "invocation_id": None,
            "kind": sys.argv[1],
            "playbook": None,
            "status": status,
            "reason_code": ENDS[status][1],
            "save_dir": None,
            "cwd": os.getcwd(),
            "exit_class": "success" if status == "completed" else "error",
            "started_at": now,
            "ended_at": now,
        }
    )
    filled = [
        word.replace("{status}", status).replace("{payload}", payload).replace("{invocation_id}", "")
        for word in notify_command()
    ]
    kept = {name: value for name, value in os.environ.items() if name != "LIONAGI_RUN_ID"}
    told = {"LIONAGI_NOTIFY_PAYLOAD": payload, "LIONAGI_NOTIFY_STATUS": status, "LIONAGI_NOTIFY_INVOCATION_ID": ""}
    subprocess.run(filled, input=payload.encode(), env={**kept, **told}, stdout=subprocess.DEVNULL, check=True)


def cause(word: str) -> None:
    text = json.dumps({"class": word, "retryable": False, "status_source": "absent"})
    Path(os.environ["LIONAGI_MCP_CAUSE_FILE"]).write_text(text)


def leave(name: str) -> None:
    if os.fork() == 0:
        hold(name)
        os._exit(0)


def escape(name: str) -> None:
    if os.fork() == 0:
        os.setsid()
        for descriptor in (1, 2):
            os.dup2(0, descriptor)
        hold(name)
        os._exit(0)


def die(number: str) -> None:
    os.kill(os.getpid(), int(number))


STEPS: dict[str, Callable[[str], None]] = {
    "say": say,
    "fill": fill,
    "hold": hold,
    "deaf": deaf,
    "polite": polite,
    "report": report,
    "cause": cause,
    "leave": leave,
    "escape": escape,
    "exit": lambda code: sys.exit(int(code)),
    "die": die,
}


def run() -> None:
    started = {"argv": sys.argv[1:], "environment": dict(os.environ), "folder": os.getcwd(), "pid": os.getpid()}
    with open(FOLDER / "starts", "a", encoding="utf-8") as file:
        file.write(json.dumps(started) + "\n")
    positionals = sys.argv[sys.argv.index("--") + 1 :]
    for step in positionals[0].split(", "):
        word, _, rest = step.partition(" ")
        STEPS[word](rest)


def lifecycle(run_id: str) -> dict[str, Any]:
    status = (FOLDER / "lifecycle").read_text().strip() if (FOLDER / "lifecycle").is_file() else ""
    outcome, reason = ENDS.get(status, (None, None))
    found = status != ""
    value = {
        "found": found,
        "terminal": found,
        "status": status or None,
        "outcome": outcome,
        "reason_code": reason,
        "reason_summary": "The stub was told so." if found else None,
        "ended_at": time.time() if found else None,
        "ended_at_is_approximate": False if found else None,
        "sessions": [],
    }
    return {"run_id": run_id, "lifecycle": {"available": True, "value": value, "reason_code": None, "detail": None}}


def main() -> None:
    if sys.argv[1:2] in (["agent"], ["orchestrate"]):
        run()
    elif sys.argv[1:2] == ["lifecycle"] and "LIONAGI_STUB_MODE" not in os.environ:
        if (FOLDER / "lifecycle.up").exists():
            hold("lifecycle")
        stub_li.record()
        stub_li.write(stub_li.envelope(data=lifecycle(sys.argv[2])))
    else:
        stub_li.main()


if __name__ == "__main__":
    main()
