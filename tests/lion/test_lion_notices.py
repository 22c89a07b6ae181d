"""Notices of an end: said once, to whom and as was wanted, and harmless whatever the program that is told does."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from .hand_written import RUN_ID, HandWritten, imported
from .servers import PEER

NONE = {"state": "none", "failure": None, "exit_code": None}
DELIVERED = {"state": "delivered", "failure": None, "exit_code": 0}


@pytest.fixture(scope="module")
def parts(lion_mcp: Path) -> Iterator[HandWritten]:
    with imported(lion_mcp) as made:
        yield made


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of somebody who has set nothing yet."""
    for name in [name for name in os.environ if name.startswith("LIONAGI_")]:
        monkeypatch.delenv(name)
    (folder := tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def notifier(tmp_path: Path) -> Path:
    """A program that keeps what it gets in files beside it, a file for each start."""
    path = tmp_path / "notifier"
    path.write_text(
        f"#!{sys.executable} -IS\n"
        "import json, os, sys, pathlib\n"
        "told = {'words': sys.argv[1:], 'payload': json.load(sys.stdin), 'environment': dict(os.environ), 'cwd': os.getcwd()}\n"
        "pathlib.Path(__file__).with_name(f'told-{os.getpid()}').write_text(json.dumps(told))\n"
    )
    path.chmod(0o755)
    return path


def told(notifier: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in notifier.parent.glob("told-*")]


def wanted(parts: HandWritten, record: Any, **arguments: Any) -> Any:
    """Writes the settings of a notice into the folder of a run, as its launch does."""
    params, _ = parts.params("agent.submit", query=["m", "x"], **arguments)
    notice = parts.notices.notice_for(params, os.environ, Path(record.cwd))
    if notice.configured:
        (record.folder / "notify.json").write_text(notice.settings(record.run_id, arguments.get("label") or "agent"))
    return record


def report(parts: HandWritten, record: Any, **end: Any) -> Any:
    """Starts the reporter as li does, and gives what became of the notice."""
    payload = json.dumps({"status": "completed", "reason_code": "run.completed.ok", **end})
    done = subprocess.run(
        parts.notices.reporter(record.folder),
        input=payload,
        env={**os.environ, "LIONAGI_NOTIFY_PAYLOAD": payload, "LIONAGI_INTERNAL_X": "1", "LIONAGI_AGENT_DEPTH": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return parts.notices.state_of(record)


def settled(parts: HandWritten, record: Any) -> Any:
    """What the server adds when the end of a run is on record that li did not tell."""
    return asyncio.run(parts.handlers.runs_settled(record))


def killed(parts: HandWritten, folder: Path) -> Any:
    end = parts.interface.End("killed", "cancelled", "kill", "killed", "It was told to stop.")
    return parts.record(folder, end, notice=NONE)


# What is said.


def test_placeholders_are_filled_in_one_pass(parts: HandWritten, tmp_path: Path, notifier: Path) -> None:
    words = [
        "{run_id}",
        "{status}",
        "{label}",
        "{target}|{sender}",
        "{reason_code}",
        "[{reason_detail}]",
        "{other}",
        "{{status}}",
    ]
    record = wanted(
        parts,
        parts.record(tmp_path),
        label="{status} of {run_id} 🙂",
        notify_seat="{sender}",
        notify_sender="me",
        notify_command=json.dumps([str(notifier), *words]),
    )
    assert report(parts, record) == DELIVERED
    (said,) = told(notifier)
    label = "{status} of {run_id} 🙂"
    assert said["words"] == [
        *(RUN_ID, "completed", label, "{sender}|me", "run.completed.ok", "[]", "{other}", "{completed}"),
    ]
    assert said["payload"] == {
        "run_id": RUN_ID,
        "status": "completed",
        "label": label,
        "target": "{sender}",
        "sender": "me",
        "reason_code": "run.completed.ok",
        "reason_detail": "",
    }


def test_the_notice_of_an_end_that_li_did_not_tell(parts: HandWritten, tmp_path: Path, notifier: Path) -> None:
    words = ["{status}", "{reason_code}", "{reason_detail}"]
    record = wanted(parts, killed(parts, tmp_path), notify_command=json.dumps([str(notifier), *words]))
    assert settled(parts, record) == {"notice": DELIVERED}
    (said,) = told(notifier)
    assert said["words"] == ["killed", "killed", "It was told to stop."]
    assert not (record.folder / "report.json").exists()


def test_whoever_starts_it_a_notifier_gets_the_same(
    parts: HandWritten, tmp_path: Path, notifier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "LIONAGI_STATE_DB_URL", "SECRET", "HTTPS_PROXY", "LC_ALL", "LIONAGI_HOME"):
        monkeypatch.setenv(name, "x")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    command = json.dumps([str(notifier)])
    report(parts, wanted(parts, parts.record(tmp_path / "one"), notify_command=command, notify_sender="me"))
    settled(parts, wanted(parts, killed(parts, tmp_path / "two"), notify_command=command, notify_sender="me"))
    one, two = (said["environment"] for said in told(notifier))
    assert one == two
    assert one.keys() >= {"PATH", "HTTPS_PROXY", "LC_ALL", "LIONAGI_HOME"}
    assert not one.keys() & {"ANTHROPIC_API_KEY", "LIONAGI_STATE_DB_URL", "SECRET", "LIONAGI_NOTIFY_PAYLOAD"}
    assert not one.keys() & {"LIONAGI_INTERNAL_X", "LIONAGI_AGENT_DEPTH"}
    assert one["LIONAGI_NOTIFY_SENDER"] == "me"


# Who is told, and by which program.


def test_what_the_caller_wants_comes_before_what_is_configured(
    parts: HandWritten, tmp_path: Path, notifier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIONAGI_MCP_NOTIFY_COMMAND", json.dumps([str(notifier), "configured", "{target}", "{sender}"]))
    monkeypatch.setenv("LIONAGI_MCP_NOTIFY_TARGET", "all")
    monkeypatch.setenv("LIONAGI_MCP_NOTIFY_SENDER", "server")
    (tmp_path / "elsewhere").mkdir()
    for arguments, words in (
        ({}, ["configured", "all", "server"]),
        ({"notify_seat": "you", "notify_sender": "me"}, ["configured", "you", "me"]),
        ({"notify_command": json.dumps([str(notifier), "wanted", "{target}"])}, ["wanted", "all"]),
    ):
        (place := tmp_path / words[0] / words[1]).mkdir(parents=True)
        report(parts, wanted(parts, parts.record(place), **arguments))
        (said,) = told(notifier)
        assert (said["words"], said["cwd"]) == (words, str(Path.cwd()))
        next(notifier.parent.glob("told-*")).unlink()
    monkeypatch.setenv("LIONAGI_MCP_NOTIFY_CWD", str(tmp_path / "elsewhere"))
    report(parts, wanted(parts, parts.record(tmp_path / "elsewhere")))
    (said,) = told(notifier)
    assert said["cwd"] == str(tmp_path / "elsewhere")


def test_where_nothing_is_wanted_nothing_is_said(parts: HandWritten, tmp_path: Path) -> None:
    record = wanted(parts, killed(parts, tmp_path), notify_seat="you")
    assert report(parts, record) == NONE
    assert settled(parts, record) == {}
    assert sorted(path.name for path in record.folder.iterdir()) == ["report.json"]


@pytest.mark.parametrize("command", ["", "true", "[", "[]", '"true"', '["true", 7]', '[""]', "{}", "[" * 50_000])
def test_a_command_that_is_none_is_refused_at_once(parts: HandWritten, tmp_path: Path, command: str) -> None:
    with pytest.raises(parts.interface.Refusal, match="notify_command"):
        wanted(parts, parts.record(tmp_path), notify_command=command)


def test_a_configured_command_that_is_none_harms_no_run(
    parts: HandWritten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIONAGI_MCP_NOTIFY_COMMAND", "mail me")
    failed = {"state": "failed", "failure": "command_unusable", "exit_code": None}
    assert report(parts, wanted(parts, parts.record(tmp_path))) == failed


# What the user has set for all that li does.

COMMAND = ["a", "{status}", "x | y"]
EXEC = f"adapter: {{kind: exec, argv: {json.dumps(COMMAND)}}}"


def mapping(*members: str) -> str:
    return "{" + ", ".join(members) + "}"


# Settings below `on_terminal`, in the home folder and in the project.
SET: dict[str, tuple[str | None, str | None]] = {
    "nothing": (None, None),
    "null": ("null", None),
    "a text": ("mail -s 'a b' {target}", None),
    "an escape": (r"a\ b c", None),
    "no words": ("'  '", None),
    "a pipe": ("a | b", None),
    "two in a row": ("a && b", None),
    "a redirection": ("a > b", None),
    "a variable": ("a $HOME", None),
    "a variable in braces": ("a ${HOME}", None),
    "a command inside": ("a $(b)", None),
    "a price": ("a $5", None),
    "a quoted pipe": ("""'a "|" b'""", None),
    "a quoted variable": ("""\"a '$HOME' b\"""", None),
    "an open quote": ("""'a "b'""", None),
    "an open quote around a pipe": ("""'a "b | c'""", None),
    "a number": ("7", None),
    "a list": ("[a, b]", None),
    "true": ("true", None),
    "an empty mapping": ("{}", None),
    "words": (mapping(EXEC), None),
    "switched on": (mapping("enabled: true", EXEC), None),
    "switched off": (mapping("enabled: false", EXEC), None),
    "switched off with nonsense": ("{enabled: false, filter: 7, adapter: {kind: x}}", None),
    "off is not zero": (mapping("enabled: 0", EXEC), None),
    "on, and no adapter": ("{enabled: true}", None),
    "a text as adapter": ("{adapter: a}", None),
    "on, and a text as adapter": ("{enabled: true, adapter: a}", None),
    "no argv": ("{adapter: {kind: exec}}", None),
    "a text as argv": ("{adapter: {kind: exec, argv: a}}", None),
    "an empty argv": ("{adapter: {kind: exec, argv: []}}", None),
    "a number in argv": ("{adapter: {kind: exec, argv: [a, 7]}}", None),
    "no kind": ("{adapter: {argv: [a]}}", None),
    "another kind": ("{adapter: {kind: http, argv: [a]}}", None),
    "a function": ("{adapter: {kind: python, ref: 'm:f'}}", None),
    "a function without a module": ("{adapter: {kind: python, ref: f}}", None),
    "an empty filter": (mapping("filter: {}", EXEC), None),
    "a text as filter": (mapping("filter: session", EXEC), None),
    "an unknown filter": (mapping("filter: {labels: [a]}", EXEC), None),
    "filtered for this kind": (mapping("filter: {kinds: [play, session]}", EXEC), None),
    "filtered for other kinds": (mapping("filter: {kinds: [schedule_run]}", EXEC), None),
    "filtered for a kind that is none": (mapping("filter: {kinds: [session, agent]}", EXEC), None),
    "filtered for no kind": (mapping("filter: {kinds: []}", EXEC), None),
    "filtered for a text": (mapping("filter: {kinds: session}", EXEC), None),
    "filtered for others": (mapping("filter: {kinds: [session], ids: [x]}", EXEC), None),
    "filtered for an empty id": (mapping("filter: {ids: ['']}", EXEC), None),
    "of the project alone": (None, "a b"),
    "the project's comes first": ("a", "b"),
    "switched off by the project": (mapping(EXEC), "{enabled: false}"),
    "set to null by the project": ("a", "null"),
    "switched on by the project": (mapping("enabled: false", EXEC), "{enabled: true}"),
    "another form in the project": ("a", mapping(EXEC)),
    "a text over a mapping": (mapping(EXEC), "a"),
    "lists are joined": (mapping(EXEC), "{adapter: {argv: [b]}}"),
    "another kind in the project": (mapping(EXEC), "{adapter: {kind: python, ref: 'm:f'}}"),
}
# What the real li makes of the settings: the command, that there can be none, or that nobody is to be told.
ASK = """
import json, logging, os, sys
from lionagi.state.lifecycle.notify_settings import resolve_notify_config
logging.disable()
told = []
for place in sys.argv[1:]:
    os.environ["HOME"] = place + "/home"
    found = resolve_notify_config(project_dir=place + "/project")
    handler = found.handler
    kinds, ids = (handler.filter_kinds, handler.filter_ids) if handler else (None, None)
    if found.reason or (handler and handler.python_ref):
        told.append("failure")
    elif handler is None or (kinds and "session" not in kinds) or ids:
        told.append(None)
    else:
        told.append(list(handler.argv))
print(json.dumps(told))
"""


def set_notifier(folder: Path, value: str | bytes) -> Path:
    """Writes what is set for all that is done in a folder: `on_terminal` as text, or the whole file as bytes."""
    (path := folder / ".lionagi" / "settings.yaml").parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(value if isinstance(value, bytes) else f"notify:\n  on_terminal: {value}\n".encode())
    return path


def notifier_of(parts: HandWritten, folder: Path, verb: str = "agent.submit", **arguments: Any) -> Any:
    """The command for a run in `folder`, else the word for why there can be none; None where none is wanted."""
    ending = parts.notifiers.ending_of(parts.params(verb, **{"query": ["m", "x"], **arguments})[0])
    found = parts.notifiers.notifier_set_for(folder, ending)
    return found and (found.command or found.failure)


def test_settings_mean_what_they_mean_to_li(
    li: Path, parts: HandWritten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [tmp_path / str(number) for number in range(len(SET))]
    for place, values in zip(places, SET.values(), strict=True):
        for name, value in zip(("home", "project"), values, strict=True):
            (place / name).mkdir(parents=True)
            if value is not None:
                set_notifier(place / name, value)
    asked = [str(PEER / "python"), "-c", ASK, *map(str, places)]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, env={"HOME": str(tmp_path)})
    for name, place, theirs in zip(SET, places, json.loads(done.stdout.splitlines()[-1]), strict=True):
        monkeypatch.setenv("HOME", str(place / "home"))
        ours = notifier_of(parts, place / "project")
        assert ("failure" if isinstance(ours, str) else ours) == theirs, name


@pytest.mark.parametrize(
    ("value", "failure"),
    [
        ("[a]", "setting_unusable"),
        ("\"''\"", "setting_unusable"),
        ("{adapter: {kind: exec, argv: ['', a]}}", "setting_unusable"),
        (mapping(f"adapter: {{kind: exec, argv: {['a'] * 1001}}}"), "setting_unusable"),
        (mapping(f"adapter: {{kind: exec, argv: [&a {'x' * 40_000}, *a]}}"), "setting_unusable"),
        ("a | b", "needs_shell"),
        ("{adapter: {kind: python, ref: 'm:f'}}", "python_adapter"),
        (b"notify: [", "settings_unreadable"),
        (b"\xff", "settings_unreadable"),
        (b"- notify", "settings_unreadable"),
        (b"a: !!x\n", "settings_unreadable"),
        (b"[" * 5000, "settings_unreadable"),
        (b"#" * (1 << 17), "settings_unreadable"),
    ],
)
@pytest.mark.parametrize("by", ["li", "the server"])
def test_what_is_set_and_cannot_be_used_is_a_notice_that_failed(
    parts: HandWritten, tmp_path: Path, home: Path, value: str | bytes, failure: str, by: str
) -> None:
    set_notifier(home, value)
    record = wanted(parts, killed(parts, tmp_path))
    result = report(parts, record) if by == "li" else settled(parts, record)["notice"]
    assert result == {"state": "failed", "failure": failure, "exit_code": None}


@pytest.mark.parametrize("value", [b"", b"null", b"notify: mail", b"notify: {}", b"on_terminal: mail", "null"])
def test_where_nothing_is_set_nothing_is_said(
    parts: HandWritten, tmp_path: Path, home: Path, value: str | bytes
) -> None:
    set_notifier(home, value)
    assert report(parts, wanted(parts, parts.record(tmp_path))) == NONE


def test_what_is_set_comes_last(
    parts: HandWritten, tmp_path: Path, home: Path, notifier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_notifier(home, f"{notifier} set {{status}} {{target}}")
    command = json.dumps([str(notifier), "wanted"])
    monkeypatch.setenv("LIONAGI_MCP_NOTIFY_TARGET", "all")
    for configured, arguments, words in (
        ("", {}, ["set", "completed", "all"]),
        (json.dumps([str(notifier), "configured"]), {}, ["configured"]),
        (json.dumps([str(notifier), "configured"]), {"notify_command": command}, ["wanted"]),
        ("", {"notify_command": command}, ["wanted"]),
    ):
        monkeypatch.setenv("LIONAGI_MCP_NOTIFY_COMMAND", configured)
        record = wanted(parts, parts.record(tmp_path), **arguments)
        assert report(parts, record) == DELIVERED
        (said,) = told(notifier)
        assert (said["words"], said["cwd"]) == (words, str(Path.cwd()))
        next(notifier.parent.glob("told-*")).unlink()
        (record.folder / "notice.json").unlink()
    monkeypatch.setenv("LIONAGI_MCP_NOTIFY_COMMAND", "mail me")
    assert report(parts, wanted(parts, parts.record(tmp_path)))["failure"] == "command_unusable"


def test_it_is_looked_for_from_the_folder_of_the_run(
    parts: HandWritten, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("server", "project/sub/deep"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "server")
    set_notifier(tmp_path / "server", "of-the-server")
    set_notifier(tmp_path / "project", "of-the-project")
    for cwd, program in ((None, "of-the-server"), (str(tmp_path / "project" / "sub" / "deep"), "of-the-project")):
        params, argv = parts.params("agent.submit", query=["m", "x"], cwd=cwd)
        launch = parts.interface.Launch(RUN_ID, tmp_path / "run", argv)
        asyncio.run(parts.handlers.runs_prepare(launch, params, parts.call("agent.submit")))
        assert json.loads(launch.files["notify.json"])["command"] == [program]
    nearer = set_notifier(tmp_path / "project" / "sub", b"")
    assert (
        notifier_of(parts, nearer.parent.parent / "deep") is None
    )  # the nearest file is the project's, whatever it says
    nearer.unlink()
    os.mkfifo(nearer)
    assert notifier_of(parts, nearer.parent.parent / "deep") == ["of-the-project"]


def test_the_file_of_a_home_folder_is_no_projects(
    parts: HandWritten, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (account := tmp_path / "account" / "inside").mkdir(parents=True)
    set_notifier(account.parent, "of-the-account")
    entry = list(pwd.getpwuid(os.getuid()))
    entry[5] = str(account.parent)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd(entry))
    assert notifier_of(parts, account) is None
    set_notifier(home, "{adapter: {kind: exec, argv: [a, b]}}")
    assert notifier_of(parts, account) == notifier_of(parts, home) == ["a", "b"]  # and not the same words twice


def test_a_filter_is_about_what_li_tells_the_end_of(parts: HandWritten, tmp_path: Path, home: Path) -> None:
    set_notifier(home, mapping("filter: {kinds: [invocation], ids: [i1]}", EXEC))
    assert notifier_of(parts, home, "flow.submit", invocation="i1") == COMMAND
    assert notifier_of(parts, home, "play.submit", playbook="p", invocation="i1") == COMMAND
    assert notifier_of(parts, home, "flow.submit", invocation="i2") is None
    assert notifier_of(parts, home, "flow.submit") is None
    assert notifier_of(parts, home, "agent.submit", invocation="i1") is None  # li tells the end of its session


def test_settings_that_hold_themselves_come_to_an_end(parts: HandWritten, tmp_path: Path, home: Path) -> None:
    text = b"notify: &a {notify: *a, adapter: *a, filter: *a, on_terminal: *a, kinds: *a, ids: *a}\n"
    set_notifier(home, text)
    set_notifier(tmp_path / "project", text)
    assert notifier_of(parts, tmp_path / "project") == "setting_unusable"


# What became of it.


@pytest.mark.parametrize(
    ("command", "state", "failure", "code"),
    [
        (["/bin/true"], "delivered", None, 0),
        (["/bin/false"], "failed", "nonzero_exit", 1),
        (["/bin/sh", "-c", "cat >/dev/null; exit 7"], "failed", "nonzero_exit", 7),
        (["/bin/sh", "-c", "kill -9 $$"], "failed", "killed", -9),
        (
            ["/bin/sh", "-c", "exec <&-; echo the key is sk-secret; echo sk-secret >&2; exit 3"],
            "failed",
            "nonzero_exit",
            3,
        ),
        (["/nonexistent/program"], "failed", "not_found", None),
        (["nonexistent-program"], "failed", "not_found", None),
        (["/dev/null"], "failed", "not_permitted", None),
        (["/bin/true", "a\0b"], "failed", "not_startable", None),
        (["/bin/true", "x" * 200_000], "failed", "not_startable", None),
        (["/bin/true", "--from={sender}"], "failed", "sender_missing", None),
    ],
)
@pytest.mark.parametrize("by", ["li", "the server"])
def test_what_became_of_it_is_told_in_one_word(
    parts: HandWritten, tmp_path: Path, command: list[str], state: str, failure: str | None, code: int | None, by: str
) -> None:
    record = wanted(parts, killed(parts, tmp_path), notify_command=json.dumps(command), label="x" * 100_000)
    result = report(parts, record) if by == "li" else settled(parts, record)["notice"]
    assert result == {"state": state, "failure": failure, "exit_code": code}
    path = record.folder / "notice.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert "secret" not in path.read_text()


def test_a_folder_that_is_gone(parts: HandWritten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIONAGI_MCP_NOTIFY_CWD", str(tmp_path / "missing"))
    record = wanted(parts, parts.record(tmp_path), notify_command='["/bin/true"]')
    assert report(parts, record) == {"state": "failed", "failure": "folder_missing", "exit_code": None}


@pytest.mark.parametrize("ignores", ["", "trap '' HUP INT TERM; "])
def test_a_notifier_without_end_is_ended_with_all_that_it_started(
    parts: HandWritten, tmp_path: Path, ignores: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    script = f"{ignores}exec 9>{tmp_path}/pipe; (sleep 1000) & sleep 1000"
    settings = {"command": ["/bin/sh", "-c", script], "folder": "/", "fields": {}}
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reading, True)
    assert parts.report.delivered(settings, {"status": "x"}, {"PATH": "/usr/bin:/bin"}, 0.5) == {
        "state": "unknown",  # it may have told somebody before
        "failure": "timed_out",
        "exit_code": None,
    }
    assert os.read(reading, 1) == b""  # nobody holds the other end any more
    os.close(reading)


def test_there_is_no_time_left(parts: HandWritten) -> None:
    settings = {"command": ["/bin/sleep", "1000"], "folder": "/", "fields": {}}
    assert parts.report.delivered(settings, {}, {}, -5.0)["failure"] == "timed_out"


# Once.


def test_a_notice_is_sent_once(parts: HandWritten, tmp_path: Path, notifier: Path) -> None:
    record = wanted(parts, killed(parts, tmp_path), notify_command=json.dumps([str(notifier)]))
    assert report(parts, record, status="cancelled") == DELIVERED
    assert report(parts, record, status="completed") == DELIVERED
    assert settled(parts, record) == {"notice": DELIVERED}
    (said,) = told(notifier)
    assert said["payload"]["status"] == "cancelled"


def test_one_that_was_begun_is_not_begun_again(parts: HandWritten, tmp_path: Path, notifier: Path) -> None:
    record = wanted(parts, killed(parts, tmp_path), notify_command=json.dumps([str(notifier)]))
    unknown = {"state": "unknown", "failure": None, "exit_code": None}
    assert parts.report.claimed(record.folder / "notice.json")
    assert parts.notices.state_of(record) == unknown
    assert report(parts, record) == unknown
    assert settled(parts, record) == {"notice": unknown}
    assert told(notifier) == []


def test_one_that_is_wanted_is_never_said_to_be_none(parts: HandWritten, tmp_path: Path) -> None:
    record = parts.record(tmp_path, notify={"configured": True})
    assert parts.notices.state_of(record)["state"] == "pending"
    assert parts.notices.state_of(record, tried=True)["state"] == "unknown"
    assert parts.notices.state_of(replace(record, told_at=record.submitted_at))["state"] == "unknown"
    for notify in ({"configured": False}, None):
        assert parts.notices.state_of(replace(record, details={"notify": notify}))["state"] == "none"
    assert parts.notices.state_of(replace(record, details={}))["state"] == "none"


def test_one_whose_program_cannot_be_started_is_unknown(
    parts: HandWritten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = wanted(parts, killed(parts, tmp_path), notify_command='["/bin/true"]')
    record.details["notify"] = {"configured": True}

    def full(*_: object, **__: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(parts.notices.subprocess, "Popen", full)
    assert settled(parts, record)["notice"]["state"] == "unknown"


def test_an_end_that_is_told_twice_is_said_once(parts: HandWritten, tmp_path: Path, notifier: Path) -> None:
    record = wanted(parts, killed(parts, tmp_path), notify_command=json.dumps([str(notifier)]))
    assert [settled(parts, record) for _ in range(2)] == [{"notice": DELIVERED}] * 2
    assert len(told(notifier)) == 1


def test_two_at_the_same_time_send_one(parts: HandWritten, tmp_path: Path, notifier: Path) -> None:
    record = wanted(parts, killed(parts, tmp_path), notify_command=json.dumps([str(notifier)]))
    payload = json.dumps({"status": "completed"})
    started = [
        subprocess.Popen(
            [*parts.notices.reporter(record.folder), *more], env={**os.environ, "LIONAGI_NOTIFY_PAYLOAD": payload}
        )
        for more in ([], ["--unreported"], [], ["--unreported"])
    ]
    assert [process.wait() for process in started] == [0] * 4
    assert len(told(notifier)) == 1
    assert parts.notices.state_of(record) == DELIVERED


def test_a_run_that_was_forgotten_is_not_told_of(parts: HandWritten, tmp_path: Path) -> None:
    record = killed(parts, tmp_path)
    record.folder.rmdir()
    assert settled(parts, record) == {}


def test_settings_that_cannot_be_read(parts: HandWritten, tmp_path: Path) -> None:
    record = killed(parts, tmp_path)
    for text in ("", "[]", "{", '{"command": "true"}', '{"command": ["true"], "fields": [], "folder": 7}'):
        (record.folder / "notify.json").write_text(text)
        assert report(parts, record)["state"] == "failed"
        (record.folder / "notice.json").unlink()


def test_nobody_waits_for_a_server_that_stops(parts: HandWritten, tmp_path: Path, notifier: Path) -> None:
    """The wait is given up, and the notice is sent all the same."""
    record = wanted(parts, killed(parts, tmp_path), notify_command=json.dumps([str(notifier)]))
    os.mkfifo(tmp_path / "pipe")
    script = f"read -r _ <{tmp_path}/pipe; exec {notifier}"
    wanted(parts, record, notify_command=json.dumps(["/bin/sh", "-c", script]))

    async def stopped() -> int:
        task = asyncio.ensure_future(parts.handlers.runs_settled(record))
        writing = await asyncio.to_thread(os.open, tmp_path / "pipe", os.O_WRONLY)  # the notifier is there
        task.cancel()
        await asyncio.wait((task,))
        assert task.cancelled()
        return writing

    writing = asyncio.run(stopped())
    sender = parts.notices.SENDING.pop()
    os.write(writing, b"\n")
    os.close(writing)
    assert sender.wait() == 0
    assert len(told(notifier)) == 1
