"""Fixtures over the small registry of `samples`."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from verbc import support
from verbc.support.admission import Admission
from verbc.support.registry import Registry, from_data

from .samples import DATA, MODULES, Functions


@pytest.fixture
def data() -> dict[str, Any]:
    """The registry as data of its own for each test."""
    return copy.deepcopy(DATA)


@pytest.fixture
def registry(data: dict[str, Any]) -> Registry:
    return from_data(data)


@pytest.fixture
def admission(registry: Registry) -> Admission:
    """Over a backend that gives back the arguments."""
    return Admission(registry, {"local": Functions(), "li": Functions()})


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package `sample_mcp`, laid out as a generated one is."""
    folder = tmp_path_factory.mktemp("package")
    root = folder / "sample_mcp"
    shutil.copytree(Path(support.__file__).parent, root / "_support", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "verbs").mkdir()
    for name, text in MODULES.items():
        (root / name).write_text(text, encoding="utf-8")
    (root / "registry.json").write_text(json.dumps(DATA), encoding="utf-8")
    return folder
