"""Agent profiles: lion-mcp reads their files as the real server does, and is not put off by a bad one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from .differences import check
from .mcp_process import McpProcess
from .outlines import outline
from .profiles import BROKEN, FILES, PLUGIN, PROJECT, UNSENDABLE
from .servers import environment, start_ours, start_theirs

NAMES = (
    *(
        "reviewer",
        "folded",
        "nested",
        "home-only",
        "my-agent",
        "my_agent",
        "only-dash",
        "only_dash",
        "one-a_c",
        "one_a-c",
    ),
    *(
        "two-b_c",
        "two_b_c",
        "nobody",
        "form-UPPER",
        "form-upper",
        "reviewer.md",
        "",
        "..",
        "a/b",
        "../x",
        "astray",
        "é",
    ),
    *("a\0b", "x" * 300, "*"),
)
PLACES = ["source", "shadowed", "ambiguous"]


def write(files: Mapping[str, str | bytes], project: Path, home: Path) -> None:
    for place, text in files.items():
        side, _, rest = place.partition("/")
        path = (project if side == "project" else home) / rest
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with profiles, with a folder `below` that has some too."""
    folder = tmp_path_factory.mktemp("project")
    (folder / ".git" / "refs").mkdir(parents=True)
    (folder / ".git" / "objects").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


@pytest.fixture(scope="module")
def home(li: Path, project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with profiles, and with a plugin that its user trusts."""
    folder = tmp_path_factory.mktemp("home")
    write({**FILES, **PLUGIN}, project, folder)
    subprocess.run(
        [str(li), "plugin", "trust", "--yes", "tools"], env=environment(folder), capture_output=True, check=True
    )
    (project / ".lionagi" / "agents" / "dangling.md").symlink_to("nowhere")
    (project / ".lionagi" / "agents" / "linked.md").symlink_to("reviewer.md")
    (project / ".lionagi" / "agents" / "folder.md").mkdir()
    (project / "link").symlink_to("below")
    return folder


@pytest.fixture(scope="module")
def servers(li: Path, lion_mcp: Path, project: Path, home: Path) -> Iterator[tuple[McpProcess, McpProcess]]:
    """Both servers in one home and one folder, as two clients of one user would start them."""
    with start_theirs(home, project / "below") as theirs, start_ours(home, project / "below") as ours:
        yield theirs, ours


def answer(server: McpProcess, verb: str, args: dict[str, Any]) -> Any:
    """The result, without profiles of plugins, which are compared for themselves; or the kind of the refusal."""
    entry = server.op(verb, args)
    if not entry["ok"]:
        return entry["error"]["kind"]
    result = entry["result"]
    if "profiles" in result:
        assert result["count"] == len(result["profiles"])
        result["profiles"] = [profile for profile in result["profiles"] if "/" not in profile["name"]]
        result["count"] = len(result["profiles"])
    return result


def profiles_of(server: McpProcess, args: dict[str, Any]) -> dict[str, Any]:
    """A list with an entry for each profile: `{"cwd": ..., "roots": ..., "order": [...], "profile x": {...}}`."""
    told = answer(server, "profile.list", args)
    profiles = told.pop("profiles")
    return {
        **told,
        "order": [profile["name"] for profile in profiles],
        **{f"profile {profile['name']}": profile for profile in profiles},
    }


@pytest.mark.parametrize("cwd", [".", "../many"])
def test_lists_agree(servers: tuple[McpProcess, McpProcess], cwd: str) -> None:
    theirs, ours = (profiles_of(server, {"cwd": cwd}) for server in servers)
    assert len(theirs["order"]) > (100 if cwd == "../many" else 10)
    check("profile.list", theirs, ours)


@pytest.mark.parametrize(
    "fields",
    [
        [],
        ["name"],
        PLACES,
        ["resolved"],
        ["resolved.model", "resolved.workload", "source"],
        ["resolved", "resolved.role"],
    ],
    ids=" ".join,
)
def test_lists_of_some_fields_agree(servers: tuple[McpProcess, McpProcess], fields: list[str]) -> None:
    theirs, ours = (profiles_of(server, {"fields": fields}) for server in servers)
    check("profile.list fields", theirs, ours)


def test_other_lists_agree(servers: tuple[McpProcess, McpProcess], project: Path, home: Path) -> None:
    folders = {
        "the server's": "",
        "above": "..",
        "home": "~",
        "a link": "../link",
        "the root": "/",
        "the project": str(project),
        "missing": "../missing",
        "a file": "../.git/HEAD",
        "with a NUL": "a\0b",
    }
    lists: dict[str, dict[str, Any]] = {
        **{f"folder {name}": {"cwd": cwd, "fields": PLACES} for name, cwd in folders.items()},
        "no names": {"names": [], "fields": ["source"]},
        "some names": {"names": ["reviewer", "nobody", ".."], "fields": ["source"]},
        "a field that is none": {"fields": ["bogus"]},
        "a setting that is none": {"fields": ["resolved."]},
        "a field in capitals": {"fields": ["Source"]},
    }
    theirs, ours = ({at: answer(server, "profile.list", args) for at, args in lists.items()} for server in servers)
    check("profile.list elsewhere", theirs, ours)


def test_single_profiles_agree(servers: tuple[McpProcess, McpProcess], project: Path) -> None:
    calls = {name[:20]: {"name": name} for name in (*NAMES, "dangling", "linked", "folder")}
    forms = sorted(path.stem for path in (project / "many" / ".lionagi" / "agents").glob("form-*.md"))
    calls |= {name: {"name": name, "cwd": "../many"} for name in (*forms, "role_0", "pack_0", "model_0")}
    theirs, ours = ({at: answer(server, "profile.show", args) for at, args in calls.items()} for server in servers)
    check("profile.show", theirs, ours)


def test_a_missing_folder_is_refused_alike(servers: tuple[McpProcess, McpProcess]) -> None:
    args = {"name": "reviewer", "cwd": "/nonexistent"}
    theirs, ours = (answer(server, "profile.show", args) for server in servers)
    assert theirs == ours == "invalid_input"


def test_profiles_of_plugins(servers: tuple[McpProcess, McpProcess]) -> None:
    theirs, ours = (plugin_profiles(server) for server in servers)
    check("plugin profiles", theirs, ours)


def plugin_profiles(server: McpProcess) -> dict[str, str]:
    profiles = server.op("profile.list", {"fields": []})["result"]["profiles"]
    shown = {name: answer(server, "profile.show", {"name": name}) for name in ("tools/painter", "painter")}
    return {
        "listed": " ".join(profile["name"] for profile in profiles if "/" in profile["name"]),
        **{name: told if isinstance(told, str) else "shown" for name, told in shown.items()},
    }


def listed(server: McpProcess, *names: str) -> str:
    """`a, b, c: problem` for profiles of which the last has one, or the kind of the refusal."""
    told = answer(server, "profile.list", {"names": list(names)})
    if isinstance(told, str):
        return told
    return ", ".join(profile["name"] + (": problem" if "problem" in profile else "") for profile in told["profiles"])


def test_bad_profiles_hide_no_others(servers: tuple[McpProcess, McpProcess], project: Path, home: Path) -> None:
    theirs: dict[str, str] = {}
    ours: dict[str, str] = {}
    for name, files in BROKEN.items():
        write(files, project, home)
        for told, server in ((theirs, servers[0]), (ours, servers[1])):
            told[f"list with {name}"] = listed(server, "reviewer", name)
            shown = answer(server, "profile.show", {"name": name})
            told[f"show {name}"] = shown if isinstance(shown, str) else "shown"
        for place in files:
            (home if place.startswith("home/") else project).joinpath(place.partition("/")[2]).unlink()
    check("bad profiles", theirs, ours)


@pytest.mark.parametrize("name", UNSENDABLE)
def test_what_cannot_be_sent_hides_no_others(
    servers: tuple[McpProcess, McpProcess], project: Path, home: Path, name: str
) -> None:
    _, ours = servers
    write({f"{PROJECT}{name}.md": UNSENDABLE[name]}, project, home)
    told = listed(ours, "reviewer", name)
    shown = answer(ours, "profile.show", {"name": name})
    (project / ".lionagi" / "agents" / f"{name}.md").unlink()
    assert told == ", ".join(sorted([f"{name}: problem", "reviewer"]))
    assert shown == "invalid_input"


def test_half_a_character_is_replaced(servers: tuple[McpProcess, McpProcess], project: Path, home: Path) -> None:
    write({f"{PROJECT}halved.md": '---\naccount_connectors: ["a\\ud800"]\n---\n'}, project, home)
    shown = answer(servers[1], "profile.show", {"name": "halved"})
    (project / ".lionagi" / "agents" / "halved.md").unlink()
    assert shown["resolved"]["account_connectors"] == ["a?"]


def test_an_ambiguous_profile_tells_its_files(
    servers: tuple[McpProcess, McpProcess], project: Path, home: Path
) -> None:
    write(BROKEN["tri-b_c"], project, home)
    told = answer(servers[1], "profile.list", {"names": ["tri-b_c"], "fields": ["ambiguous", "source", "resolved"]})
    (profile,) = told["profiles"]
    assert [Path(place["path"]).name for place in profile["ambiguous"]] == ["tri_b_c.md", "tri-b-c.md"]
    assert profile["source"] is profile["resolved"] is None
    assert profile["problem"]


def test_a_folder_of_nobody_is_refused_alone(servers: tuple[McpProcess, McpProcess]) -> None:
    request = {"ops": [{"op": "profile.list", "args": {"cwd": "~nobody-of-this-name"}}]}
    theirs, ours = ({"cwd of nobody": outline(server.call(request))} for server in servers)
    check("bad profiles: cwd", theirs, ours)
