"""Servers that others wrote, as `make peers` installs them, and how they are registered here."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from .processes import ROOT
from .scripted import PATIENCE, Json, poll

PEERS = ROOT / ".peers"
NODE_SERVERS = PEERS / "servers" / "node_modules" / "@modelcontextprotocol"


def installed(path: Path) -> str:
    """The path of what `make peers` has installed."""
    if not path.is_file():
        pytest.fail(f"There is no {path.name} to be a gateway to: run `make peers`.")
    return str(path)


def node() -> str:
    found = shutil.which("node")
    assert found is not None, "There is no Node.js on PATH."
    return found


def tool(tool_id: str, mcp_name: str, right: str = "read", **more: Any) -> Json:
    """A tool that is to be pinned: without a schema, so far."""
    changes = right != "read"
    return {
        "tool_id": tool_id,
        "mcp_name": mcp_name,
        "right": right,
        "rollback_class": "irreversible" if changes else "no_rollback_required",
        "state_mutation": changes,
        "information_flow": True,
        **more,
    }


def registered(server_id: str, tools: list[Json], command: str, *arguments: str, **more: Any) -> Json:
    """A manifest of one of them over stdio."""
    return {
        "server_id": server_id,
        "transport": "stdio",
        "stdio": {"command": command, "args": list(arguments)},
        "tools": tools,
        "timeout_s": 60,
        **more,
    }


def clock() -> Json:
    """mcp-server-time."""
    tools = [tool("now", "get_current_time"), tool("convert", "convert_time")]
    command = installed(PEERS / "time" / "bin" / "mcp-server-time")
    return registered("clock", tools, command, "--local-timezone=UTC", warm=True)


def git(repository: Path) -> Json:
    """mcp-server-git, over one repository."""
    tools = [
        tool("status", "git_status"),
        tool("log", "git_log"),
        tool("add", "git_add", "write", warm_mutation="allow"),
        tool("commit", "git_commit", "write", read_back="log", warm_mutation="allow"),
        tool("reset", "git_reset", "execute"),
    ]
    command = installed(PEERS / "git" / "bin" / "mcp-server-git")
    return registered("git", tools, command, "--repository", str(repository), warm=True)


def files(folder: Path) -> Json:
    """server-filesystem, over one folder."""
    tools = [
        tool("read", "read_text_file"),
        tool("list", "list_directory"),
        tool("write", "write_file", "write", read_back="read"),
        tool("move", "move_file", "execute"),
    ]
    script = installed(NODE_SERVERS / "server-filesystem" / "dist" / "index.js")
    return registered("files", tools, node(), script, str(folder))


EVERYTHING = [
    tool("echo", "echo"),
    tool("sum", "get-sum"),
    tool("environment", "get-env"),
    tool("picture", "get-tiny-image"),
    tool("weather", "get-structured-content"),
    tool("reference", "get-resource-reference"),
    tool("links", "get-resource-links"),
    tool("long", "trigger-long-running-operation"),
    tool("logging", "toggle-simulated-logging", "write"),
]


def everything() -> Json:
    """server-everything over stdio."""
    script = installed(NODE_SERVERS / "server-everything" / "dist" / "index.js")
    return registered("everything", EVERYTHING, node(), script, "stdio")


@contextmanager
def everything_over_http(folder: Path) -> Iterator[Json]:
    """server-everything over streamable HTTP, while this lasts."""
    script = installed(NODE_SERVERS / "server-everything" / "dist" / "index.js")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder / "everything.log").open("wb") as log:
        process = subprocess.Popen(
            [node(), script, "streamableHttp"],
            env={"PATH": os.environ["PATH"], "PORT": str(port)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        poll(lambda: process.poll() is not None or _listens(port), "a server over HTTP")
        assert process.poll() is None, (folder / "everything.log").read_text()
        yield {
            "server_id": "everything-http",
            "transport": "streamable_http",
            "http": {"url": f"http://127.0.0.1:{port}/mcp"},
            "tools": EVERYTHING,
        }
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        finally:
            process.kill()
            process.wait()


def _listens(port: int) -> bool:
    with suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), timeout=PATIENCE):
        return True
    return False


def repository(folder: Path) -> Path:
    """A new repository with one file that is not in it yet."""
    folder.mkdir()
    for words in (["init", "-q"], ["config", "user.name", "Tests"], ["config", "user.email", "tests@example.com"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, env=_quiet())
    (folder / "note").write_text("a note\n")
    return folder


def _quiet() -> Mapping[str, str]:
    """An environment in which git reads nobody's settings."""
    return {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
