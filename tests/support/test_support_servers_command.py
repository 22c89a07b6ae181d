"""The command `servers`: what is registered is shown and changed, each change is on record, and live schemas are pinned."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from verbc.support.manifest import Manifest, read_manifest
from verbc.support.operator_command import main
from verbc.support.registrations import ABSENT_DIGEST
from verbc.support.registry import from_data

from . import listing_server
from .manifests import getter
from .operators import VARIABLE, Operation, operation
from .raw_server import PATIENCE
from .samples import DATA

ZONE: dict[str, Any] = {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]}


def written(server_id: str = "clock", tools: Any = None, **members: Any) -> dict[str, Any]:
    return {
        "server_id": server_id,
        "transport": "stdio",
        "stdio": {"command": "clock-server", "env": {"ZONE": "SAMPLE_ZONE"}},
        "tools": [getter("now", input_schema=ZONE)] if tools is None else tools,
        **members,
    }


def manifest(value: dict[str, Any]) -> Manifest:
    return read_manifest(value, ["SAMPLE_*"])


TIME = manifest(written("time"))
GATE: dict[str, Any] = {
    **DATA["backends"],
    "gate": {"kind": "gateway", "env": ["SAMPLE_*"], "list": 100, "manifests": [TIME.data]},
}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Operation:
    """With a gateway whose spec offers the server `time`."""
    registry = from_data({**DATA, "backends": GATE})
    return operation(registry, tmp_path, monkeypatch, capsys)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "clock.yaml"
    path.write_text(json.dumps(written()))
    return path


def listed(server: Operation) -> dict[str, list[str]]:
    """The table of servers: id → the rest of the row."""
    heading, *rows = (line.split() for line in server.run("servers", "list").out.splitlines())
    assert heading == ["server", "transport", "tools", "from", "generation", "digest", "changed", "state"]
    return {server_id: row for server_id, *row in rows}


def shown(server: Operation, server_id: str) -> Any:
    return json.loads(server.run("servers", "show", server_id).out)


# What is shown


def test_the_servers_of_the_spec_are_there_from_the_beginning(server: Operation) -> None:
    (row,) = listed(server).values()
    assert row[:5] == ["stdio", "1", "spec", "1", TIME.digest[:12]]
    assert row[-1] == "registered"
    assert listed(server) == {"time": row}


def test_that_they_were_registered_is_on_record_once(server: Operation) -> None:
    listed(server)
    listed(server)
    (row,) = map(json.loads, server.run("audit").out.splitlines())
    assert (row["kind"], row["outcome"], row["actor"], row["subject"]) == ("registry", "seed", "spec", None)
    assert row["target"] == {"server_id": "time", "registration_digest": TIME.digest, "registration_generation": 1}


def test_one_server_is_shown_in_full(server: Operation) -> None:
    found = shown(server, "time")
    assert found["manifest"] == TIME.data
    assert (found["state"], found["generation"], found["digest"]) == ("registered", 1, TIME.digest)
    assert found["stdio_authority_resource"].startswith("mcp_stdio:")
    assert (found["origin"], found["registered_by"]) == ("spec", None)


def test_what_is_shown_steers_no_terminal(server: Operation, file: Path) -> None:
    file.write_text(json.dumps(written(metadata={"note": "\u202e\x1b[31m"})))
    server.run("servers", "add", str(file))
    out = server.run("servers", "show", "clock").out
    assert out.isascii()
    assert "\x1b" not in out
    assert json.loads(out)["manifest"]["metadata"] == {"note": "\u202e\x1b[31m"}


@pytest.mark.parametrize("word", ["show", "remove", "confirm", "diff", "pin"])
def test_a_server_that_is_not_there_is_told(word: str, server: Operation) -> None:
    assert server.refused("servers", word, "nope") == "There is no server `nope`."
    assert server.refused("servers", word, "no/\x1bpe") == "There is no server `no/\\u001bpe`."


# Changes


def test_a_server_is_added(server: Operation, file: Path) -> None:
    told = server.run("servers", "add", str(file)).out.splitlines()
    found = shown(server, "clock")
    assert told == [
        f"Registered `clock`: generation 1, digest {found['digest']}.",
        f"To start it takes `write process:spawn` and `execute {found['stdio_authority_resource']}`.",
    ]
    assert found["state"] == "registered"
    assert found["registered_by"].startswith("operator:")
    assert [*listed(server)] == ["clock", "time"]


def test_one_that_is_there_is_not_added_but_replaced(server: Operation, file: Path) -> None:
    server.run("servers", "add", str(file))
    assert "There is a server `clock` already" in server.refused("servers", "add", str(file))
    told = server.run("servers", "replace", str(file)).out.splitlines()
    assert told[0].startswith("Replaced `clock`: generation 2,")
    assert told[-1] == "What the policy grants on `mcp:clock` does not count until `servers confirm` says so."
    assert shown(server, "clock")["state"] == "suspended"
    told = server.run("servers", "confirm", "clock").out.splitlines()
    assert told == [
        f"What the policy grants on `clock` counts: generation 2, digest {shown(server, 'clock')['digest']}."
    ]
    assert shown(server, "clock")["state"] == "registered"


def test_one_that_is_not_there_is_not_replaced(server: Operation, file: Path) -> None:
    assert server.refused("servers", "replace", str(file)) == "There is no server `clock`."


def test_a_server_is_removed_and_stays_on_record(server: Operation, file: Path) -> None:
    server.run("servers", "add", str(file))
    assert server.run("servers", "remove", "clock").out.splitlines() == [
        "Removed `clock`; its generation is 2.",
        "What the policy grants on `mcp:clock` does not count until it is registered again and `servers confirm` says so.",
    ]
    assert listed(server)["clock"][-1] == "removed"
    assert shown(server, "clock")["manifest"] is None
    for word in ("remove", "confirm", "pin"):
        assert server.refused("servers", word, "clock") == "The server `clock` is removed."
    server.run("servers", "add", str(file))
    assert (shown(server, "clock")["state"], shown(server, "clock")["generation"]) == ("suspended", 3)


def test_a_confirmation_can_be_of_one_generation_alone(server: Operation, file: Path) -> None:
    server.run("servers", "add", str(file))
    server.run("servers", "replace", str(file))
    for other in ("1", "3"):
        told = server.refused("servers", "confirm", "clock", "--generation", other)
        assert told == f"The generation of `clock` is 2 and not {other}; look again."
        assert shown(server, "clock")["state"] == "suspended"
    assert "generation 2, " in server.run("servers", "confirm", "clock", "--generation", "2").out
    assert shown(server, "clock")["state"] == "registered"


def test_what_an_operator_has_removed_the_spec_does_not_bring_back(server: Operation) -> None:
    server.run("servers", "remove", "time")
    assert listed(server)["time"][-1] == "removed"


def test_the_name_of_a_file_steers_no_terminal(server: Operation, tmp_path: Path) -> None:
    name = tmp_path / "m\x1b[31m\u202e.yaml"
    shown = f"The file {tmp_path}/m\\u001b[31m\\u202e.yaml "
    assert server.refused("servers", "add", str(name)).startswith(f"{shown}cannot be read: ")
    for content in (b"\xff", b"{", b"[]", b" " * (1 << 19)):
        name.write_bytes(content)
        assert server.refused("servers", "add", str(name)).startswith(shown)
    assert server.refused("servers", "add", "a\x00").startswith("The file a\\u0000 cannot be read: ")


def test_a_manifest_does_not_come_from_a_stdin_that_is_closed(
    server: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert server.refused("servers", "add", "-") == "Stdin cannot be read: it is closed."


def test_a_manifest_can_come_from_stdin(server: Operation, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "server:\n  server_id: clock\n  transport: streamable_http\n  http: {url: https://clock.example/mcp}\n  tools:\n"
    text += "".join(
        f"    {'- ' if name == 'tool_id' else '  '}{name}: {json.dumps(value)}\n"
        for name, value in getter("now").items()
    )
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    told = server.run("servers", "add", "-").out
    assert told.startswith("Registered `clock`: generation 1,")
    assert "process:spawn" not in told
    assert shown(server, "clock")["manifest"]["http"]["url"] == "https://clock.example/mcp"


@pytest.mark.parametrize("word", ["add", "replace"])
def test_a_manifest_that_is_wrong_changes_nothing(word: str, server: Operation, file: Path) -> None:
    before = listed(server)
    file.write_text(json.dumps(written("time", [getter("now", rigth="read")], color="red")))
    told = server.refused("servers", word, str(file)).split("\n")
    assert told[0] == f"The file {file} is no manifest that can be registered:"
    assert len(told) == 3
    assert "`rigth`" in told[1] + told[2]
    assert "`color`" in told[1] + told[2]
    for text, problem in (
        (b"server_id: [", f"The file {file} cannot be read, line "),
        (b"a: 1\na: 2", f"The file {file} cannot be read, line 2, column 1: the key `a` is there before."),
        (b"\xff", f"The file {file} is not UTF-8."),
        (b"#" * 262_145, f"The file {file} is too large for a manifest; it may have 262144 bytes."),
    ):
        file.write_bytes(text)
        assert server.refused("servers", word, str(file)).startswith(problem)
    file.unlink()
    assert server.refused("servers", word, str(file)) == f"The file {file} cannot be read: No such file or directory."
    assert listed(server) == before


@pytest.mark.parametrize("variable", [VARIABLE, "SAMPLE_MCP_STORE", "SAMPLE_MCP_STATE_KEYS", "HOME"])
def test_a_manifest_names_none_of_the_servers_own_variables(variable: str, server: Operation, file: Path) -> None:
    stdio = {"command": "clock-server", "env": {"X": variable}}
    file.write_text(json.dumps(written(stdio=stdio)))
    assert "stdio.env.X: `X` must " in server.refused("servers", "add", str(file))


def test_every_change_is_on_record(server: Operation, file: Path) -> None:
    for words in (["add", str(file)], ["replace", str(file)], ["confirm", "clock"], ["remove", "clock"]):
        server.run("servers", *words)
    server.refused("servers", "remove", "clock")
    digest = manifest(written()).digest
    _, *found = [json.loads(line) for line in server.run("audit").out.splitlines()]  # the first is of the spec's
    assert [(row["kind"], row["outcome"]) for row in found] == [
        ("registry", "add"),
        ("registry", "replace"),
        ("registry", "confirm"),
        ("registry", "remove"),
    ]
    assert [row["target"]["registration_generation"] for row in found] == [1, 2, 2, 3]
    assert [row["target"]["registration_digest"] for row in found] == [digest, digest, digest, ABSENT_DIGEST]
    assert {row["target"]["server_id"] for row in found} == {"clock"}
    assert all(row["actor"].startswith("operator:") for row in found)


KILLED = """
import json, os, sys
from verbc.support import store
from verbc.support.operator_command import main
from verbc.support.registry import from_data

store.fault = lambda place: os._exit(9) if place == sys.argv[2] else None
sys.exit(main(sys.argv[3:], from_data(json.loads(sys.argv[1]))))
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("word", ["seed", "add", "replace", "remove", "confirm"])
def test_a_command_that_is_killed_has_changed_all_or_nothing(
    word: str, when: str, server: Operation, file: Path
) -> None:
    if word not in ("seed", "add"):
        server.run("servers", "add", str(file))
        server.run("servers", "replace", str(file))
    before = len(server.run("audit").out.splitlines())
    words = [
        word if word != "seed" else "list",
        *({"add": [str(file)], "replace": [str(file)], "seed": []}.get(word, ["clock"])),
    ]
    options = ["--policy", str(server.policy), "--state", str(server.state)]
    command = [
        sys.executable,
        "-c",
        KILLED,
        json.dumps(DATA | {"backends": GATE}),
        f"{when} {word}",
        "servers",
        *options,
        *words,
    ]
    killed = subprocess.run(command, capture_output=True, timeout=PATIENCE)
    assert (killed.returncode, killed.stdout) == (9, b"")
    done = when == "after"
    seeded = word == "add"  # before anything else is done
    assert len(server.run("audit").out.splitlines()) == before + seeded + done
    if word == "seed":
        assert [*listed(server)] == ["time"]
    elif word == "add":
        assert ("clock" in listed(server)) is done
    else:
        state = {"replace": "suspended", "remove": "removed", "confirm": "registered"}[word] if done else "suspended"
        found = shown(server, "clock")
        assert (found["state"], found["generation"]) == (state, 2 + (done and word != "confirm"))


# Who may


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["show", "time"],
        ["add", "x"],
        ["replace", "x"],
        ["remove", "time"],
        ["confirm", "time"],
        ["diff", "time"],
        ["pin", "time"],
    ],
)
def test_everything_takes_an_operator_key(words: list[str], server: Operation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, server.key + "x")
    assert server.refused("servers", *words) == f"The operator key is none of those in the policy file {server.policy}."
    assert not server.state.exists()


def test_the_options_can_stand_at_the_end(server: Operation, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["servers", "list", "--policy", str(server.policy), "--state", str(server.state)]
    assert main(words, server.registry) == 0
    assert "time" in capsys.readouterr().out


def test_a_state_folder_that_cannot_be_used_is_told(server: Operation) -> None:
    server.state.mkdir(mode=0o755)
    server.state.chmod(0o755)
    assert "must be open to its owner alone" in server.refused("servers", "list")


# Beside the spec, and beside what is offered


def test_what_is_as_in_the_spec_is_said_to_be(server: Operation, file: Path) -> None:
    assert server.run("servers", "diff", "time", "--offline").out == "The registration of `time` is that of the spec.\n"
    server.run("servers", "add", str(file))
    assert server.run("servers", "diff", "clock", "--offline").out == "The spec has no server `clock`.\n"


def test_a_change_of_an_operator_is_shown_beside_the_spec(server: Operation, file: Path) -> None:
    file.write_text(json.dumps(written("time", timeout_s=20)))
    server.run("servers", "replace", str(file))
    lines = server.run("servers", "diff", "time", "--offline").out.splitlines()
    assert lines[:2] == ["--- as the spec has it", "+++ as registered (suspended)"]
    assert [line for line in lines[2:] if line[0] in "+-"] == ['-  "timeout_s": 10,', '+  "timeout_s": 20,']
    server.run("servers", "remove", "time")
    lines = server.run("servers", "diff", "time").out.splitlines()
    assert lines[1] == "+++ as registered (removed)"
    assert not [line for line in lines[2:] if line.startswith("+")]


class Offering:
    """A registered server that lists what a file holds."""

    def __init__(self, server: Operation, folder: Path, *tools: dict[str, Any]) -> None:
        self.server = server
        self._tools = folder / "tools.json"
        stdio = {"command": sys.executable, "args": [listing_server.__file__, str(self._tools)]}
        path = folder / "listing.yaml"
        path.write_text(json.dumps(written("listing", [*tools], stdio=stdio)))
        server.run("servers", "add", str(path))

    def offer(self, **schemas: Any) -> None:
        tools = [{"name": name, "inputSchema": schema} for name, schema in schemas.items()]
        self._tools.write_text(json.dumps(tools))


@pytest.fixture
def offering(server: Operation, tmp_path: Path) -> Offering:
    return Offering(server, tmp_path, getter("now", input_schema=ZONE), getter("zones"))


def test_what_is_offered_as_registered_is_said_to_be(offering: Offering) -> None:
    offering.offer(get_now=ZONE, get_zones={})
    assert offering.server.run("servers", "diff", "listing").out.splitlines() == [
        "The spec has no server `listing`.",
        "The tools that `listing` offers are as registered.",
    ]
    told = offering.server.run("servers", "pin", "listing", "--yes").out
    assert told == "The schemas that `listing` offers are those that are registered.\n"
    assert shown(offering.server, "listing")["generation"] == 1


def test_what_is_offered_otherwise_is_shown(offering: Offering) -> None:
    offering.offer(get_now={**ZONE, "title": "Zone"}, other={"type": "object"})
    lines = offering.server.run("servers", "diff", "listing").out.splitlines()
    assert lines[1:3] == ["--- now as registered", "+++ now as offered now"]
    assert '+  "title": "Zone",' in lines
    assert lines[-2:] == ["`zones`: the server has no tool `get_zones` now.", "Not registered: `other`."]


def test_pinning_shows_and_changes_nothing_without_a_yes(offering: Offering) -> None:
    offering.offer(get_now={**ZONE, "title": "Zone"}, get_zones={"type": "object"})
    lines = offering.server.run("servers", "pin", "listing").out.splitlines()
    assert '+  "title": "Zone",' in lines
    assert lines[-1] == "Nothing is changed; with --yes the schemas that are offered are registered."
    assert shown(offering.server, "listing")["generation"] == 1


def test_pinning_registers_the_schemas_that_are_offered(offering: Offering) -> None:
    offering.offer(get_now={**ZONE, "title": "Zone"}, get_zones={"type": "object"}, other={})
    lines = offering.server.run("servers", "pin", "listing", "--yes").out.splitlines()
    assert '+  "title": "Zone",' in lines
    assert lines[-1] == "What the policy grants on `mcp:listing` does not count until `servers confirm` says so."
    found = shown(offering.server, "listing")
    assert (found["generation"], found["state"]) == (2, "suspended")
    assert [one["input_schema"] for one in found["manifest"]["tools"]] == [
        {**ZONE, "title": "Zone"},
        {"type": "object"},
    ]


@pytest.mark.parametrize(
    ("offered", "told"),
    [
        ({}, ["`now`: the server has no tool `get_now` now."]),
        ({"now": ZONE}, ["`now`: the server has no tool `get_now` now.", "Not registered: `now`."]),
        ({"get_now": {}}, ["`now`: the server has no schema for `get_now` now."]),
    ],
)
def test_what_is_not_offered_cannot_be_pinned(offering: Offering, offered: dict[str, Any], told: list[str]) -> None:
    offering.offer(get_zones={"type": "object"}, **offered)
    lines = offering.server.run("servers", "pin", "listing").out.splitlines()
    assert lines[-len(told) :] == told
    refused = offering.server.refused("servers", "pin", "listing", "--yes")
    assert refused.splitlines() == [
        "Nothing is changed; the schemas cannot be registered:",
        *(f"  {line}" for line in told),
    ]
    assert shown(offering.server, "listing")["generation"] == 1


def test_a_schema_that_cannot_be_registered_is_not_pinned(offering: Offering) -> None:
    offering.offer(get_now={"type": "nonsense"}, get_zones={})
    told = offering.server.refused("servers", "pin", "listing", "--yes")
    assert told.startswith("With the schemas that are offered, this is no manifest that can be registered:\n")
    assert shown(offering.server, "listing")["generation"] == 1


@pytest.mark.parametrize("tools", ['[{"name": "a"}, {"name": "a"}]', '[{"name": 7}]', "7"])
def test_a_list_that_is_malformed_is_told(tools: str, offering: Offering, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(tools)
    for word in ("diff", "pin"):
        assert "`listing`" in offering.server.refused("servers", word, "listing")


def test_a_server_that_does_not_start_is_told(server: Operation, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMPLE_ZONE", "UTC")
    server.run("servers", "add", str(file))
    folders = f"`/usr/local/bin`, `/usr/bin`, `/bin`, `{Path(sys.executable).parent}`"
    told = f"there is no program `clock-server` in {folders} (McpCommandNotFound)"
    for word in ("diff", "pin"):
        assert server.refused("servers", word, "clock") == f"The tools of `clock` could not be listed: {told}."


def test_a_variable_that_is_not_set_is_told(server: Operation, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SAMPLE_ZONE", raising=False)
    server.run("servers", "add", str(file))
    assert "`SAMPLE_ZONE`" in server.refused("servers", "pin", "clock")


@pytest.mark.parametrize("words", [[], ["nope"], ["show"], ["add"], ["list", "more"], ["pin", "a", "--y"]])
def test_wrong_usage_is_told(words: list[str], server: Operation, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["servers", *words], server.registry)
    assert ended.value.code == 2
    assert "usage: sample-mcp servers" in capsys.readouterr().err
