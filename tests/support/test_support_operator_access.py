"""Who may carry out an operator's command: whoever shows a key that the policy file knows, and nobody else."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from verbc.support.operator_access import CommandError, checked_operator
from verbc.support.operator_keys import new_key
from verbc.support.policy_file import PolicyFileError
from verbc.support.registry import Registry

from .operators import VARIABLE, policy_text
from .raw_server import PATIENCE

TYPING = """
import fcntl, json, os, sys, termios
from pathlib import Path
from verbc.support.operator_access import CommandError, checked_operator
from verbc.support.registry import from_data

os.environ.pop("SAMPLE_MCP_OPERATOR_KEY", None)
if sys.argv[2] == "terminal":
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.path.insert(0, sys.argv[3])
from tests.support.samples import DATA

try:
    print(checked_operator(from_data(DATA), Path(sys.argv[1]), os.environ))
except CommandError as error:
    print(error)
"""


@pytest.fixture
def key() -> str:
    return new_key()[0]


@pytest.fixture
def policy(tmp_path: Path, key: str) -> Path:
    tmp_path.chmod(0o700)
    path = tmp_path / "policy.yaml"
    path.write_text(policy_text(hashlib.sha256(key.encode()).hexdigest(), {}))
    path.chmod(0o600)
    return path


def problem(registry: Registry, policy: Path | None, environ: dict[str, str]) -> str:
    with pytest.raises(CommandError) as error:
        checked_operator(registry, policy, environ)
    return str(error.value)


def test_a_key_that_the_policy_file_knows_is_an_operators(registry: Registry, policy: Path, key: str) -> None:
    name = checked_operator(registry, policy, {VARIABLE: key})
    assert name.startswith("operator:")
    assert len(name) == len("operator:") + 12
    assert key not in name


def test_another_key_is_none(registry: Registry, policy: Path, key: str) -> None:
    for wrong in (new_key()[0], key[:-1], f" {key}"):
        told = problem(registry, policy, {VARIABLE: wrong})
        assert told == f"The operator key is none of those in the policy file {policy}."


def test_without_a_policy_file_nobody_is_an_operator(registry: Registry, key: str) -> None:
    told = problem(registry, None, {VARIABLE: key})
    assert told == "This needs the policy file of the server, which has the keys of operators; name it with --policy."


def test_a_policy_file_without_keys_knows_nobody(registry: Registry, policy: Path, key: str) -> None:
    policy.write_text("subjects: {}")
    told = problem(registry, policy, {VARIABLE: key})
    assert told == f"The policy file {policy} has no `operator_keys`; `policy key` makes one."


def test_a_policy_file_that_others_can_change_knows_nobody(registry: Registry, policy: Path, key: str) -> None:
    policy.chmod(0o666)
    with pytest.raises(PolicyFileError, match="can be changed by others"):
        checked_operator(registry, policy, {VARIABLE: key})


def typing(policy: Path, stdin: int, where: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", TYPING, str(policy), where, str(Path(__file__).parents[2])]
    return subprocess.Popen(
        command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


@pytest.mark.parametrize("answer", ["right", "wrong", "end"])
def test_a_key_can_be_typed_and_is_not_shown(policy: Path, key: str, answer: str) -> None:
    controller, terminal = os.openpty()
    try:
        process = typing(policy, terminal, "terminal")
        shown = b""
        while not shown.endswith(b"Operator key: "):
            shown += os.read(controller, 100)
        typed = {"right": key.encode() + b"\n", "wrong": b"no\n", "end": b"\x04"}[answer]
        os.write(controller, typed)
        out, err = process.communicate(timeout=PATIENCE)
        os.write(terminal, b"|")
        while not shown.endswith(b"|"):
            shown += os.read(controller, 100)
    finally:
        os.close(controller)
        os.close(terminal)
    assert err == ""
    assert key.encode() not in shown
    told = {"right": "operator:", "wrong": "The operator key is none of those", "end": "No operator key was typed."}
    assert out.startswith(told[answer])


def test_without_a_terminal_it_is_told_where_the_key_is_looked_for(policy: Path) -> None:
    process = typing(policy, subprocess.DEVNULL, "no terminal")
    assert process.communicate(timeout=PATIENCE) == (
        f"There is no terminal to type the operator key on; give it in {VARIABLE}.\n",
        "",
    )
