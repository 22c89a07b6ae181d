"""What a submit is refused for before there is anything of the run, and what li gets when nothing speaks against it."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .hand_written import RUN_ID, HandWritten, imported

MODEL = ["claude/opus"]


@pytest.fixture(scope="module")
def parts(lion_mcp: Path) -> Iterator[HandWritten]:
    with imported(lion_mcp) as made:
        yield made


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (folder := tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in [name for name in os.environ if name.startswith("LIONAGI_")]:
        monkeypatch.delenv(name)
    return folder


@pytest.fixture
def project(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs work, beside the folder that the server is in."""
    (home.parent / "server").mkdir()
    monkeypatch.chdir(home.parent / "server")
    (folder := home.parent / "project").mkdir()
    return folder


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def prepared(parts: HandWritten, verb: str, folder: Path, **arguments: Any) -> Any:
    """The launch of a submit as the hooks leave it; nothing is started."""
    params, argv = parts.params(verb, **arguments)
    launch = parts.interface.Launch(RUN_ID, folder / "run", list(argv), label=arguments.get("label"))
    asyncio.run(parts.handlers.runs_prepare(launch, params, parts.call(verb, **arguments)))
    return launch


def refused(parts: HandWritten, verb: str, folder: Path, **arguments: Any) -> Any:
    """The refusal of a submit; nothing of it may be left."""
    params, argv = parts.params(verb, **arguments)
    launch = parts.interface.Launch(RUN_ID, folder / "run", list(argv))
    before = sorted(folder.rglob("*")), repr(launch)
    with pytest.raises(parts.interface.Refusal) as caught:
        asyncio.run(parts.handlers.runs_prepare(launch, params, parts.call(verb, **arguments)))
    assert (sorted(folder.rglob("*")), repr(launch)) == before
    return caught.value


def flags(launch: Any, name: str) -> list[str]:
    options = launch.argv[: launch.argv.index("--")] if "--" in launch.argv else launch.argv
    return [token.removeprefix(f"{name}=") for token in options if token.startswith(f"{name}=")]


# The task.


@pytest.mark.parametrize(
    ("verb", "arguments", "word"),
    [
        ("agent.submit", {}, "model"),
        ("agent.submit", {"prompt": "x"}, "model"),
        ("agent.submit", {"query": ["x"]}, "model"),
        ("agent.submit", {"query": ["x"], "continue_last": False}, "model"),
        ("agent.submit", {"query": ["a", "b", "c"]}, "too many"),
        ("agent.submit", {"query": ["a", "b"], "prompt": "x"}, "too many"),
        ("agent.submit", {"resume": "r"}, "task"),
        ("agent.submit", {"query": ["m", " "]}, "task"),
        ("agent.submit", {"query": MODEL, "prompt": " \n"}, "blank"),
        ("agent.submit", {"query": MODEL, "prompt": "x", "prompt_file": "/x"}, "both"),
        ("flow.submit", {}, "task"),
        ("flow.submit", {"query": [""]}, "task"),
        ("flow.submit", {"query": ["a", "b"], "prompt": "x"}, "too many"),
        ("flow.submit", {"prompt": ""}, "blank"),
        ("fanout.submit", {}, "task"),
        ("fanout.submit", {"query": []}, "task"),
        ("fanout.submit", {"query": ["a", "b", "c"]}, "too many"),
    ],
)
def test_a_run_without_all_that_it_needs(
    parts: HandWritten, project: Path, verb: str, arguments: dict[str, Any], word: str
) -> None:
    refusal = refused(parts, verb, project, **arguments)
    assert refusal.kind == "invalid_input"
    assert word in refusal.message


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("agent.submit", {"query": ["m", "x"]}),
        ("agent.submit", {"query": MODEL, "prompt": "x"}),
        ("agent.submit", {"resume": "r", "prompt": "x"}),
        ("agent.submit", {"continue_last": True, "query": ["x"]}),
        ("flow.submit", {"query": ["x"]}),
        ("flow.submit", {"query": MODEL, "prompt": "x"}),
        ("flow.submit", {"file": "flow.yaml"}),
        ("flow.submit", {"resume": "r"}),
        ("fanout.submit", {"prompt": "x"}),
    ],
)
def test_a_run_with_all_that_it_needs(parts: HandWritten, project: Path, verb: str, arguments: dict[str, Any]) -> None:
    assert prepared(parts, verb, project, **arguments).details["kind"] == verb.partition(".")[0]


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("-", b"x", "standard input"),
        ("relative", b"x", "absolute"),
        ("~/task", b"x", "absolute"),
        ("", b"x", "absolute"),
        ("/{}/missing", None, "not there"),
        ("/{}/blank", b" \n\t", "blank"),
        ("/{}/empty", b"", "blank"),
        ("/{}/latin", b"caf\xe9", "UTF-8"),
        ("/{}/long", b"x" * 262_145, "longer"),
        ("/{}/longer", b"x" * 1_048_577, "large"),
        ("/{}", None, "no file"),
        ("/{}/a\0b", None, "cannot be opened"),
        ("/{}/" + "x" * 300, None, "cannot be opened"),
    ],
)
def test_a_file_that_holds_no_task(
    parts: HandWritten, project: Path, name: str, content: bytes | None, word: str
) -> None:
    path = name.format(str(project).lstrip("/"))
    if content is not None and path.startswith("/"):
        write(Path(path), content)
    refusal = refused(parts, "agent.submit", project, query=MODEL, prompt_file=path)
    assert refusal.kind == "invalid_input"
    assert word in refusal.message


def test_a_pipe_is_not_waited_for(parts: HandWritten, project: Path) -> None:
    os.mkfifo(project / "pipe")
    refusal = refused(parts, "agent.submit", project, query=MODEL, prompt_file=str(project / "pipe"))
    assert "no file" in refusal.message


def test_an_agent_reads_its_task_from_a_file_of_the_run(parts: HandWritten, project: Path) -> None:
    task = "--notify=x\n-- é 🙂"
    for arguments in ({"prompt": task}, {"prompt_file": str(write(project / "task", task))}):
        launch = prepared(parts, "agent.submit", project, query=MODEL, **arguments)
        assert flags(launch, "--prompt-file") == [str(launch.folder / "prompt.txt")]
        assert launch.files["prompt.txt"] == task
        assert launch.argv[launch.argv.index("--") :] == ["--", *MODEL]
        assert task not in launch.argv


@pytest.mark.parametrize("verb", ["flow.submit", "fanout.submit"])
def test_elsewhere_the_task_is_the_last_word(parts: HandWritten, project: Path, verb: str) -> None:
    task = "--notify=x\n-- é 🙂"
    for arguments in ({"prompt": task}, {"prompt_file": str(write(project / "task", task))}):
        launch = prepared(parts, verb, project, query=MODEL, **arguments)
        assert launch.argv[launch.argv.index("--") :] == ["--", *MODEL, task]
        assert launch.argv[:2] == ["orchestrate", verb.partition(".")[0]]
        assert "prompt.txt" not in launch.files


# The folder.


@pytest.mark.parametrize("cwd", ["sub", ".", "", "~", "/nonexistent", "/dev/null", "/a\0b", "/" + "x" * 300])
def test_a_folder_that_is_none_is_refused(parts: HandWritten, project: Path, cwd: str) -> None:
    refusal = refused(parts, "agent.submit", project, query=MODEL, prompt="x", cwd=cwd)
    assert refusal.kind == "invalid_input"
    assert "cwd" in refusal.message


def test_the_folder_of_a_run(parts: HandWritten, project: Path) -> None:
    launch = prepared(parts, "agent.submit", project, query=MODEL, prompt="x", cwd=str(project))
    assert launch.cwd == project
    assert flags(launch, "--cwd") == [str(project)]
    assert prepared(parts, "agent.submit", project, query=MODEL, prompt="x").cwd is None


def test_a_server_whose_folder_is_gone(parts: HandWritten, project: Path) -> None:
    Path.cwd().rmdir()
    assert refused(parts, "agent.submit", project, query=MODEL, prompt="x").kind == "unavailable"
    assert prepared(parts, "agent.submit", project, query=MODEL, prompt="x", cwd=str(project)).cwd == project


# The profile.


@pytest.mark.parametrize("verb", ["agent.submit", "flow.submit", "play.submit", "fanout.submit"])
def test_an_unknown_profile_is_refused(parts: HandWritten, project: Path, verb: str) -> None:
    write(project / ".lionagi" / "playbooks" / "p.playbook.yaml", "prompt: x\n")
    more = {"playbook": "p"} if verb == "play.submit" else {}
    write(project / ".lionagi" / "agents" / "reviewer.md", "x")
    arguments = {"prompt": "x", "cwd": str(project), **more}
    refusal = refused(parts, verb, project, agent="nobody", **arguments)
    assert (refusal.kind, refusal.detail) == ("invalid_input", {"available": ["reviewer"]})
    launch = prepared(parts, verb, project, agent="reviewer", **arguments)
    assert (launch.details["agent"], flags(launch, "--agent")) == ("reviewer", ["reviewer"])


def test_a_profile_is_looked_for_from_the_folder_of_the_run(parts: HandWritten, project: Path) -> None:
    write(project / ".lionagi" / "agents" / "reviewer.md", "x")
    refused(parts, "agent.submit", project, agent="reviewer", prompt="x")
    prepared(parts, "agent.submit", project, agent="reviewer", prompt="x", cwd=str(project))


@pytest.mark.parametrize("name", ["", "..", "a/b/c", "../x", "a.md", "/etc/passwd", "a\0b"])
def test_names_that_no_profile_has(parts: HandWritten, project: Path, name: str) -> None:
    assert refused(parts, "agent.submit", project, agent=name, prompt="x").kind == "invalid_input"


def test_profiles_that_cannot_be_used(parts: HandWritten, project: Path) -> None:
    agents = project / ".lionagi" / "agents"
    for name in ("two-b-c", "two_b_c", "latin"):
        write(agents / f"{name}.md", b"\xff" if name == "latin" else b"x")
    for name, word in (("two-b_c", "Two profiles"), ("latin", "UTF-8")):
        refusal = refused(parts, "agent.submit", project, agent=name, prompt="x", cwd=str(project))
        assert refusal.kind == "invalid_input"
        assert word in refusal.message
        assert refusal.detail["files"]


def test_profiles_of_plugins_are_left_to_li(parts: HandWritten, project: Path, home: Path) -> None:
    bundle = home / ".lionagi" / "plugins" / "tools"
    write(bundle / "painter.md", "x")
    write(bundle / "plugin.yaml", "name: tools\ncapabilities: {agents: [painter.md]}\n")
    for name in ("tools/painter", "painter", "others/painter"):
        prepared(parts, "agent.submit", project, agent=name, prompt="x")
    refused(parts, "agent.submit", project, agent="brush", prompt="x")


# The playbook.


def test_the_playbook_of_a_run(parts: HandWritten, project: Path) -> None:
    path = write(project / ".lionagi" / "playbooks" / "p.playbook.yaml", "args: {effort: {}, a: {}}\n")
    launch = prepared(parts, "play.submit", project, playbook="p", cwd=str(project))
    told = launch.details["playbook"]
    assert {**told, "fingerprint": told["fingerprint"][:7]} == {
        "name": "p",
        "path": str(path),
        "fingerprint": "sha256:",
        "left_out": ["effort"],
    }
    assert launch.label == "p"
    arguments = {"playbook": "p", "cwd": str(project), "label": "mine"}
    known = prepared(parts, "play.submit", project, playbook_fingerprint=told["fingerprint"], **arguments)
    assert known.label == "mine"
    refusal = refused(parts, "play.submit", project, playbook_fingerprint="sha256:0", **arguments)
    assert (refusal.kind, refusal.detail) == ("conflict", {"playbook_fingerprint": told["fingerprint"]})


def test_a_playbook_that_li_would_not_take_is_refused(parts: HandWritten, project: Path) -> None:
    write(project / ".lionagi" / "playbooks" / "p.playbook.yaml", "workers: 0\n")
    for playbook in ("p", "q"):
        refusal = refused(parts, "flow.submit", project, playbook=playbook, cwd=str(project))
        assert refusal.kind == "invalid_input"


# The MCP servers.


def servers(**names: Any) -> str:
    return json.dumps({"mcpServers": {name: {"command": command} for name, command in names.items()}})


@pytest.mark.parametrize("verb", ["agent.submit", "flow.submit", "fanout.submit"])
def test_the_nearest_configuration_is_kept_with_the_run(parts: HandWritten, project: Path, verb: str) -> None:
    write(Path.cwd() / ".mcp.json", servers(of_the_server="x"))
    source = write(project / ".mcp.json", servers(b="2", a="1", c="3"))
    (below := project / "deep" / "down").mkdir(parents=True)
    launch = prepared(parts, verb, project, query=MODEL, prompt="x", cwd=str(below), exclude_mcp_servers=["c"])
    (path,) = flags(launch, "--mcp-config")
    assert path == str(launch.folder / "mcp-servers.json")
    copy = json.loads(launch.files["mcp-servers.json"])
    assert copy == {
        "mcpServers": {"a": {"command": "1"}, "b": {"command": "2"}},
        "lionagiSnapshotOf": str(source),
        "lionagiSnapshotSearchedFrom": str(below),
    }
    assert launch.details["mcp"] == {
        "config": path,
        "source": str(source),
        "servers": ["a", "b"],
        "excluded": ["c"],
        "reason": None,
    }


def test_without_a_folder_it_is_looked_for_from_the_server_s(parts: HandWritten, project: Path) -> None:
    source = write(Path.cwd() / ".mcp.json", servers(a="1"))
    assert prepared(parts, "agent.submit", project, query=MODEL, prompt="x").details["mcp"]["source"] == str(source)


@pytest.mark.parametrize(
    ("text", "arguments", "told"),
    [
        (None, {}, (None, None, "no_mcp_config_found")),
        (servers(), {}, (".mcp.json", [], "mcp_config_declares_no_servers")),
        (servers(a="1"), {"no_mcp_config": True}, (None, [], "mcp_disabled_by_caller")),
        (servers(a="1"), {"no_mcp_config": True, "exclude_mcp_servers": []}, (None, [], "mcp_disabled_by_caller")),
        (servers(a="1"), {"mcp_config": "other.json"}, ("other.json", ["o"], "mcp_config_named_by_caller")),
    ],
)
def test_where_no_copy_is_made(
    parts: HandWritten, project: Path, text: str | None, arguments: dict[str, Any], told: tuple[Any, ...]
) -> None:
    write(project / "other.json", servers(o="1"))
    if text is not None:
        write(project / ".mcp.json", text)
    launch = prepared(parts, "agent.submit", project, query=MODEL, prompt="x", cwd=str(project), **arguments)
    mcp = launch.details["mcp"]
    assert (mcp["source"] and Path(mcp["source"]).name, mcp["servers"], mcp["reason"]) == told
    assert "mcp-servers.json" not in launch.files
    assert flags(launch, "--mcp-config") == [value for value in arguments.values() if isinstance(value, str)]


def test_all_servers_may_be_left_out(parts: HandWritten, project: Path) -> None:
    write(project / ".mcp.json", servers(a="1"))
    arguments = {"query": MODEL, "prompt": "x", "cwd": str(project), "exclude_mcp_servers": ["a"]}
    launch = prepared(parts, "agent.submit", project, **arguments)
    assert json.loads(launch.files["mcp-servers.json"])["mcpServers"] == {}


@pytest.mark.parametrize(
    ("text", "arguments", "word"),
    [
        (servers(a="1"), {"exclude_mcp_servers": ["a", "z"]}, "not configured"),
        (None, {"exclude_mcp_servers": ["a"]}, "not configured"),
        (servers(a="1"), {"exclude_mcp_servers": ["a"], "mcp_config": "x.json"}, "neither"),
        (servers(a="1"), {"exclude_mcp_servers": ["a"], "no_mcp_config": True}, "neither"),
        (servers(a="1"), {"mcp_config": "missing.json"}, "not there"),
        (servers(a="1"), {"mcp_config": "~nobody-of-this-name/x"}, "not there"),
        ("{", {}, "not JSON"),
        ("[" * 100_000, {}, "not JSON"),
        ('{"mcpServers": {"a": NaN}}', {}, "not JSON"),
        ("[]", {}, "no JSON object"),
        ("{}", {}, "no object"),
        ('{"mcpServers": []}', {}, "no object"),
        (b"\xff", {}, "UTF-8"),
        (b" " * 1_048_577, {}, "large"),
    ],
)
def test_servers_that_cannot_be_told_or_left_out(
    parts: HandWritten, project: Path, text: str | bytes | None, arguments: dict[str, Any], word: str
) -> None:
    if text is not None:
        write(project / ".mcp.json", text)
    refusal = refused(parts, "agent.submit", project, query=MODEL, prompt="x", cwd=str(project), **arguments)
    assert refusal.kind == "invalid_input"
    assert word in refusal.message


def test_unknown_servers_are_named(parts: HandWritten, project: Path) -> None:
    write(project / ".mcp.json", servers(a="1"))
    arguments = {"query": MODEL, "prompt": "x", "cwd": str(project), "exclude_mcp_servers": ["z", "a\u202e"]}
    detail = refused(parts, "agent.submit", project, **arguments).detail
    assert detail == {"unknown": ["a\\u202e", "z"], "configured": ["a"]}


# What li is told besides.


def test_what_li_gets_besides(parts: HandWritten, project: Path) -> None:
    launch = prepared(parts, "agent.submit", project, query=MODEL, prompt="x")
    cause = str(launch.folder / "cause.json")
    assert launch.environment == {"LIONAGI_RUN_ID": RUN_ID, "LIONAGI_MCP_CAUSE_FILE": cause}
    assert launch.files["cause.json"] == ""
    (command,) = flags(launch, "--notify")
    *python, script, folder = shlex.split(command)
    assert python[1:] == ["-I", "-S"]
    assert (Path(script).name, folder) == ("report.py", str(launch.folder))
    assert launch.details["notify"] == {"target": None, "sender": None, "configured": False}
    assert "notify.json" not in launch.files


def test_the_command_for_the_end_needs_no_shell(parts: HandWritten, tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s $HOME; `x` | "y" & <z>'
    command = parts.notices.notify_flag(folder)
    assert shlex.split(command)[-1] == str(folder)
    quoted = shlex.shlex(command, posix=False, punctuation_chars=False)
    quoted.whitespace_split = True
    bare = "".join(character for word in quoted for character in _outside_of_quotes(word))
    assert not set(bare) & set("$;`|&<>")


def _outside_of_quotes(word: str) -> Iterator[str]:
    quote = ""
    for character in word:
        if character in "'\"" and quote in ("", character):
            quote = "" if quote else character
        elif not quote:
            yield character


@pytest.mark.parametrize("depth", ["1", "7"])
def test_an_agent_of_li_starts_no_others(
    parts: HandWritten, project: Path, monkeypatch: pytest.MonkeyPatch, depth: str
) -> None:
    monkeypatch.setenv("LIONAGI_AGENT_DEPTH", depth)
    assert refused(parts, "agent.submit", project, query=MODEL, prompt="x").kind == "conflict"


@pytest.mark.parametrize("depth", ["0", "", "x", "-1"])
def test_elsewhere_the_depth_says_nothing(
    parts: HandWritten, project: Path, monkeypatch: pytest.MonkeyPatch, depth: str
) -> None:
    monkeypatch.setenv("LIONAGI_AGENT_DEPTH", depth)
    prepared(parts, "agent.submit", project, query=MODEL, prompt="x")
