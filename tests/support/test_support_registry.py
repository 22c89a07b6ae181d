"""Reading the compiled contract, and finding verbs in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from verbc.support.registry import Registry, from_data, load


def test_it_is_read_from_a_file(data: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "registry.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    registry = load(path)
    assert registry == from_data(data)
    assert registry.server.version == "1.2.3"
    assert registry.synonyms_removed_after == "2031-01-31"
    assert [verb.name for verb in registry.verbs] == [verb["name"] for verb in data["verbs"]]


def test_schemas_are_kept_as_they_are(data: dict[str, Any]) -> None:
    verb = from_data(data).verb("item.show")
    assert verb is not None
    assert verb.params is data["verbs"][0]["params"]
    assert verb.result is data["verbs"][0]["result"]


def test_another_format_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="format 2"):
        from_data({**data, "verbc": 2})


@pytest.mark.parametrize("part", ["serve", "access", "verbs"])
def test_a_registry_without_one_of_its_parts_is_none(data: dict[str, Any], part: str) -> None:
    del data[part]
    with pytest.raises(KeyError, match=part):
        from_data(data)


def test_names_and_synonyms_resolve(registry: Registry) -> None:
    show = registry.verb("item.show")
    assert show is not None
    assert registry.resolve("item.show") is show
    assert registry.resolve("show_item") is show
    assert registry.verb("show_item") is None
    assert registry.resolve("items.show") is None
    assert registry.resolve("") is None


def test_the_nearest_name_is_found(registry: Registry) -> None:
    assert registry.nearest("item.shaw") == "item.show"
    assert registry.nearest("zzzzzz") is None
    assert registry.nearest("") is None


def test_available_and_unavailable_are_told_apart(registry: Registry) -> None:
    assert [verb.name for verb in registry.unavailable] == ["gone", "wiped"]
    assert len(registry.available) == len(registry.verbs) - 2


def test_a_fingerprint_is_quoted_where_one_is_needed_and_known(registry: Registry) -> None:
    quoting = [verb.name for verb in registry.verbs if verb.quotes_fingerprint]
    assert quoting == ["spawn", "flow"]


def test_the_light_modules_import_neither_the_sdk_nor_validators() -> None:
    code = "import sys; from verbc.support import registry, command, wire; print(sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    for heavy in ("mcp", "mcp_types", "pydantic", "jsonschema_rs", "asyncio", "anyio"):
        assert f"'{heavy}'" not in modules
