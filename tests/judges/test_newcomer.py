"""verbc as a newcomer meets it: installed, asked for a starter project, and that project made and tested."""

from __future__ import annotations

import os
from pathlib import Path

from .peers import ROOT, output
from .workshop import build_wheel, empty_environment, install, wheel


def _project_is_made_and_tested(environment: Path, folder: Path) -> None:
    """`verbc init demo && cd demo && make generate test`, in an empty folder, with verbc on the PATH."""
    variables = {**os.environ, "PATH": os.pathsep.join([str(environment / "bin"), os.environ["PATH"]])}
    for name in ("PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "VIRTUAL_ENV"):
        variables.pop(name, None)
    folder.mkdir()
    assert "make generate test" in output(["verbc", "init", "demo"], cwd=folder, env=variables)
    made = output(["make", "generate", "test"], cwd=folder / "demo", env=variables)
    assert "current: 1 package" in made
    assert " passed" in made
    assert "verbc" not in output([folder / "demo" / ".venv" / "bin" / "python", "-m", "pip", "list"], env=variables)
    assert "demo-mcp 0.1.0" in output([folder / "demo" / ".venv" / "bin" / "demo-mcp", "--version"], env=variables)


def test_from_a_wheel(builder: Path, tmp_path: Path) -> None:
    build_wheel(builder, ROOT, tmp_path / "dist")
    empty_environment(tmp_path / "environment")
    install(tmp_path / "environment", wheel(tmp_path / "dist", "verbc"))
    _project_is_made_and_tested(tmp_path / "environment", tmp_path / "work")


def test_from_an_editable_installation(tmp_path: Path) -> None:
    empty_environment(tmp_path / "environment")
    install(tmp_path / "environment", "--editable", ROOT)
    _project_is_made_and_tested(tmp_path / "environment", tmp_path / "work")
