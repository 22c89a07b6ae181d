"""The set of support modules that a package carries is the import closure of what it uses, however imports are written."""

import ast
from pathlib import Path

import pytest

import verbc
from verbc.support_set import support_modules

SUPPORT = Path(verbc.__file__).parent / "support"


def siblings(name: str) -> set[str]:
    tree = ast.parse((SUPPORT / f"{name}.py").read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 1]
    return {alias.name for node in found if node.module is None for alias in node.names} | {
        node.module for node in found if node.module
    }


@pytest.mark.parametrize("http", [False, True])
@pytest.mark.parametrize("kinds", [["cli"], ["python"], ["cli", "jobs"], ["http"], ["cli", "http", "jobs", "python"]])
def test_every_import_of_a_carried_module_is_carried(kinds: list[str], http: bool) -> None:
    carried = set(support_modules(kinds, http=http))
    assert {name for module in carried for name in siblings(module)} <= carried


def test_what_only_one_kind_needs_is_not_carried_without_it() -> None:
    assert not {"process", "reply", "argv"} & set(support_modules(["python"], http=False))
    assert "backend_python" not in support_modules(["cli"], http=False)
    assert not {"store", "launch", "run_record"} & set(support_modules(["cli", "python"], http=True))


def test_what_serves_over_http_is_carried_only_where_that_is_offered() -> None:
    of_http = set(support_modules(["cli"], http=True)) - set(support_modules(["cli"], http=False))
    assert {"serve_http", "http_gate", "verifying", "keys_command"} <= of_http
