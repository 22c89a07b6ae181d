"""specs/lion as data, read without verbc: what the compiler is given, for comparison with what others say."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import yaml

from .servers import ROOT

FACTS: dict[str, Any] = json.loads((ROOT / "tests" / "data" / "lion-verbs.json").read_text())
# Without the verbs that start runs and look after them, which the spec does not have yet.
VERBS: dict[str, dict[str, Any]] = {
    name: facts for name, facts in FACTS["verbs"].items() if facts["kind"] not in ("spawn", "job")
}
AVAILABLE = [name for name, facts in VERBS.items() if facts["kind"] != "unavailable"]
UNAVAILABLE = [name for name, facts in VERBS.items() if facts["kind"] == "unavailable"]


@dataclass(frozen=True, slots=True)
class Lion:
    """The spec, its files put together."""

    verbs: dict[str, dict[str, Any]]
    types: dict[str, Any]
    li: dict[str, Any]
    synonyms: dict[str, Any]

    def schema(self, written: Any) -> dict[str, Any]:
        """A schema as written, names of types replaced and prose left out."""
        schema = self.types.get(written, {"type": written}) if isinstance(written, str) else written
        facts = {key: value for key, value in schema.items() if key != "description"}
        return facts | ({"items": self.schema(facts["items"])} if "items" in facts else {})

    def commands(self, *, available: bool) -> dict[str, str]:
        """Command → verb, for the verbs that `li` runs and that can, or cannot, be called."""
        return {
            verb["run"]["li"]: name
            for name, verb in self.verbs.items()
            if "li" in verb["run"] and ("unavailable" not in verb) == available
        }


def read() -> Lion:
    files = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "specs" / "lion").glob("*.yaml"))]
    (server,) = (file for file in files if "server" in file)
    verbs = [item for file in files for item in file.get("verbs", {}).items()]
    assert len(dict(verbs)) == len(verbs)
    types = {name: schema for file in files for name, schema in file.get("types", {}).items()}
    return Lion(dict(verbs), types, server["backends"]["li"], server["synonyms"])


LION = read()
