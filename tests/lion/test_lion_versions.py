"""The version of li is asked for once, and has to fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Misbehave
from .servers import start_ours


def test_the_version_is_asked_once(lion_mcp: Path, stub: Path, misbehave: Misbehave, tmp_path: Path) -> None:
    misbehave(argv=tmp_path / "argv")
    with start_ours(tmp_path, tmp_path, stub) as server:
        server.op("server.info")
        server.op("nope")
        assert not (tmp_path / "argv").exists()
        server.call({"ops": [{"op": "team.list"}, {"op": "runs"}, {"op": "team.list"}]})
    words = [json.loads(line) for line in (tmp_path / "argv").read_text().splitlines()]
    assert [word[:-1] for word in words] == [["handshake"], ["team", "list"], ["runs"], ["team", "list"]]


@pytest.mark.parametrize("version", ["0.35.9", "0.360", "0.3"])
def test_another_version_makes_the_verbs_unavailable(
    lion_mcp: Path, stub: Path, misbehave: Misbehave, tmp_path: Path, version: str
) -> None:
    misbehave(version=version, argv=tmp_path / "argv")
    with start_ours(tmp_path, tmp_path, stub) as server:
        errors = [server.op(name)["error"] for name in ("runs", "team.list")]
        assert server.op("server.info")["ok"]
        assert server.op("profile.list")["ok"]
    for error in errors:
        assert error["kind"] == "unavailable"
        assert version in error["message"]
        assert "0.36" in error["message"]
    assert {json.loads(line)[0] for line in (tmp_path / "argv").read_text().splitlines()} == {"handshake"}


@pytest.mark.parametrize("version", ["0.36", "0.36.12"])
def test_versions_that_fit(lion_mcp: Path, stub: Path, misbehave: Misbehave, tmp_path: Path, version: str) -> None:
    misbehave(version=version)
    with start_ours(tmp_path, tmp_path, stub) as server:
        assert server.op("runs")["ok"]
