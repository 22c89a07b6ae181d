"""Keeps what li tells of the end of a run, and delivers the notice of it. Runs by itself, with nothing but Python.

    python -I -S report.py FOLDER                li starts it so when a run ends, with what it tells in the environment
    python -I -S report.py FOLDER --unreported   the server starts it so, where li did not, and tells it the same way

FOLDER is what belongs to the run alone. The settings of the notice stand there in a file, if there is one.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

REPORT: Final = "report.json"
SETTINGS: Final = "notify.json"
NOTICE: Final = "notice.json"
UNREPORTED: Final = "--unreported"
PAYLOAD: Final = "LIONAGI_NOTIFY_PAYLOAD"
STATUS: Final = "LIONAGI_NOTIFY_STATUS"

LARGEST_FILE = 1 << 20  # bytes, of the settings
LARGEST_PAYLOAD = 1 << 16  # characters
# li ends this process 10 seconds after it started it; by then the result has to be written down.
SECONDS_UNDER_LI = 8.5
DELIVERY_UNDER_LI = 7.0
DELIVERY_BY_SERVER = 30.0

PLACEHOLDER = re.compile(r"\{(run_id|status|label|target|sender|reason_code|reason_detail)\}")
# What a notifier gets of the environment, whoever starts it.
PASSED = frozenset({"HOME", "LANG", "LOGNAME", "PATH", "SSL_CERT_FILE", "TMPDIR", "TZ", "USER"})
PASSED_STARTS = ("LC_", "LIONAGI_", "LION_MCP_", "XDG_")
PASSED_ENDS = ("_PROXY", "_proxy")
HELD_BACK = ("LIONAGI_AGENT_DEPTH", "LIONAGI_INTERNAL_", "LIONAGI_NOTIFY_", "LIONAGI_STATE_DB_URL")

STARTED = time.monotonic()


def main(arguments: list[str], environ: Mapping[str, str]) -> int:
    """The exit code: 1 when the end could not be written down."""
    folder, unreported = Path(arguments[0]), UNREPORTED in arguments[1:]
    end = end_in(environ)
    kept = unreported or keep_report(folder, end)
    seconds = DELIVERY_BY_SERVER if unreported else DELIVERY_UNDER_LI
    notify(folder, end, environ, seconds, None if unreported else STARTED + SECONDS_UNDER_LI)
    return 0 if kept else 1


def end_in(environ: Mapping[str, str]) -> dict[str, Any]:
    """What is told of the end: `status`, and more if there is more."""
    try:
        told = json.loads(environ.get(PAYLOAD, "")[:LARGEST_PAYLOAD])
    except (ValueError, RecursionError):
        told = None
    end = told if isinstance(told, dict) else {}
    return {**end, "status": end.get("status", environ.get(STATUS))}


def keep_report(folder: Path, end: Mapping[str, Any]) -> bool:
    """Write the end down for the server; an end that comes later takes its place."""
    report = {**end, "reported_at": time.time()}
    try:
        write_whole(folder / REPORT, report)
    except OSError as error:
        print(f"The end of the run could not be written down: {error.strerror}.", file=sys.stderr)  # noqa: T201
        return False
    return True


def notify(
    folder: Path, end: Mapping[str, Any], environ: Mapping[str, str], seconds: float, until: float | None
) -> None:
    """Deliver the notice, if one is wanted and nobody has yet tried to."""
    try:
        settings = settings_in(folder)
        if settings is None or not claimed(folder / NOTICE):
            return
        left = seconds if until is None else min(seconds, until - time.monotonic())
        write_whole(folder / NOTICE, delivered(settings, end, environ, left))
    except OSError:
        return  # the notice stays claimed, and what became of it unknown


def settings_in(folder: Path) -> dict[str, Any] | None:
    """`command`, `failure`, `folder` and `fields` of the notice; None when none is wanted."""
    try:
        with open(folder / SETTINGS, "rb") as file:
            settings = json.loads(file.read(LARGEST_FILE))
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return settings if isinstance(settings, dict) else {}


def claimed(path: Path) -> bool:
    """Whether the notice is this process's to deliver: nobody else has been here before."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w") as file:
        json.dump(result("unknown"), file)
    return True


def result(state: str, failure: str | None = None, exit_code: int | None = None) -> dict[str, Any]:
    return {"state": state, "failure": failure, "exit_code": exit_code}


def delivered(
    settings: Mapping[str, Any], end: Mapping[str, Any], environ: Mapping[str, str], seconds: float
) -> dict[str, Any]:
    """Run the notifier with the notice, and tell what became of it. What it prints is seen by nobody."""
    command, fields = settings.get("command"), fields_of(settings, end)
    if problem := problem_with(settings, fields):
        return result("failed", problem)
    argv = [PLACEHOLDER.sub(lambda found: fields[found[1]], token) for token in command or []]
    variables = environment_of(environ, fields["sender"])
    try:
        notifier = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=settings.get("folder"),
            env=variables,
            start_new_session=True,
        )
    except FileNotFoundError:
        return result("failed", "not_found")
    except PermissionError:
        return result("failed", "not_permitted")
    except (OSError, ValueError):  # too long, a NUL in it, no more processes
        return result("failed", "not_startable")
    return outcome_of(notifier, json.dumps(fields).encode(), seconds)


def outcome_of(notifier: "subprocess.Popen[bytes]", payload: bytes, seconds: float) -> dict[str, Any]:
    """Wait for a notifier; one that takes too long is ended with all that it started."""
    try:
        # One that does not read what it is given is none the worse for it.
        notifier.communicate(payload, timeout=max(0.0, seconds))
    except subprocess.TimeoutExpired:
        end_group(notifier)
        return result("unknown", "timed_out")  # it may have told somebody before
    if notifier.returncode == 0:
        return result("delivered", None, 0)
    return result("failed", "killed" if notifier.returncode < 0 else "nonzero_exit", notifier.returncode)


def end_group(notifier: "subprocess.Popen[bytes]") -> None:
    """It was not waited for to its end, so its id still stands for it and its group."""
    with contextlib.suppress(OSError):
        os.killpg(notifier.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        notifier.wait(timeout=1)
    with contextlib.suppress(OSError):  # what was not read is still to be written
        if notifier.stdin is not None:
            notifier.stdin.close()


def fields_of(settings: Mapping[str, Any], end: Mapping[str, Any]) -> dict[str, str]:
    """What a notice says, all of it text; what is not known is empty."""
    given = settings.get("fields")
    known = {**(given if isinstance(given, dict) else {}), **end}
    names = ("run_id", "status", "label", "target", "sender", "reason_code", "reason_detail")
    return {name: value if isinstance(value := known.get(name), str) else "" for name in names}


def problem_with(settings: Mapping[str, Any], fields: Mapping[str, str]) -> str | None:
    """Why no notifier can be run, in one word."""
    command, folder, failure = (settings.get(name) for name in ("command", "folder", "failure"))
    if isinstance(failure, str):
        return failure  # it was known when the run was started
    if not isinstance(command, list) or not command or not all(isinstance(token, str) for token in command):
        return "command_unusable"
    if not fields["sender"] and any("{sender}" in token for token in command):
        return "sender_missing"  # a notice in nobody's name would be taken for somebody's
    if not isinstance(folder, str) or not os.path.isdir(folder):
        return "folder_missing"
    return None


def environment_of(environ: Mapping[str, str], sender: str) -> dict[str, str]:
    """The variables that a notifier gets."""
    passed = {name: value for name, value in environ.items() if is_passed(name)}
    return {**passed, "LIONAGI_NOTIFY_SENDER": sender} if sender else passed


def is_passed(name: str) -> bool:
    if name.startswith(HELD_BACK):
        return False
    return name in PASSED or name.startswith(PASSED_STARTS) or name.endswith(PASSED_ENDS)


def write_whole(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON for this user alone, so that readers see all of it or none. Raises OSError."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
