"""Fixtures: packages as generated, as wheels, and as installed; and a command that starts each server."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .peers import ROOT, output
from .workshop import (
    PACKAGES,
    build_wheel,
    compile_packages,
    distribution,
    empty_environment,
    for_all_workers,
    install,
    installed,
    made_once,
    wheel,
)

STUB = ROOT / "tests" / "data" / "stub_li.py"
FIRST = "installed-first.json"  # what the environment had when only hello was installed


@pytest.fixture(autouse=True, scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is installed into several environments is downloaded once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_CACHE_DIR", str(for_all_workers(tmp_path_factory) / "downloads"))
        yield


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the generated packages: hello-mcp, lion-mcp, lithi-mcp, and those of the fixtures."""
    return made_once(tmp_path_factory, "packages", compile_packages)


@pytest.fixture(scope="session")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that builds wheels without the network."""

    def make(folder: Path) -> None:
        empty_environment(folder)
        install(folder, "build", "hatchling>=1.27")

    return made_once(tmp_path_factory, "builder", make)


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory, packages: Path, builder: Path) -> Path:
    """The wheels of the packages; hello's as a newcomer builds it, by way of its source distribution."""

    def make(folder: Path) -> None:
        output([sys.executable, "-m", "build", "--outdir", folder, packages / "hello-mcp"])
        for name in PACKAGES[1:]:
            build_wheel(builder, packages / distribution(name), folder)

    return made_once(tmp_path_factory, "wheels", make)


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Path:
    """An environment that had nothing before the packages, hello first, were installed with what they depend on."""

    def make(folder: Path) -> None:
        empty_environment(folder)
        install(folder, wheel(wheels, "hello-mcp"))
        (folder / FIRST).write_text(json.dumps(sorted(installed(folder))), encoding="utf-8")
        install(folder, *(wheel(wheels, distribution(name)) for name in PACKAGES[1:]))

    return made_once(tmp_path_factory, "bare", make)


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory, bare: Path) -> Path:
    """A folder with a command for each server, by the name of its package, that needs neither options nor variables.

    They run in a small git repository; lion drives a stand-in for li, and `lion-without-li` has no li at all.
    """

    def make(folder: Path) -> None:
        repository = folder / "repository"
        git: list[str | Path] = ["git", "-c", "user.name=Judge", "-c", "user.email=judge@example.com", "-C", repository]
        output(["git", "init", "--quiet", repository])
        output([*git, "commit", "--quiet", "--allow-empty", "--message", "The first commit"])
        _command(folder / "li", [sys.executable, "-I", STUB], {})
        home = {"HOME": str(folder)}
        for name in PACKAGES:
            program = bare / "bin" / distribution(name)
            _command(folder / name, [program], {**home, "LIONAGI_MCP_LI_BIN": str(folder / "li")}, repository)
        absent = {**home, "LIONAGI_MCP_LI_BIN": str(folder / "absent")}
        _command(folder / "lion-without-li", [bare / "bin" / "lion-mcp"], absent, repository)
        _command(folder / "lion-tools", [folder / "lion", "--surface", "tools"], {})

    return made_once(tmp_path_factory, "servers", make)


def _command(path: Path, words: list[str | Path], variables: dict[str, str], cwd: Path | None = None) -> None:
    """A program that runs another one."""
    settings = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    change = [f"cd {shlex.quote(str(cwd))}"] if cwd else []
    line = f'exec {shlex.join(map(str, words))} "$@"'
    path.write_text("\n".join(["#!/bin/sh", *settings, *change, line]) + "\n", encoding="utf-8")
    path.chmod(0o755)
