"""Every folder of cases/valid compiles into a sound package; every one of cases/invalid gives exactly its problems.

A spec is `spec.yaml`, or a folder `spec/`. `expected/registry.json` holds what the registry must have, among more, and
`expected/openapi.json` the same of the description of the endpoint.
With UPDATE_CASES=1 in the environment, problems.txt is written anew instead of compared.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import BaseModel, TypeAdapter

from verbc.command import main
from verbc.pipeline import compile_spec
from verbc.problems import SpecError
from verbc.testing.values import accepted
from verbc.tree import write

CASES = Path(__file__).parent / "cases"
VALID = sorted(path.name for path in (CASES / "valid").iterdir())
INVALID = sorted(path.name for path in (CASES / "invalid").iterdir())
UPDATING = os.environ.get("UPDATE_CASES") == "1"
LISTED = re.compile(r"(?m)^(?:spec|upstreams)(?:/[a-z]+)?(?:\.yaml)?:\d+:\d+: .*$")


def spec_of(case: Path) -> str:
    return "spec" if (case / "spec").is_dir() else "spec.yaml"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the packages of the valid cases are written, each when it is first wanted."""
    return tmp_path_factory.mktemp("packages")


@cache
def compiled(case: str) -> tuple[str, dict[str, str]]:
    """The folder of the package of a valid case, and its files."""
    spec = CASES / "valid" / case
    return compile_spec(spec / spec_of(spec), f"specs/{case}")


def package(case: str, packages: Path) -> Path:
    """The package of a valid case, compiled and written."""
    folder, files = compiled(case)
    if not (packages / folder).exists():
        write(files, packages / folder)
    return packages / folder


def registry(folder: Path) -> dict[str, Any]:
    (place,) = folder.glob("*/registry.json")
    return dict(json.loads(place.read_text(encoding="utf-8")))


def test_names_tell_servers_apart(packages: Path) -> None:
    names = [registry(package(case, packages))["server"]["name"] for case in VALID]
    assert sorted(names) == [case.replace("_", "-") for case in VALID]


@pytest.mark.parametrize("case", VALID)
def test_package_is_python(case: str, packages: Path) -> None:
    """What it has of its own; the rest are modules that are imported everywhere."""
    files = sorted(path for path in package(case, packages).rglob("*.py") if path.parent.name != "_support")
    assert files
    for file in files:
        compile(file.read_bytes(), str(file), "exec")


@pytest.mark.parametrize("arguments", [["format", "--check", "--diff"], ["check", "--output-format=concise"]])
def test_ruff_changes_nothing(arguments: list[str], packages: Path) -> None:
    """Each package is judged by the configuration that it has itself."""
    for case in VALID:
        package(case, packages)
    ruff = [sys.executable, "-m", "ruff", *arguments, "--no-cache", "."]
    done = subprocess.run(ruff, cwd=packages, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_package_without_models_is_typed(packages: Path, tmp_path: Path) -> None:
    (place,) = package("replies", packages).glob("*/models/__init__.py")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=skip", f"--cache-dir={tmp_path}", str(place)]
    done = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("case", VALID)
def test_files_hold_what_is_expected(case: str, packages: Path) -> None:
    folder = package(case, packages)
    for expected in sorted((CASES / "valid" / case).glob("expected/*")):
        (place,) = folder.glob(f"*/{expected.name}")
        found, wanted = (json.loads(path.read_text(encoding="utf-8")) for path in (place, expected))
        assert list(missing(found, wanted)) == [], expected.name
    assert registry(folder)["verbc"] == 1


def missing(found: Any, wanted: Any, place: str = "") -> Iterator[str]:
    """What `wanted` has and `found` has not. Maps may hold more, lists may not."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key, value in wanted.items():
            if key in found:
                yield from missing(found[key], value, f"{place}/{key}")
            else:
                yield f"{place}/{key} is not there"
    elif isinstance(wanted, list) and isinstance(found, list) and len(found) == len(wanted):
        for index, (one, other) in enumerate(zip(found, wanted, strict=True)):
            yield from missing(one, other, f"{place}/{index}")
    elif found != wanted or type(found) is not type(wanted):
        yield f"{place} is {found!r}, not {wanted!r}"


@contextmanager
def importable(folder: Path) -> Iterator[str]:
    """Inside, the package in a folder can be imported; its name is given. Afterwards nothing of it is left."""
    name = registry(folder)["server"]["package"]
    sys.path.insert(0, str(folder))
    try:
        yield name
    finally:
        sys.path.remove(str(folder))
        for module in [module for module in sys.modules if module.partition(".")[0] == name]:
            del sys.modules[module]


@pytest.mark.parametrize("case", VALID)
def test_models_can_be_built(case: str, packages: Path) -> None:
    with importable(package(case, packages)) as name:
        models = importlib.import_module(f"{name}.models")
        for exported in models.__all__:
            assert isinstance(TypeAdapter(getattr(models, exported)).json_schema(), dict)


@pytest.mark.parametrize("case", VALID)
def test_models_give_back_what_schemas_accept(case: str, packages: Path) -> None:
    folder = package(case, packages)
    verbs = [verb for verb in registry(folder)["verbs"] if verb["unavailable"] is None]
    with importable(folder) as name:
        for verb in verbs:
            module = importlib.import_module(f"{name}.verbs.{verb['run']['module']}")
            binding = module.VERBS[verb["name"]]
            assert binding.function.__name__ == verb["run"]["function"]
            if binding.params is not None:
                check_model(binding.params, verb["params"])
            else:
                assert verb["params"]["properties"] == {}


def check_model(model: type[BaseModel], schema: dict[str, Any]) -> None:
    fields = model.model_fields
    assert [field.alias or name for name, field in fields.items()] == list(schema["properties"])
    assert {field.alias or name for name, field in fields.items() if field.is_required()} == set(
        schema.get("required", ())
    )
    validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)

    @settings(max_examples=10, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(accepted(schema))
    def gives_back(arguments: Any) -> None:
        assert validator.is_valid(arguments)
        view = model.model_validate(arguments)
        assert view.model_dump(by_alias=True, exclude_unset=True) == arguments

    gives_back()


def told(case: Path) -> list[str]:
    """The problems of a spec, as they are listed."""
    with pytest.raises(SpecError) as raised:
        compile_spec(case / spec_of(case), spec_of(case))
    return [f"{p.mark.source.name}:{p.mark.line}:{p.mark.column}: {p.message}" for p in raised.value.problems]


@pytest.mark.parametrize("case", INVALID)
def test_problems_are_told_exactly(case: str) -> None:
    expected = CASES / "invalid" / case / "problems.txt"
    found = told(CASES / "invalid" / case)
    if UPDATING:
        expected.write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8").split("\n")[:-1]


@pytest.mark.parametrize("case", INVALID)
def test_problems_are_plain_sentences(case: str) -> None:
    for line in told(CASES / "invalid" / case):
        message = line.split(": ", 1)[1]
        assert message.isprintable(), message
        assert len(message) <= 250, message
        assert not re.search(r"pydantic|[Ii]nput tag|instance of|\bNone\b|\bTrue\b|\bdict\b|<class", message)
        assert message == message.strip().removesuffix(".")


def test_command_lists_all_problems_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for case in INVALID:
        source = CASES / "invalid" / case
        shutil.copytree(source, tmp_path / case)
        monkeypatch.chdir(tmp_path / case)
        before = sorted(path for path in Path().rglob("*"))
        for command in ("generate", "check"):
            assert main([command, spec_of(source)]) == 1, case
            shown = capsys.readouterr()
            assert shown.out == "", case
            assert LISTED.findall(shown.err) == told(source), case
            count = len(told(source))
            untouched = "; nothing was written" if command == "generate" else ""
            assert shown.err.endswith(f"\n{count} problem{'s' * (count > 1)}{untouched}\n"), case
        assert sorted(path for path in Path().rglob("*")) == before, case
