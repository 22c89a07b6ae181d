"""One spec is one text: no hash seed, locale, folder or order of unordered keys changes a byte of what it compiles to."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from verbc.compose import load
from verbc.pipeline import compile_spec
from verbc.scalars import PROTOCOLS
from verbc.source import Plain, read

ROOT = Path(__file__).parents[1]
CASES = Path(__file__).parent / "cases" / "valid"
PRINT = """
import hashlib, sys
from pathlib import Path
from verbc.pipeline import compile_spec
for spec in sys.argv[1:]:
    folder, files = compile_spec(Path(spec), spec)
    for path, text in files.items():
        print(folder, path, hashlib.sha256(text.encode()).hexdigest())
"""
SPECS = ("specs/hello.yaml", "specs/enums.yaml", "specs/types.yaml", "specs/folder")


def lay_out(project: Path) -> None:
    """A project of some specs, the same wherever it lies."""
    (project / "specs").mkdir(parents=True)
    shutil.copy(ROOT / "specs" / "hello.yaml", project / "specs" / "hello.yaml")
    for name, case in (("enums", "enums_of_every_type"), ("types", "types_recursive")):
        shutil.copy(CASES / case / "spec.yaml", project / "specs" / f"{name}.yaml")
    shutil.copy(CASES / "types_recursive" / "handlers.py", project / "specs" / "handlers.py")
    shutil.copytree(CASES / "folder" / "spec", project / "specs" / "folder")


def compiled(project: Path, environment: Mapping[str, str]) -> str:
    """The digest of every file that the specs of a project compile to, in a process of its own."""
    given = {"PATH": os.environ["PATH"], **environment}
    command = [sys.executable, "-c", PRINT, *SPECS]
    return subprocess.run(command, cwd=project, env=given, capture_output=True, text=True, check=True).stdout


def test_surroundings_change_nothing(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "a b" / "größe" / "other"
    lay_out(one)
    lay_out(other)
    first = compiled(one, {"PYTHONHASHSEED": "0", "LC_ALL": "C"})
    assert len(first.splitlines()) > 100
    assert compiled(one, {"PYTHONHASHSEED": "1", "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"}) == first
    assert compiled(other, {"PYTHONHASHSEED": "4242", "LC_ALL": "POSIX", "PYTHONUTF8": "0", "USER": "x"}) == first


def test_absolute_path_leaves_no_trace(tmp_path: Path) -> None:
    lay_out(tmp_path)
    for name in SPECS:
        relative = compile_spec(tmp_path / name, name)
        assert compile_spec(tmp_path / name, (tmp_path / name).as_posix()) == relative
        texts = "".join(relative[1].values())
        assert str(tmp_path) not in texts
        assert str(ROOT) not in texts
        assert str(Path.home()) + "/" not in texts


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.iterdir()))
def test_texts_are_plain(case: str) -> None:
    folder = CASES / case
    name = "spec" if (folder / "spec").is_dir() else "spec.yaml"
    _, files = compile_spec(folder / name, name)
    assert list(files) == sorted(files)
    for path, text in files.items():
        assert re.fullmatch(r"[A-Za-z0-9_./-]+", path)
        assert "\r" not in text, path
        assert text == "" or text.endswith("\n"), path
        assert text.encode("utf-8").decode("utf-8") == text
        if not path.endswith(("registry.json", ".md")) and "/_support/" not in path:
            assert text.isascii(), path


def test_no_date_is_written() -> None:
    _, files = compile_spec(ROOT / "specs" / "hello.yaml", "specs/hello.yaml")
    today = datetime.now(UTC)
    for path, text in files.items():
        if "/_support/" not in path and path not in ("tests/values.py", "tests/test_registry.py"):
            assert str(today.year) not in re.sub("|".join(PROTOCOLS), "", text), path


def flow(value: Any) -> str:
    """A document as one line of YAML, with quotes around all text."""
    match value:
        case dict():
            return "{" + ", ".join(f"{json.dumps(key)}: {flow(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(flow, value)) + "]"
        case Plain() if not isinstance(value.value, str):
            return str(value)
        case _:
            return json.dumps(str(value), ensure_ascii=False)


# Maps whose order is the author's: what is in them is shown, or put on a command line, as it stands there.
ORDERED = frozenset(
    "verbs params properties kinds types refused backends shared args result default const examples".split()
)


def shuffled(value: Any, key: str, order: random.Random) -> Any:
    """The same document, with the keys of unordered maps in another order."""
    if isinstance(value, dict):
        keys = list(value)
        if key not in ORDERED:
            order.shuffle(keys)
        return {name: shuffled(value[name], name if key not in ORDERED else "", order) for name in keys}
    if isinstance(value, list):
        return [shuffled(item, "", order) for item in value]
    return value


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "case",
    [
        "keywords_of_every_kind",
        "shared_parts",
        "types_nested",
        "limits_kinds_feedback",
        "replies",
        "alternatives",
        "flags",
    ],
)
def test_order_of_unordered_keys_changes_nothing(case: str, seed: int, tmp_path: Path) -> None:
    for file in (CASES / case).glob("*.py"):
        shutil.copy(file, tmp_path)
    spec = tmp_path / "spec.yaml"
    document = load(read(CASES / case / "spec.yaml", "spec.yaml"))
    texts = []
    for written in (document, shuffled(document, "", random.Random(seed))):  # noqa: S311 - an order, not a secret
        spec.write_text(flow(written), encoding="utf-8")
        texts.append((flow(written), compile_spec(spec, "spec.yaml")))
    (one, compiled_one), (other, compiled_other) = texts
    assert one != other
    assert compiled_other == compiled_one
    (path,) = [path for path in compiled_one[1] if path.endswith("/registry.json")]
    assert json.loads(compiled_one[1][path]) == json.loads(compile_spec(CASES / case / "spec.yaml", "x")[1][path])
