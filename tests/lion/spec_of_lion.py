"""specs/lion as data, read without verbc: what the compiler is given, for comparison with what others say."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import reduce
from typing import Any

import yaml

from .servers import ROOT

FACTS: dict[str, Any] = json.loads((ROOT / "tests" / "data" / "lion-verbs.json").read_text())
VERBS: dict[str, dict[str, Any]] = FACTS["verbs"]
AVAILABLE = [name for name, facts in VERBS.items() if facts["kind"] != "unavailable"]
UNAVAILABLE = [name for name, facts in VERBS.items() if facts["kind"] == "unavailable"]
SPAWNING = [name for name, facts in VERBS.items() if facts["kind"] == "spawn"]

JOINED = frozenset({"required", "requires", "positional", "json", "held", "examples"})


@dataclass(frozen=True, slots=True)
class Lion:
    """The spec, its files put together and its partial verbs written out."""

    verbs: dict[str, dict[str, Any]]
    types: dict[str, Any]
    li: dict[str, Any]
    synonyms: dict[str, Any]

    def schema(self, written: Any) -> dict[str, Any]:
        """A schema as written, names of types replaced and prose left out."""
        schema = {"type": written} if isinstance(written, str) else dict(written)
        if schema.get("type") in self.types:
            schema = {**self.types[schema.pop("type")], **schema}
        facts = {key: value for key, value in schema.items() if key != "description"}
        if "items" in facts:
            facts["items"] = self.schema(facts["items"])
        if "anyOf" in facts:
            facts["anyOf"] = [self.schema(option) for option in facts["anyOf"]]
        return facts

    def commands(self, *, available: bool) -> dict[str, str]:
        """Verb → command, for the verbs that run one of `li`, at once or in the background, and that can, or cannot, be called."""
        words = {name: command_of(verb["run"]) for name, verb in self.verbs.items()}
        return {
            name: command
            for name, command in words.items()
            if command is not None and ("unavailable" not in self.verbs[name]) == available
        }

    def own(self, name: str) -> set[str]:
        """Parameters that a verb has for the server itself, unless its command knows them too."""
        spawns = self.verbs[name]["run"].get("runs", "").startswith("spawn ")
        return {*self.verbs[name]["run"].get("held", ()), "prompt"} if spawns else set()


def command_of(run: dict[str, Any]) -> str | None:
    """The words after `li`, where a verb runs one of its commands."""
    spawned: str = run.get("runs", "")
    direct: str | None = run.get("li")
    return spawned.removeprefix("spawn ") if spawned.startswith("spawn ") else direct


def merged(below: Any, above: Any, key: str = "") -> Any:
    """What a partial verb and what stands above it come to."""
    if isinstance(below, dict) and isinstance(above, dict):
        return below | {name: merged(below.get(name), value, name) for name, value in above.items()}
    if key in JOINED and below is not None:
        return below + [item for item in above if item not in below]
    return above


def read() -> Lion:
    files = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "specs" / "lion").glob("*.yaml"))]
    (server,) = (file for file in files if "server" in file)
    verbs = [item for file in files for item in file.get("verbs", {}).items()]
    assert len(dict(verbs)) == len(verbs)
    shared = {name: partial for file in files for name, partial in file.get("shared", {}).items()}
    types = {name: schema for file in files for name, schema in file.get("types", {}).items()}
    whole = {
        name: reduce(merged, [*(shared[partial] for partial in verb.get("use", ())), verb]) for name, verb in verbs
    }
    return Lion(whole, types, server["backends"]["li"], server["synonyms"])


LION = read()
