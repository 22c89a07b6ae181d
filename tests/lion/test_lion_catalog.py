"""The catalog of lion-mcp, the help for each verb, and the fence around what no verb may reach."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .mcp_process import McpProcess
from .spec_of_lion import AVAILABLE, FACTS, LION, UNAVAILABLE, VERBS


def test_the_catalog_has_61_verbs_of_which_35_are_available(server: McpProcess) -> None:
    told = server.help()
    assert (told["verb_count"], told["available_count"], told["max_ops"]) == (61, 35, 8)
    assert (len(told["verbs"]), len(AVAILABLE), len(UNAVAILABLE)) == (61, 35, 26)
    assert told["synonyms_removed_after"] == "2026-09-30"
    assert {entry["verb"] for entry in told["verbs"]} == VERBS.keys()
    assert isinstance(told["help_usage"], str)


def test_entries_hold_only_what_there_is_to_say(server: McpProcess) -> None:
    entries = {entry["verb"]: entry for entry in server.help()["verbs"]}
    for name in AVAILABLE:
        wanted = {"verb", "summary"} | ({"required"} if VERBS[name].get("required") else set())
        assert entries[name].keys() == wanted
        assert entries[name].get("required", []) == VERBS[name].get("required", [])
    for name in UNAVAILABLE:
        assert entries[name] == {
            "verb": name,
            "available": False,
            "summary": LION.verbs[name]["summary"],
            "cli_path": VERBS[name]["cli_path"],
        }
    order = [entry.get("available", True) for entry in server.help()["verbs"]]
    assert order == sorted(order, reverse=True)


@pytest.mark.parametrize("name", AVAILABLE)
def test_help_tells_the_schema_of_a_verb(server: McpProcess, name: str) -> None:
    told = server.help(name)
    assert told["verb"] == name
    assert told.keys() - {"refused"} == {"verb", "schema"}
    assert told.get("refused", {}).keys() == set(VERBS[name].get("refused", ()))
    schema = told["schema"]
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema.get("required", []) == VERBS[name].get("required", [])
    facts = {
        key: {word: value for word, value in facts.items() if not word.startswith("x-")}
        for key, facts in VERBS[name]["params"].items()
    }
    assert {key: {**value, "description": ""} for key, value in schema["properties"].items()} == {
        key: {**value, "description": ""} for key, value in facts.items()
    }
    assert all(value["description"] for value in schema["properties"].values())


@pytest.mark.parametrize("name", UNAVAILABLE)
def test_unavailable_verbs_answer_with_their_reason(server: McpProcess, name: str) -> None:
    verb = LION.verbs[name]
    told = server.help(name)
    assert told == {"verb": name, "available": False, "summary": verb["summary"], "reason": verb["unavailable"]}
    error = server.op(name, {"any": "thing"})["error"]
    assert error == {"kind": "unavailable", "message": verb["unavailable"], "detail": {"summary": verb["summary"]}}


def test_the_synonym_works_and_is_not_listed(server: McpProcess) -> None:
    assert server.help("server_info")["verb"] == "server.info"
    assert server.op("server_info")["op"] == "server.info"
    assert server.help("server_info") == server.call({"help": {"verb": "server_info"}}).value
    assert LION.synonyms["verbs"].items() <= FACTS["synonyms"].items()


def test_no_compiled_verb_reaches_a_fenced_path(lion_mcp: Path) -> None:
    registry = json.loads((lion_mcp / "lion_mcp" / "registry.json").read_text())
    fenced = [path.split() for path in registry["backends"]["li"]["fenced"]]
    assert [" ".join(path) for path in fenced] == FACTS["fenced"]
    targets = [verb["run"]["target"] for verb in registry["verbs"] if verb["run"]["backend"] == "li"]
    assert len(targets) == 58
    assert not [target for target in targets for path in fenced if target[: len(path)] == path]
