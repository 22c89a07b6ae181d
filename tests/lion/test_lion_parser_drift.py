"""specs/lion is compared with the argument parsers of the installed `li`, so that no change of the command line goes unseen."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .mcp_process import McpProcess
from .places import Place
from .servers import environment
from .spec_of_lion import FACTS, LION, SPAWNING
from .stubs import StubLi
from .submits import submit, wait

COMMANDS = LION.commands(available=True)
# Parameters of the parser that the spec knows nothing of, and why.
LEFT_OUT = {
    **dict.fromkeys(
        ("doctor json", "schedule.status as_json", "schedule.runs as_json", "schedule.validate as_json"),
        "the reply is JSON already",
    ),
    **dict.fromkeys(("schedule.status wait", "schedule.trigger wait"), "a query answers at once"),
    **dict.fromkeys(
        ("schedule.export output", "schedule.export report"), "the reply holds what these would write to files"
    ),
}
# Defaults of the parser that the spec leaves out, and why.
NO_DEFAULT = {
    **dict.fromkeys(
        ("flow.submit with_synthesis", "play.submit with_synthesis", "fanout.submit with_synthesis"),
        "false is no value that the parameter takes",
    )
}
# What the spec wants though the parser lets it be absent, and why.
REQUIRED_ALL_THE_SAME = {
    "dispatch.purge id": "without it the flags that delete many at once would be needed",
    "play.submit playbook": "it is what is played",
}

# What is refused though the parser has no such flag, and why.
REFUSED_ALL_THE_SAME = dict.fromkeys(
    ("flow.submit prompt_flag", "play.submit prompt_flag", "fanout.submit prompt_flag"),
    "all that start runs take their task in the same way",
)

TYPES = {None: "string", "int": "integer", "float": "number"}

Parsers = dict[str, list[dict[str, Any]]]


def taken_from(parsers: Parsers, name: str) -> list[dict[str, Any]]:
    """The actions of a command's parser that should be parameters of the verb."""
    refused = LION.verbs[name].get("refused", {})
    return [
        action
        for action in parsers[COMMANDS[name]]
        if action["dest"] not in refused and f"{name} {action['dest']}" not in LEFT_OUT
    ]


def written_for(parsers: Parsers, name: str) -> dict[str, Any]:
    """The parameters of a verb that are the command's, each as its schema."""
    known = {action["dest"] for action in parsers[COMMANDS[name]]}
    params = LION.verbs[name].get("params", {})
    return {key: LION.schema(schema) for key, schema in params.items() if key in known or key not in LION.own(name)}


def ask_parsers(li: Path, home: Path, question: str, words: object = None) -> Any:
    script = Path(__file__).with_name("li_parsers.py")
    done = subprocess.run(
        [str(li.with_name("python")), str(script), question],
        env=environment(home),
        input=json.dumps(words),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def parsers(li: Path, tmp_path_factory: pytest.TempPathFactory) -> Parsers:
    """Command → what its parser takes, without `--machine`, which every call gets."""
    told: Parsers = ask_parsers(li, tmp_path_factory.mktemp("home"), "describe")
    return {words: [action for action in actions if action["dest"] != "machine"] for words, actions in told.items()}


def test_every_command_has_a_verb_or_a_fence(parsers: Parsers) -> None:
    words = {*COMMANDS.values(), *LION.commands(available=False).values()}
    assert parsers.keys() - words <= set(LION.li["fenced"])
    assert words - parsers.keys() == set()


def test_no_verb_reaches_a_fenced_command() -> None:
    words = {*COMMANDS.values(), *LION.commands(available=False).values()}
    assert not [command for command in words for path in LION.li["fenced"] if f"{command} ".startswith(f"{path} ")]
    assert LION.li["fenced"] == FACTS["fenced"]


def schema_of(action: dict[str, Any]) -> dict[str, Any]:
    """The parameter that an action of a parser stands for."""
    match action["kind"], action["type"]:
        case (("_StoreTrueAction" | "_StoreFalseAction"), None):
            schema: dict[str, Any] = {"type": "boolean"}
        case "_StoreAction", "json-array":
            schema = {"type": "array", "items": {"type": "string"}}
        case "_StoreAction", kind if action["bare"]:
            schema = {"anyOf": [{"type": TYPES[kind]}, {"const": True}]}
        case "_StoreAction", kind if action["nargs"] in (None, "?"):
            schema = {"type": TYPES[kind]}
        case ("_AppendAction", kind) if action["nargs"] is None:
            schema = {"type": "array", "items": {"type": TYPES[kind]}}
        case ("_StoreAction", kind) if action["nargs"] == "*":
            schema = {"type": "array", "items": {"type": TYPES[kind]}}
        case other:
            pytest.fail(f"an action that the spec has no word for: {other}")
    for key, value in (("enum", action["choices"]), ("default", action["default"])):
        if value is not None:
            schema[key] = value
    return {**schema, **action["bounds"]}


@pytest.mark.parametrize("name", COMMANDS)
def test_parameters_are_those_of_the_parser(parsers: Parsers, name: str) -> None:
    taken = taken_from(parsers, name)
    written = written_for(parsers, name)
    for schema in written.values():
        if "enum" in schema:
            schema["enum"] = sorted(schema["enum"])
    read = {action["dest"]: schema_of(action) for action in taken}
    for key, schema in read.items():
        if f"{name} {key}" in NO_DEFAULT:
            del schema["default"]
    assert written == read
    if name not in SPAWNING:  # what these share stands once, and first
        assert list(written) == list(read)


@pytest.mark.parametrize("name", COMMANDS)
def test_required_and_positional_are_those_of_the_parser(parsers: Parsers, name: str) -> None:
    verb = LION.verbs[name]
    taken = taken_from(parsers, name)
    required = {action["dest"] for action in taken if action["required"] and action["nargs"] != "*"}
    more = set(verb.get("required", ())) - required
    assert required <= set(verb.get("required", ()))
    assert {f"{name} {parameter}" for parameter in more} <= REQUIRED_ALL_THE_SAME.keys()
    positional = [action["dest"] for action in taken if not action["flags"]]
    assert [key for key in verb["run"].get("positional", []) if key not in LION.own(name)] == positional
    as_json = [action["dest"] for action in taken if action["type"] == "json-array"]
    assert verb["run"].get("json", []) == as_json


@pytest.mark.parametrize("name", COMMANDS)
def test_flags_and_refused_parameters_are_those_of_the_parser(parsers: Parsers, name: str) -> None:
    verb = LION.verbs[name]
    spelt = verb["run"].get("as", {})
    actions = {action["dest"]: action for action in parsers[COMMANDS[name]]}
    for key in written_for(parsers, name):
        if actions[key]["flags"]:
            assert spelt.get(key, "--" + key.replace("_", "-")) in actions[key]["flags"]
    elsewhere = {key for key in verb.get("refused", {}) if f"{name} {key}" in REFUSED_ALL_THE_SAME}
    assert verb.get("refused", {}).keys() - elsewhere <= actions.keys()
    assert not elsewhere & actions.keys()


def test_exceptions_are_still_needed(parsers: Parsers) -> None:
    actions = {f"{name} {action['dest']}": action for name, words in COMMANDS.items() for action in parsers[words]}
    assert all(not actions[place]["required"] for place in REQUIRED_ALL_THE_SAME)
    assert all(actions[place]["default"] is not None for place in NO_DEFAULT)
    assert LEFT_OUT.keys() <= actions.keys()


# What lion-mcp puts on the command line, the parsers of li understand as it was meant.

HOSTILE = "--machine=x -y \"'$(id) é\n🙂"


def sample(schema: dict[str, Any]) -> Any:
    """A value for a parameter: the most awkward one of its type that differs from its default."""
    if "enum" in schema:
        return schema["enum"][-1]
    if "anyOf" in schema:
        return HOSTILE
    if "minimum" in schema:
        return schema["minimum"]
    values = {"string": HOSTILE, "integer": -7, "number": -1.5, "boolean": True, "array": ["-a", "b c", "", HOSTILE]}
    return values[schema["type"]]


def compared(parsers: Parsers, called: dict[str, dict[str, Any]], understood: list[dict[str, Any]]) -> None:
    """Whether parsers made of each command line what was meant, and nothing else."""
    for (name, args), namespace in zip(called.items(), understood, strict=True):
        assert {key: namespace[key] for key in args} == args, name
        untouched = {
            action["dest"]: action["default"] for action in parsers[COMMANDS[name]] if action["dest"] not in args
        }
        assert {key: namespace[key] for key in untouched} == untouched, name


def test_command_lines_are_read_as_they_were_meant(
    li: Path, server: McpProcess, tmp_path: Path, parsers: Parsers
) -> None:
    calls = {
        name: {key: sample(schema) for key, schema in written_for(parsers, name).items()}
        for name in COMMANDS
        if name not in (*SPAWNING, "handshake")  # the stub answers the latter itself
    }
    recorded = [server.op(name, args)["result"]["data"]["argv"] for name, args in calls.items()]
    assert all("--machine" in argv for argv in recorded)
    compared(parsers, calls, ask_parsers(li, tmp_path, "parse", recorded))


def test_command_lines_of_runs_are_read_as_they_were_meant(
    li: Path, lion_mcp: Path, tmp_path: Path, parsers: Parsers
) -> None:
    (tmp_path / "li").mkdir()
    stub = StubLi.made_in(tmp_path / "li")
    place = Place.made_in(tmp_path, stub.program)
    for name in ("agents/reviewer.md", "playbooks/greet.playbook.yaml"):
        (path := place.home / ".lionagi" / name).parent.mkdir(parents=True)
        path.write_text("prompt: Greet.\n")
    fixed = {"agent": "reviewer", "playbook": "greet", "cwd": str(tmp_path), "query": ["exit 0", HOSTILE]}
    calls = {
        name: {key: fixed.get(key, sample(schema)) for key, schema in written_for(parsers, name).items()}
        for name in SPAWNING
    }
    del calls["agent.submit"]["prompt_file"]  # the prompt is among the positionals
    with place.server() as server:
        ids = [submit(server, name, **args)["run_id"] for name, args in calls.items()]
        wait(server, *ids)
    starts = {start["environment"]["LIONAGI_RUN_ID"]: start["argv"] for start in stub.starts()}
    lines = [starts[run_id] for run_id in ids]
    assert not [line for line in lines if "--machine" in line]
    understood = ask_parsers(li, tmp_path, "parse", lines)
    for namespace in understood:
        assert namespace.pop("notify")
        namespace["notify"] = None
    compared(parsers, calls, understood)
