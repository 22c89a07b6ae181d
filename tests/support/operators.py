"""Operators for tests of their commands: a registry, a policy file that knows one key, and what a command prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from verbc.support.operator_command import main
from verbc.support.operator_keys import new_key
from verbc.support.registry import Registry

VARIABLE = "SAMPLE_MCP_OPERATOR_KEY"


@dataclass(frozen=True, slots=True)
class Told:
    """What a command printed."""

    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Operation:
    """A server that an operator looks after."""

    registry: Registry
    policy: Path
    state: Path
    key: str
    capsys: pytest.CaptureFixture[str]

    def run(self, *words: str, code: int = 0) -> Told:
        """What a command prints that ends with `code`."""
        self.capsys.readouterr()
        options = ("--policy", str(self.policy), "--state", str(self.state))
        assert main([words[0], *options, *words[1:]], self.registry) == code, self.capsys.readouterr()
        return Told(*self.capsys.readouterr())

    def refused(self, *words: str) -> str:
        """The sentence with which a command ends that cannot be carried out."""
        told = self.run(*words, code=1)
        assert told.out == ""
        return told.err.removeprefix("sample-mcp: ").removesuffix("\n")


def operation(
    registry: Registry,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    **subjects: Any,
) -> Operation:
    """A server in `folder` with a policy file, and its operator's key in the environment."""
    key, digest = new_key()
    folder.chmod(0o700)
    policy = folder / "policy.yaml"
    policy.write_text(policy_text(digest, subjects))
    policy.chmod(0o600)
    monkeypatch.setenv(VARIABLE, key)
    return Operation(registry, policy, folder / "state", key, capsys)


def policy_text(digest: str, subjects: Mapping[str, Any]) -> str:
    """A policy file with one operator key."""
    return json.dumps({"subjects": subjects, "operator_keys": [digest]})
