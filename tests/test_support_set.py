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
@pytest.mark.parametrize("governed", [False, True])
@pytest.mark.parametrize(
    "kinds",
    [["cli"], ["python"], ["cli", "jobs"], ["http"], ["mcp"], ["gateway"], ["cli", "gateway", "http", "jobs", "mcp"]],
)
def test_every_import_of_a_carried_module_is_carried(kinds: list[str], http: bool, governed: bool) -> None:
    carried = set(support_modules(kinds, http=http, governed=governed))
    assert {name for module in carried for name in siblings(module)} <= carried


def test_what_only_one_kind_needs_is_not_carried_without_it() -> None:
    def carried(*kinds: str, http: bool = False) -> set[str]:
        return set(support_modules(list(kinds), http=http, governed=False))

    assert not {"process", "reply", "argv", "members"} & carried("python")
    assert "backend_python" not in carried("cli")
    assert not {"store", "launch", "run_record", "manifest", "upstreams"} & carried("cli", "http", "python", http=True)
    assert not {"store", "registrations", "governor"} & carried("mcp")


def test_what_serves_over_http_is_carried_only_where_that_is_offered() -> None:
    without = support_modules(["cli"], http=False, governed=False)
    of_http = set(support_modules(["cli"], http=True, governed=False)) - set(without)
    assert {"serve_http", "http_gate", "verifying", "keys_command"} <= of_http


def test_what_a_policy_needs_is_carried_only_where_one_decides() -> None:
    without = support_modules(["cli"], http=False, governed=False)
    of_policy = set(support_modules(["cli"], http=False, governed=True)) - set(without)
    assert {"governor", "approvals", "audit_command", "policy_file", "state_store", "client_consent"} <= of_policy
    assert not {"manifest", "upstreams", "servers_command"} & of_policy
