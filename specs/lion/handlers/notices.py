"""The notice of an end: what is wanted, what became of it, and the start of the program that delivers it."""

import asyncio
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lion_mcp.interface import End, Refusal, RunRecord

from . import report
from .bounded_reading import MissingError, UnreadableError, object_of
from .foreign_words import shown_line, word
from .notifiers import Notifier, ending_of, notifier_set_for
from .tasks import Params

COMMAND = "LIONAGI_MCP_NOTIFY_COMMAND"
TARGET = "LIONAGI_MCP_NOTIFY_TARGET"
SENDER = "LIONAGI_MCP_NOTIFY_SENDER"
FOLDER = "LIONAGI_MCP_NOTIFY_CWD"

STATES = ("delivered", "failed", "unknown")
LARGEST_RESULT = 1 << 12  # bytes
LONGEST_NAME_TOLD = 200  # characters
SECONDS_BETWEEN_LOOKS = 0.1
MOST_LOOKS = 350  # a little more than a delivery may take

SENDING: "set[subprocess.Popen[bytes]]" = set()  # kept here until they have ended, so that none is left behind unreaped


@dataclass(frozen=True, slots=True)
class Notice:
    """Who is told of an end, in whose name, and by which program."""

    notifier: Notifier | None  # None: nobody is told
    folder: str | None
    target: str
    sender: str

    @property
    def configured(self) -> bool:
        return self.notifier is not None

    def as_json(self) -> dict[str, object]:
        """For the details of the run."""
        return {
            "target": shown_line(self.target, LONGEST_NAME_TOLD) or None,
            "sender": shown_line(self.sender, LONGEST_NAME_TOLD) or None,
            "configured": self.configured,
        }

    def settings(self, run_id: str, label: str) -> str:
        """What the program that delivers it reads."""
        notifier = self.notifier or Notifier()
        fields = {"run_id": run_id, "label": label, "target": self.target, "sender": self.sender}
        told = {"command": notifier.command, "failure": notifier.failure, "folder": self.folder, "fields": fields}
        return json.dumps(told)


def notice_for(params: Params, environ: Mapping[str, str], folder: Path) -> Notice:
    """The notice of a run that works in `folder`. Raises Refusal."""
    return Notice(
        notifier_for(params, environ, folder),
        environ.get(FOLDER) or _own_folder(),
        params.notify_seat or environ.get(TARGET, ""),
        params.notify_sender or environ.get(SENDER, ""),
    )


def notifier_for(params: Params, environ: Mapping[str, str], folder: Path) -> Notifier | None:
    """What the caller wants, else what this server's environment says, else the user's settings. Raises Refusal."""
    if params.notify_command is not None:
        command = command_in(params.notify_command)
        if command is None:
            raise Refusal("invalid_input", "notify_command is no JSON list of texts with a program as its first.")
        return Notifier(command)
    if written := environ.get(COMMAND):
        command = command_in(written)
        return Notifier(command, None if command else "command_unusable")
    return notifier_set_for(folder, ending_of(params))


def command_in(text: str) -> list[str] | None:
    try:
        command = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_command = isinstance(command, list) and all(isinstance(token, str) for token in command)
    return command if is_command and command and command[0] else None


def _own_folder() -> str | None:
    """Notices come from where the server is, not from where a run works."""
    try:
        return os.getcwd()
    except OSError:
        return None


def reporter(folder: Path) -> list[str]:
    """The program that keeps the report of a run and delivers its notice."""
    return [sys.executable, "-I", "-S", os.path.abspath(report.__file__), str(folder)]


def notify_flag(folder: Path) -> str:
    """The same as li takes it: as words of a shell, though none is started, and with nothing that only a shell reads."""
    return shlex.join(reporter(folder))


def state_of(record: RunRecord, *, tried: bool = False) -> dict[str, object]:
    """What became of the notice of a run; `tried`: nobody will try to deliver it any more."""
    try:
        told = object_of(record.folder / report.NOTICE, LARGEST_RESULT)
    except MissingError:
        return report.result(_state_without_result(record, tried))
    except UnreadableError:
        return report.result("unknown")
    state, code = told.get("state"), told.get("exit_code")
    return report.result(
        state if isinstance(state, str) and state in STATES else "unknown",
        word(told.get("failure"), 64),
        code if isinstance(code, int) and not isinstance(code, bool) else None,
    )


def _state_without_result(record: RunRecord, tried: bool) -> str:
    """One that is wanted is never said to be none."""
    notify = record.details.get("notify")
    if not isinstance(notify, dict) or notify.get("configured") is not True:
        return "none"
    return "unknown" if tried or record.told_at is not None else "pending"


async def send_if_unsent(record: RunRecord) -> None:
    """Deliver the notice of a run whose end li did not tell, and wait for that; the rest of it nobody has to wait for.

    Said more than once, by one server or several, it is delivered once all the same: whoever makes the file of its
    result first delivers it.
    """
    if record.end is None or not await asyncio.to_thread(_is_due, record):
        return
    try:
        sender = await asyncio.to_thread(_started, record, record.end)
    except OSError:
        return  # it is not delivered then, and its state says that nothing is known of it
    for _ in range(MOST_LOOKS):
        SENDING.difference_update([process for process in tuple(SENDING) if process.poll() is not None])
        if sender not in SENDING:
            return
        await asyncio.sleep(SECONDS_BETWEEN_LOOKS)


def _is_due(record: RunRecord) -> bool:
    return os.path.isfile(record.folder / report.SETTINGS) and not os.path.lexists(record.folder / report.NOTICE)


def _started(record: RunRecord, end: End) -> "subprocess.Popen[bytes]":
    """It is a process of its own, so that it finishes even where the server does not wait for it."""
    payload = {"status": end.status, "reason_code": end.reason_code, "reason_detail": end.reason_detail}
    sender = subprocess.Popen(
        [*reporter(record.folder), report.UNREPORTED],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, report.PAYLOAD: json.dumps(payload)},
        start_new_session=True,
    )
    SENDING.add(sender)
    return sender
