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


@pytest.mark.parametrize("kinds", [["cli"], ["python"], ["cli", "python"]])
def test_every_import_of_a_carried_module_is_carried(kinds: list[str]) -> None:
    carried = set(support_modules(kinds))
    assert {name for module in carried for name in siblings(module)} <= carried


def test_what_only_commands_need_is_not_carried_without_them() -> None:
    assert not {"process", "reply", "argv"} & set(support_modules(["python"]))
    assert "backend_python" not in support_modules(["cli"])
