"""Makes what the tests look at, each once for all workers: packages, wheels, and environments that they are installed in."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from verbc.pipeline import compile_spec
from verbc.tree import write

from .peers import ROOT, output

# Specs of tests, which keep their handlers as text: what these import is only there once it has been compiled.
FIXTURES = {"everything": Path(__file__).with_name("everything"), "suite": ROOT / "tests" / "conformance" / "suite"}
SPECS = {
    "hello": ROOT / "specs" / "hello.yaml",
    "lion": ROOT / "specs" / "lion",
    "lithi": ROOT / "specs" / "lithi.yaml",
    **FIXTURES,
}
PACKAGES = tuple(SPECS)
TOOLS = Path(sys.executable).parent  # the environment of the tests: mypy, ruff, build


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that `make` fills, by whichever worker comes first; the others wait for it."""
    base = for_all_workers(factory)
    folder, done = base / name, base / f"{name}.made"
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


def for_all_workers(factory: pytest.TempPathFactory) -> Path:
    """The folder that all workers of this run share."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def distribution(name: str) -> str:
    """Folder, distribution and command of a package."""
    return f"{name}-mcp"


def module(name: str) -> str:
    """Its import name."""
    return f"{name}_mcp"


def compile_packages(folder: Path) -> None:
    """Compile every spec into `folder`, as `verbc generate` does."""
    for name, spec in SPECS.items():
        place = _with_handlers(spec, folder / "specs" / name) if name in FIXTURES else spec
        package, files = compile_spec(place, f"specs/{name}")
        assert package == distribution(name)
        write(files, folder / package)


def _with_handlers(spec: Path, folder: Path) -> Path:
    """A copy of a fixture whose handlers are Python."""
    shutil.copytree(spec, folder)
    (folder / "handlers.txt").rename(folder / "handlers.py")
    return folder


def empty_environment(folder: Path, *, seeing: Path | None = None) -> Path:
    """A new environment with nothing in it, or with what another one has; returns its interpreter."""
    output([sys.executable, "-m", "venv", "--without-pip", folder])
    if seeing is not None:
        (site_packages(folder) / "seen.pth").write_text(f"{site_packages(seeing)}\n", encoding="utf-8")
    return folder / "bin" / "python"


def site_packages(environment: Path) -> Path:
    (found,) = environment.glob("lib/python*/site-packages")
    return found


def install(environment: Path, *what: str | Path) -> None:
    """Install as anybody would, with the pip of the tests' environment."""
    output([sys.executable, "-m", "pip", "--python", environment / "bin" / "python", "install", "--quiet", *what])


def installed(environment: Path) -> set[str]:
    """The distributions of an environment, by their normal names."""
    listed = output([sys.executable, "-m", "pip", "--python", environment / "bin" / "python", "freeze", "--all"])
    return {re.split(r"==| @ ", line)[0].lower().replace("_", "-") for line in listed.splitlines()}


def wheel(folder: Path, name: str) -> Path:
    """The one wheel of a package in a folder."""
    (found,) = folder.glob(f"{name.replace('-', '_')}-*.whl")
    return found


def build_wheel(builder: Path, source: Path, target: Path) -> None:
    """Build with what the environment `builder` has; nothing is downloaded."""
    python = builder / "bin" / "python"
    output([python, "-m", "build", "--wheel", "--no-isolation", "--outdir", target, source])
