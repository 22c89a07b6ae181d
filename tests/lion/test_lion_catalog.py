"""The catalog of lion-mcp, the help for each verb, and the fence around what no verb may reach."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from .differences import DIFFERENCES
from .mcp_process import McpProcess
from .spec_of_lion import AVAILABLE, FACTS, LION, SPAWNING, UNAVAILABLE, VERBS


def test_the_catalog_has_70_verbs_of_which_44_are_available(server: McpProcess) -> None:
    told = server.help()
    assert (told["verb_count"], told["available_count"], told["max_ops"]) == (70, 44, 8)
    assert (len(told["verbs"]), len(AVAILABLE), len(UNAVAILABLE)) == (70, 44, 26)
    assert told["synonyms_removed_after"] == "2026-09-30"
    assert {entry["verb"] for entry in told["verbs"]} == VERBS.keys()
    assert isinstance(told["help_usage"], str)


def test_entries_hold_only_what_there_is_to_say(server: McpProcess) -> None:
    entries = {entry["verb"]: entry for entry in server.help()["verbs"]}
    for name in AVAILABLE:
        facts = VERBS[name]
        wanted = {
            "required": facts.get("required"),
            "required_unenforced": facts.get("required_unenforced"),
            "schema_fingerprint_varies_with": facts.get("fingerprint_varies_with"),
        }
        told = {key: value for key, value in entries[name].items() if key not in ("verb", "summary")}
        # Where the playbook is required there is no schema without one, and so no fingerprint.
        assert ("schema_fingerprint" in told) == (name in SPAWNING and name != "play.submit")
        told.pop("schema_fingerprint", None)
        assert told == {key: value for key, value in wanted.items() if value}
    for name in UNAVAILABLE:
        assert entries[name] == {
            "verb": name,
            "available": False,
            "summary": LION.verbs[name]["summary"],
            "cli_path": VERBS[name]["cli_path"],
        }
    order = [entry.get("available", True) for entry in server.help()["verbs"]]
    assert order == sorted(order, reverse=True)


MEANT = {item.at: item.ours for item in DIFFERENCES if item.area == "schemas"}


def facts_of(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without prose and without what only the real server marks."""
    facts = {key: value for key, value in schema.items() if key != "description" and not key.startswith("x-")}
    return facts | ({"items": facts_of(facts["items"])} if "items" in facts else {})


@pytest.mark.parametrize("name", AVAILABLE)
def test_help_tells_the_schema_of_a_verb(server: McpProcess, name: str) -> None:
    told = server.help(name)
    facts = VERBS[name]
    assert told["verb"] == name
    assert told["schema"].keys() <= {"type", "properties", "required", "additionalProperties", "title", "description"}
    assert told.get("refused", {}).keys() == set(facts.get("refused", ()))
    assert told.get("schema_fingerprint_varies_with") == facts.get("fingerprint_varies_with")
    assert ("schema_fingerprint" in told) == (name in SPAWNING and name != "play.submit")
    schema = told["schema"]
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is ("fingerprint_varies_with" in facts)
    assert schema.get("required", []) == facts.get("required", [])
    meant = {at.partition(" ")[2]: ours for at, ours in MEANT.items() if at.startswith(f"{name} ")}
    wanted = {key: facts_of(value) for key, value in facts["params"].items()} | meant
    assert {key: facts_of(value) for key, value in schema["properties"].items()} == wanted
    assert all(value["description"] for value in schema["properties"].values())


def test_a_fingerprint_is_that_of_the_schema_shown(server: McpProcess) -> None:
    entries = {entry["verb"]: entry for entry in server.help()["verbs"]}
    for name in SPAWNING:
        told = server.help(name)
        canonical = json.dumps(told["schema"], sort_keys=True, separators=(",", ":")).encode()
        computed = hashlib.sha256(canonical).hexdigest()[:16] if name != "play.submit" else None
        assert told.get("schema_fingerprint") == entries[name].get("schema_fingerprint") == computed


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
