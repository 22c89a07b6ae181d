"""specs/lion is compared with the argument parsers of the installed `li`, so that no change of the command line goes unseen."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .mcp_process import McpProcess
from .servers import environment
from .spec_of_lion import FACTS, LION

COMMANDS = LION.commands(available=True)
# Commands of verbs that the spec does not have yet.
NOT_YET = {"agent", "orchestrate fanout", "orchestrate flow"}
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
# What the spec wants though the parser lets it be absent, and why.
REQUIRED_ALL_THE_SAME = {"dispatch.purge id": "without it the flags that delete many at once would be needed"}

TYPES = {None: "string", "int": "integer", "float": "number"}

Parsers = dict[str, list[dict[str, Any]]]


def taken_from(parsers: Parsers, words: str) -> list[dict[str, Any]]:
    """The actions of a command's parser that should be parameters of its verb."""
    name = COMMANDS[words]
    refused = LION.verbs[name].get("refused", {})
    return [
        action
        for action in parsers[words]
        if action["dest"] not in refused and f"{name} {action['dest']}" not in LEFT_OUT
    ]


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
    verbs = COMMANDS.keys() | LION.commands(available=False).keys()
    assert parsers.keys() - verbs - set(LION.li["fenced"]) == NOT_YET
    assert verbs - parsers.keys() == set()


def test_no_verb_reaches_a_fenced_command() -> None:
    verbs = COMMANDS.keys() | LION.commands(available=False).keys()
    assert not [words for words in verbs for path in LION.li["fenced"] if f"{words} ".startswith(f"{path} ")]
    assert LION.li["fenced"] == FACTS["fenced"]


def schema_of(action: dict[str, Any]) -> dict[str, Any]:
    """The parameter that an action of a parser stands for."""
    match action["kind"], action["type"]:
        case (("_StoreTrueAction" | "_StoreFalseAction"), None):
            schema: dict[str, Any] = {"type": "boolean"}
        case "_StoreAction", "json-array":
            schema = {"type": "array", "items": {"type": "string"}}
        case "_StoreAction", kind if action["nargs"] in (None, "?"):
            schema = {"type": TYPES[kind]}
        case "_AppendAction", kind if action["nargs"] is None:
            schema = {"type": "array", "items": {"type": TYPES[kind]}}
        case other:
            pytest.fail(f"an action that the spec has no word for: {other}")
    for key, value in (("enum", action["choices"]), ("default", action["default"])):
        if value is not None:
            schema[key] = value
    return schema


@pytest.mark.parametrize("words", COMMANDS)
def test_parameters_are_those_of_the_parser(parsers: Parsers, words: str) -> None:
    verb = LION.verbs[COMMANDS[words]]
    taken = taken_from(parsers, words)
    written = {name: LION.schema(schema) for name, schema in verb.get("params", {}).items()}
    for schema in written.values():
        if "enum" in schema:
            schema["enum"] = sorted(schema["enum"])
    assert written == {action["dest"]: schema_of(action) for action in taken}
    assert list(written) == [action["dest"] for action in taken]


@pytest.mark.parametrize("words", COMMANDS)
def test_required_and_positional_are_those_of_the_parser(parsers: Parsers, words: str) -> None:
    name = COMMANDS[words]
    verb = LION.verbs[name]
    taken = taken_from(parsers, words)
    required = {action["dest"] for action in taken if action["required"]}
    more = set(verb.get("required", ())) - required
    assert required <= set(verb.get("required", ()))
    assert {f"{name} {parameter}" for parameter in more} <= REQUIRED_ALL_THE_SAME.keys()
    positional = [action["dest"] for action in taken if not action["flags"]]
    assert verb["run"].get("positional", []) == positional
    as_json = [action["dest"] for action in taken if action["type"] == "json-array"]
    assert verb["run"].get("json", []) == as_json


@pytest.mark.parametrize("words", COMMANDS)
def test_flags_and_refused_parameters_are_those_of_the_parser(parsers: Parsers, words: str) -> None:
    verb = LION.verbs[COMMANDS[words]]
    spelt = verb["run"].get("as", {})
    actions = {action["dest"]: action for action in parsers[words]}
    for name in verb.get("params", {}):
        if actions[name]["flags"]:
            assert spelt.get(name, "--" + name.replace("_", "-")) in actions[name]["flags"]
    assert verb.get("refused", {}).keys() <= actions.keys()


def test_exceptions_are_still_needed(parsers: Parsers) -> None:
    actions = {f"{COMMANDS[words]} {action['dest']}": action for words in COMMANDS for action in parsers[words]}
    assert all(not actions[place]["required"] for place in REQUIRED_ALL_THE_SAME)
    assert LEFT_OUT.keys() <= actions.keys()


# What lion-mcp puts on the command line, the parsers of li understand as it was meant.

HOSTILE = "--machine=x -y \"'$(id) é\n🙂"


def sample(schema: dict[str, Any]) -> Any:
    """A value for a parameter: the most awkward one of its type that differs from its default."""
    if "enum" in schema:
        return schema["enum"][-1]
    values = {"string": HOSTILE, "integer": -7, "number": -1.5, "boolean": True, "array": ["-a", "b c", "", HOSTILE]}
    return values[schema["type"]]


def test_command_lines_are_read_as_they_were_meant(
    li: Path, server: McpProcess, tmp_path: Path, parsers: Parsers
) -> None:
    calls = {
        words: {key: sample(LION.schema(schema)) for key, schema in LION.verbs[name].get("params", {}).items()}
        for words, name in COMMANDS.items()
        if words != "handshake"  # the stub answers it itself
    }
    recorded = [server.op(COMMANDS[words], args)["result"]["data"]["argv"] for words, args in calls.items()]
    assert all("--machine" in argv for argv in recorded)
    understood = ask_parsers(li, tmp_path, "parse", recorded)
    for (words, args), namespace in zip(calls.items(), understood, strict=True):
        assert {key: namespace[key] for key in args} == args, words
        untouched = {action["dest"]: action["default"] for action in parsers[words] if action["dest"] not in args}
        assert {key: namespace[key] for key in untouched} == untouched, words
