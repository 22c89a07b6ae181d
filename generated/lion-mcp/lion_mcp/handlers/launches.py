"""A run before its start: what li could not do with it is refused, and what li needs beyond the command line is made ready."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from lion_mcp.interface import Call, Launch, Refusal
from lion_mcp.models import FlowSubmitParams, PlaySubmitParams

from . import causes, report
from .foreign_words import shown_path
from .mcp_servers import Servers, Wish, servers_for
from .nesting import inside_agent
from .notices import Notice, notice_for, notify_flag
from .places import NAME, find, names_in, roots_from
from .playbook_arguments import arguments_of, left_out, names_taken
from .playbooks import Playbook, playbook_named
from .plugins import named_in_plugins
from .profiles import NAME_IN_PLUGIN
from .settings import UnreadableProfileError, text_of
from .tasks import Kind, Params, Task, task_of

MOST_NAMES_TOLD = 200


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found out about a submission that nothing speaks against."""

    kind: Kind
    task: Task
    cwd: Path | None
    playbook: Playbook | None
    servers: Servers
    notice: Notice


def prepare(launch: Launch, params: Params, call: Call) -> None:
    """Shape the start of `agent.submit` and its like. Raises Refusal; the launch is then as it was."""
    findings = examined(cast(Kind, call.verb.name.removesuffix(".submit")), params)
    playbook, notice = findings.playbook, findings.notice
    launch.cwd = findings.cwd
    launch.label = launch.label or (playbook.name if playbook else None)
    # It is made empty, so that it is this user's alone when li writes into it.
    launch.environment |= {"LIONAGI_RUN_ID": launch.run_id, causes.VARIABLE: launch.file(causes.FILE, "")}
    launch.flag("--notify", notify_flag(launch.folder))
    if notice.configured:
        launch.file(report.SETTINGS, notice.settings(launch.run_id, launch.label or findings.kind))
    launch.details |= {
        "kind": findings.kind,
        "agent": params.agent,
        "playbook": _told_of_playbook(playbook, call),
        "mcp": findings.servers.as_json(_give_servers(launch, findings.servers)),
        "notify": notice.as_json(),
        "notice": report.result("pending" if notice.configured else "none"),
    }
    _give_task(launch, findings)


def examined(kind: Kind, params: Params) -> Findings:
    """Look at everything that can be refused before there is anything of the run. Raises Refusal."""
    if inside_agent():
        sentence = "This server runs inside an agent that li started, and such an agent may start no others."
        raise Refusal("conflict", sentence)
    cwd = folder_of_run(params.cwd)
    folder = cwd or own_folder()
    playbook = playbook_of(params, folder)
    task = task_of(kind, params)
    check_agent(params.agent, folder)
    wish = Wish(params.mcp_config, params.no_mcp_config is True, tuple(params.exclude_mcp_servers or ()))
    return Findings(kind, task, cwd, playbook, servers_for(wish, folder), notice_for(params, os.environ, folder))


def folder_of_run(cwd: str | None) -> Path | None:
    """The folder that a caller names. Raises Refusal when it is none, or it depends on where the server is."""
    if cwd is None:
        return None
    folder = Path(cwd)
    if not folder.is_absolute():
        raise Refusal("invalid_input", "cwd has to be an absolute path.")
    if not (os.path.isdir(folder) and os.access(folder, os.X_OK)):
        raise Refusal("invalid_input", "cwd is no folder that can be worked in.")
    return folder


def own_folder() -> Path:
    """Where the server is, and so its runs unless they say otherwise. Raises Refusal when that is gone."""
    try:
        return Path.cwd()
    except OSError:
        raise Refusal("unavailable", "The folder that the server works in is gone. Give cwd.") from None


def check_agent(name: str | None, folder: Path) -> None:
    """Raises Refusal when no profile has the name, or two have it, or li could not read it. A plugin's is left to li."""
    if name is None or NAME_IN_PLUGIN.fullmatch(name):
        return
    if not NAME.fullmatch(name):
        raise Refusal("invalid_input", "A profile's name has only letters, digits, - and _.")
    roots = roots_from(folder)
    found = find(name, roots)
    if found.source:
        check_profile(found.source.path)
    elif found.ambiguous:
        files = [shown_path(place.path) for place in found.ambiguous]
        sentence = "Two profiles have this name, one with - and one with _; one of them must go."
        raise Refusal("invalid_input", sentence, {"files": files})
    elif named_in_plugins("agents", name, folder) is None:
        available = names_in(roots)[:MOST_NAMES_TOLD]
        sentence = "There is no profile of that name in the folder of the run."
        raise Refusal("invalid_input", sentence, {"available": available})


def check_profile(path: Path) -> None:
    """Raises Refusal when li could not read the profile."""
    try:
        text_of(path)
    except UnreadableProfileError as error:
        raise Refusal("invalid_input", f"The profile cannot be used. {error}", {"files": [shown_path(path)]}) from None


def playbook_of(params: Params, folder: Path) -> Playbook | None:
    """The playbook of a submission. Raises Refusal when li would not take it, or it is another than the caller saw."""
    if not isinstance(params, FlowSubmitParams | PlaySubmitParams) or params.playbook is None:
        return None
    playbook = playbook_named(params.playbook, folder)
    if params.playbook_fingerprint not in (None, playbook.fingerprint):
        detail: dict[str, Any] = {"playbook_fingerprint": playbook.fingerprint}
        raise Refusal("conflict", "The playbook is not the one with that fingerprint.", detail)
    return playbook


def _told_of_playbook(playbook: Playbook | None, call: Call) -> dict[str, Any] | None:
    if playbook is None:
        return None
    return {
        "name": playbook.name,
        "path": shown_path(playbook.path),
        "fingerprint": playbook.fingerprint,
        "left_out": left_out(arguments_of(playbook.declared), names_taken(call)),
    }


def _give_servers(launch: Launch, servers: Servers) -> str | None:
    """The path of the configuration that li is given."""
    if servers.copy is None:
        return shown_path(servers.source) if servers.reason == "mcp_config_named_by_caller" and servers.source else None
    path = launch.file("mcp-servers.json", servers.copy)
    launch.flag("--mcp-config", path)
    return path


def _give_task(launch: Launch, findings: Findings) -> None:
    """An agent reads its task from a file of the run; elsewhere it is the last word of the command line."""
    text = findings.task.text
    if text is None:
        return
    if findings.kind == "agent":
        launch.flag("--prompt-file", launch.file("prompt.txt", text))
    elif findings.task.from_file:
        launch.positional(text)
