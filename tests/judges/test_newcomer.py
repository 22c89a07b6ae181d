"""verbc as a newcomer meets it: installed, asked for a starter project, and that project made and tested."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .peers import ROOT, output
from .workshop import build_wheel, empty_environment, install, wheel

# What the project consists of; the last of them has the hash of everything that was generated.
FILES = ("Makefile", "specs/demo.yaml", "generated/demo-mcp/.verbc.json")


def _variables(environment: Path) -> dict[str, str]:
    """Those of a shell that has verbc on its PATH, and nothing of this run."""
    variables = {**os.environ, "PATH": os.pathsep.join([str(environment / "bin"), os.environ["PATH"]])}
    for name in ("PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "VIRTUAL_ENV"):
        variables.pop(name, None)
    return variables


def _started(environment: Path, folder: Path) -> Path:
    """`verbc init demo`, in an empty folder."""
    folder.mkdir()
    assert "make generate test" in output(["verbc", "init", "demo"], cwd=folder, env=_variables(environment))
    return folder / "demo"


@pytest.fixture(scope="module")
def project(builder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What somebody has made who installed a wheel."""
    folder = tmp_path_factory.mktemp("newcomer")
    build_wheel(builder, ROOT, folder / "dist")
    empty_environment(folder / "environment")
    install(folder / "environment", wheel(folder / "dist", "verbc"))
    project = _started(folder / "environment", folder / "work")
    made = output(["make", "generate", "test"], cwd=project, env=_variables(folder / "environment"))
    assert "current: 1 package" in made
    assert " passed" in made
    return project


def test_from_a_wheel(project: Path) -> None:
    assert "verbc" not in output([project / ".venv" / "bin" / "python", "-m", "pip", "list"])
    assert "demo-mcp 0.1.0" in output([project / ".venv" / "bin" / "demo-mcp", "--version"])


def test_from_an_editable_installation(project: Path, tmp_path: Path) -> None:
    """It makes the very same, so what was tested there holds here as well."""
    empty_environment(tmp_path / "environment")
    install(tmp_path / "environment", "--editable", ROOT)
    other = _started(tmp_path / "environment", tmp_path / "work")
    made = output(["make", "generate", "check"], cwd=other, env=_variables(tmp_path / "environment"))
    assert "current: 1 package" in made
    for file in FILES:
        assert (other / file).read_bytes() == (project / file).read_bytes(), file
