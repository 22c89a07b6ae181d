"""Generated packages as somebody gets them: built, installed where nothing else is, imported, typed, linted, tested."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path

import pytest

from .conftest import FIRST
from .peers import output
from .workshop import (
    PACKAGES,
    TOOLS,
    build_wheel,
    distribution,
    empty_environment,
    install,
    made_once,
    module,
    wheel,
)

# What hello stands on, directly or not; the transitive rest belongs to these.
DIRECT = {"hello-mcp", "jsonschema-rs", "mcp", "pydantic"}
TEST_TOOLS = {"pytest", "hypothesis", "mypy", "ruff", "verbc", "pyyaml"}

IMPORT_ALL = """
import importlib, pkgutil, sys
root = importlib.import_module(sys.argv[1])
names = [found.name for found in pkgutil.walk_packages(root.__path__, root.__name__ + ".")]
for name in names:
    if not name.endswith(".__main__"):
        importlib.import_module(name)
print(len(names))
"""

# What somebody writes who uses the package; mypy sees its types only when the package says that it has some.
CONSUMER = """
from everything_mcp.models import ShapeRequireParams, Tree
from everything_mcp.server import create_server
from hello_mcp.models import LogParams

tree = Tree(label="a", children=[Tree(label="b", weight=1)])
count: int | None = LogParams(count=3).count
server = create_server(surface="request")


def small(params: ShapeRequireParams) -> int:
    return params.small


Tree(label=1)  # type: ignore[arg-type]
"""


def is_clean(package: Path) -> None:
    """The formatter and the linter look at every file, Markdown included, and would change none."""
    files = sum(1 for path in package.rglob("*") if path.suffix in (".py", ".md"))
    formatted = output([TOOLS / "ruff", "format", "--check", "--no-cache"], cwd=package)
    assert formatted == f"{files} files already formatted\n"
    assert output([TOOLS / "ruff", "check", "--no-cache"], cwd=package) == "All checks passed!\n"


def names_in(archive: Path) -> set[str]:
    with zipfile.ZipFile(archive) as opened:
        return set(opened.namelist())


# --- wheels


@pytest.mark.parametrize("name", PACKAGES)
def test_wheel_holds_the_whole_package_and_nothing_else(packages: Path, wheels: Path, name: str) -> None:
    source = packages / distribution(name)
    with zipfile.ZipFile(wheel(wheels, distribution(name))) as opened:
        held = {entry: opened.read(entry) for entry in opened.namelist() if ".dist-info/" not in entry}
    files = [path for path in (source / module(name)).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert held == {path.relative_to(source).as_posix(): path.read_bytes() for path in files}
    assert {f"{module(name)}/{file}" for file in ("py.typed", "registry.json", "server.py")} <= set(held)


@pytest.mark.parametrize("name", ["hello", "everything"])
def test_what_lies_above_a_package_changes_nothing(
    packages: Path, wheels: Path, builder: Path, tmp_path: Path, name: str
) -> None:
    output(["git", "init", "--quiet", tmp_path])
    (tmp_path / ".gitignore").write_text("*\n", encoding="utf-8")
    (tmp_path / "ruff.toml").write_text('line-length = 40\n[lint]\nselect = ["ALL"]\n', encoding="utf-8")
    (tmp_path / "mypy.ini").write_text("[mypy]\nignore_errors = True\n", encoding="utf-8")
    package = tmp_path / distribution(name)
    shutil.copytree(packages / distribution(name), package)
    is_clean(package)
    build_wheel(builder, package, tmp_path / "dist")
    found, usual = wheel(tmp_path / "dist", distribution(name)), wheel(wheels, distribution(name))
    assert found.read_bytes() == usual.read_bytes(), names_in(found) ^ names_in(usual)


# --- formatted, linted, typed


@pytest.mark.parametrize("name", PACKAGES)
def test_formatter_and_linter_change_nothing(packages: Path, name: str) -> None:
    is_clean(packages / distribution(name))


def test_types_are_strict(bare: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    python = empty_environment(environment, seeing=bare)
    install(environment, "types-pyyaml")  # the types of what lion's handlers import
    (tmp_path / "consumer.py").write_text(CONSUMER, encoding="utf-8")
    wanted = [word for name in PACKAGES for word in ("--package", module(name))]
    options: list[str | Path] = ["--strict", "--cache-dir", os.devnull, "--python-executable", python]
    output([TOOLS / "mypy", *options, *wanted, "--module", "consumer"], cwd=tmp_path)


# --- installed


def test_first_package_brought_only_what_it_stands_on(bare: Path) -> None:
    found = set(json.loads((bare / FIRST).read_text(encoding="utf-8")))
    assert found >= DIRECT
    assert not found & TEST_TOOLS


@pytest.mark.parametrize("name", PACKAGES)
def test_every_module_is_imported_without_a_warning(bare: Path, tmp_path: Path, name: str) -> None:
    python = bare / "bin" / "python"
    count = output([python, "-I", "-W", "error", "-c", IMPORT_ALL, module(name)], cwd=tmp_path)
    assert int(count) > 30


@pytest.mark.parametrize("name", PACKAGES)
def test_command_tells_version_and_verbs(packages: Path, bare: Path, tmp_path: Path, name: str) -> None:
    registry = json.loads((packages / distribution(name) / module(name) / "registry.json").read_text(encoding="utf-8"))
    script: list[str | Path] = [bare / "bin" / distribution(name)]
    as_module: list[str | Path] = [bare / "bin" / "python", "-m", module(name)]
    version = output([*script, "--version"], cwd=tmp_path)
    assert version.startswith(f"{distribution(name)} {registry['server']['version']}\nregistry {registry['digest']}\n")
    catalog = output([*script, "verbs"], cwd=tmp_path)
    assert [line.split()[0] for line in catalog.splitlines()[1:]] == [verb["name"] for verb in registry["verbs"]]
    assert output([*as_module, "--version"], cwd=tmp_path) == version
    assert output([*as_module, "verbs"], cwd=tmp_path) == catalog


@pytest.fixture(scope="session")
def tested(tmp_path_factory: pytest.TempPathFactory, packages: Path, bare: Path) -> Path:
    """An environment with the packages and, beside what they stand on, only what their group `test` names."""

    def make(folder: Path) -> None:
        empty_environment(folder, seeing=bare)
        for name in PACKAGES:
            install(folder, "--group", f"{packages / distribution(name) / 'pyproject.toml'}:test")

    return made_once(tmp_path_factory, "tested", make)


@pytest.mark.parametrize("name", PACKAGES)
def test_emitted_tests_pass(packages: Path, tested: Path, name: str) -> None:
    options = ["-q", "-p", "no:cacheprovider"]
    output([tested / "bin" / "python", "-m", "pytest", *options], cwd=packages / distribution(name))
