"""The command line of a server."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from verbc.support.command import support_digest

from .raw_server import PATIENCE, RawServer
from .samples import DATA


def run(package: Path, *arguments: str, python: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *python, "-m", "sample_mcp", *arguments]
    return subprocess.run(command, cwd=package, capture_output=True, text=True, timeout=PATIENCE)


def test_the_version_names_the_package_and_the_digests(package: Path) -> None:
    digest = hashlib.sha256()
    for path in sorted((package / "sample_mcp" / "_support").glob("*.py")):
        digest.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    finished = run(package, "--version")
    assert finished.stdout.splitlines() == [
        "sample-mcp 1.2.3",
        f"registry {DATA['digest']}",
        f"support {digest.hexdigest()}",
    ]
    assert (finished.returncode, finished.stderr) == (0, "")


def test_the_support_digest_changes_with_a_name_and_with_a_byte(tmp_path: Path) -> None:
    seen = set()
    for name, text in (("a.py", "x"), ("a.py", "y"), ("b.py", "y")):
        for old in tmp_path.glob("*.py"):
            old.unlink()
        (tmp_path / name).write_text(text)
        seen.add(support_digest(tmp_path))
    assert len(seen) == 3


def test_the_catalog_is_a_table(package: Path) -> None:
    lines = run(package, "verbs").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["verb", *(verb["name"] for verb in DATA["verbs"])]
    assert lines[1] == "item.show   read         Summary of item.show."
    assert lines[-1] == "wiped       unavailable  It cannot be undone."


@pytest.mark.parametrize("argument", ["verbs", "--version", "--help"])
def test_what_needs_no_server_loads_none(package: Path, argument: str) -> None:
    loaded = run(package, argument, python=("-X", "importtime")).stderr
    assert "sample_mcp._support.registry" in loaded
    for heavy in ("mcp_types", "pydantic", "jsonschema_rs", "asyncio", "sample_mcp.handlers"):
        assert f" {heavy}\n" not in loaded


@pytest.mark.parametrize("arguments", [["nope"], ["--surface", "nope"], ["--surf", "tools"]])
def test_wrong_usage_is_told(package: Path, arguments: list[str]) -> None:
    finished = run(package, *arguments)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert "usage: sample-mcp" in finished.stderr


@pytest.mark.parametrize(("arguments", "count"), [([], 6), (["--surface", "tools"], 6), (["--surface", "request"], 1)])
def test_the_surface_can_be_chosen(package: Path, tmp_path: Path, arguments: list[str], count: int) -> None:
    with RawServer(package, tmp_path, *arguments) as server:
        server.handshake().send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert len(server.receive()["result"]["tools"]) == count


def test_no_validator_is_loaded_for_a_list(package: Path) -> None:
    lines = "".join(
        json.dumps(message) + "\n"
        for message in (
            {
                "jsonrpc": "2.0",
                "id": 0,
                "method": "initialize",
                "params": {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "clientInfo": {"name": "test", "version": "1"},
                },
            },
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        )
    )
    command = [sys.executable, "-X", "importtime", "-m", "sample_mcp"]
    finished = subprocess.run(
        command, cwd=package, input=lines, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert "item.show" in finished.stdout
    assert " mcp_types\n" in finished.stderr
    for module in ("jsonschema_rs", "sample_mcp.handlers", "sample_mcp.verbs.sample"):
        assert f" {module}\n" not in finished.stderr


def test_a_terminal_that_knows_few_characters_is_enough(package: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sample_mcp"
    shutil.copytree(package / "sample_mcp", folder)
    text = json.dumps(DATA).replace("Nobody needs it.", "\\u00a1Nobody \\u6f22!")
    (folder / "registry.json").write_text(text, encoding="utf-8")
    finished = subprocess.run(
        [sys.executable, "-m", "sample_mcp", "verbs"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    assert b"\xa1Nobody \\u6f22!" in finished.stdout


@pytest.mark.parametrize("argument", ["verbs", "--version"])
def test_a_reader_that_has_gone_ends_it_in_silence(package: Path, argument: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        finished = print_to(writing, package, argument)
    finally:
        os.close(writing)
    assert (finished.returncode, finished.stderr) == (141, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no disk that is always full")
def test_a_full_disk_is_told_in_one_sentence(package: Path) -> None:
    with open("/dev/full", "wb") as full:
        finished = print_to(full.fileno(), package, "verbs")
    assert (finished.returncode, finished.stderr) == (1, "sample-mcp: Cannot print: No space left on device.\n")


def print_to(descriptor: int, package: Path, argument: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sample_mcp", argument]
    return subprocess.run(
        command, cwd=package, stdout=descriptor, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False
    )
