"""Servers that others wrote, behind libos-mcp: registered, pinned, listed, refreshed, called, allowed, asked and denied."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import real_servers
from .places import LAUNCH, SUBJECT, Place, rules
from .processes import Gateway
from .scripted import Json

RECEIPTS = ("content_omitted", "sha256", "bytes", "base64_valid")


def pinned(place: Place, manifest: Json) -> None:
    """Register a server, and pin the schemas that it has."""
    name = manifest["server_id"]
    place.add(manifest)
    shown = place.done("servers", "pin", name, "--yes")
    assert all(entry["tool_id"] in shown for entry in manifest["tools"])
    place.confirm(name)


def compared(gateway: Gateway, name: str, manifest: Json) -> None:
    """Its tools are listed, and equal what is live."""
    listed = gateway.tool("list_mcp_tools", server_id=name).done
    assert [entry["tool_id"] for entry in listed["tools"]] == [entry["tool_id"] for entry in manifest["tools"]]
    assert all(entry["input_schema"]["type"] == "object" for entry in listed["tools"])
    refreshed = gateway.tool("list_mcp_tools", server_id=name, refresh=True).done
    assert refreshed["refreshed"] is True
    assert all(entry["live"]["schema_matches_manifest"] for entry in refreshed["tools"])
    assert [entry["live"]["name"] for entry in refreshed["tools"]] == [entry["mcp_name"] for entry in manifest["tools"]]


def only_text(result: Json) -> str:
    (block,) = result["content"]
    assert block["type"] == "text"
    return str(block["text"])


@pytest.fixture(autouse=True)
def usual_rights(place: Place) -> None:
    reading = [f"read mcp:{name}:*" for name in ("clock", "git", "files", "everything", "everything-http")]
    looking = ["read mcp_server:*", "execute mcp_server:*"]
    place.policy({SUBJECT: rules([*looking, *reading], ask=["write mcp:*"])})


def test_the_time(place: Place, gateway: Gateway) -> None:
    manifest = real_servers.clock()
    pinned(place, manifest)
    compared(gateway, "clock", manifest)
    result = gateway.call("clock", "now", {"timezone": "Europe/Berlin"}).result
    assert result["structured_content"]["timezone"] == "Europe/Berlin"
    assert gateway.call("clock", "now", {"timezone": 7}).kind == "invalid_input"
    assert gateway.call("clock", "get_current_time", {"timezone": "UTC"}).kind == "not_found"
    error = gateway.call("clock", "now", {"timezone": "Nowhere/Else"}).ended("mcp_error", started=True)["error"]
    assert "Nowhere/Else" in json.dumps(error["content"])
    place.policy({SUBJECT: rules(["read mcp:clock:now"])})
    assert gateway.call("clock", "convert", {}).kind == "denied"
    place.policy({SUBJECT: {"allow": ["read mcp:clock:now", LAUNCH[0]]}})
    assert gateway.call("clock", "now", {"timezone": "UTC"}).kind == "denied"


def test_the_time_of_a_manifest_that_was_written_by_hand(place: Place, gateway: Gateway) -> None:
    """Its schema lacks what the server adds to it: that is drift, until it is pinned."""
    schema = {"type": "object", "properties": {"timezone": {"type": "string"}}, "required": ["timezone"]}
    whole = real_servers.clock()
    tools = [{**whole["tools"][0], "input_schema": schema}]
    place.add({**whole, "server_id": "by-hand", "tools": tools})
    place.policy({SUBJECT: rules(["read mcp:by-hand:*"])})
    call = ("by-hand", "now", {"timezone": "UTC"})
    gateway.call(*call).ended("invalid_response", "LiveToolValidationError", started=False)
    assert "title" in place.operator("servers", "diff", "by-hand").stdout
    place.done("servers", "pin", "by-hand", "--yes")
    assert gateway.call(*call).kind == "denied"
    place.confirm("by-hand")
    assert gateway.call(*call).called["schema_protection"] == "pinned"


def test_a_repository(place: Place, gateway: Gateway, tmp_path: Path) -> None:
    repository = real_servers.repository(tmp_path / "repository")
    manifest = real_servers.git(repository)
    pinned(place, manifest)
    compared(gateway, "git", manifest)
    where = {"repo_path": str(repository)}
    assert "note" in only_text(gateway.call("git", "status", where).result)

    def asked_and_done(name: str, arguments: Json) -> str:
        place.approve(gateway.call("git", name, arguments).approval)
        text = only_text(gateway.call("git", name, dict(reversed(list(arguments.items())))).result)
        assert gateway.call("git", name, arguments).kind == "pending"
        return text

    asked_and_done("add", {**where, "files": ["note"]})
    assert "committed" in asked_and_done("commit", {**where, "message": "A note"})
    assert "A note" in only_text(gateway.call("git", "log", where).result)
    rejected = {**where, "message": "Never"}
    place.reject(gateway.call("git", "commit", rejected).approval)
    assert gateway.call("git", "commit", rejected).kind == "denied"
    assert gateway.call("git", "reset", where).kind == "denied"
    assert "Never" not in only_text(gateway.call("git", "log", where).result)


def test_a_folder_of_files(place: Place, gateway: Gateway, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "old").write_text("old text")
    manifest = real_servers.files(folder)
    pinned(place, manifest)
    compared(gateway, "files", manifest)
    assert "old text" in json.dumps(gateway.call("files", "read", {"path": str(folder / "old")}).result)
    new = {"path": str(folder / "new"), "content": "new text"}
    place.approve(gateway.call("files", "write", new).approval)
    assert not (folder / "new").exists()
    assert gateway.call("files", "write", {**new, "content": "other text"}).kind == "pending"
    assert gateway.call("files", "write", new).called["ok"]
    assert (folder / "new").read_text() == "new text"
    outside = gateway.call("files", "read", {"path": "/etc/passwd"}).ended("mcp_error", started=True)
    assert "root:" not in str(outside)
    assert gateway.call("files", "move", {"source": new["path"], "destination": new["path"]}).kind == "denied"
    place.policy({SUBJECT: rules(["read mcp:files:*"], deny=["read mcp:files:read"])})
    assert gateway.call("files", "read", {"path": str(folder / "old")}).kind == "denied"
    assert gateway.call("files", "list", {"path": str(folder)}).called["ok"]


@pytest.fixture(scope="module", params=["stdio", "http"])
def everything(
    request: pytest.FixtureRequest, place: Place, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Json]:
    """The server that shows all there is, pinned."""
    if request.param == "stdio":
        manifest = real_servers.everything()
        pinned(place, manifest)
        yield manifest
    else:
        with real_servers.everything_over_http(tmp_path_factory.mktemp("everything")) as manifest:
            pinned(place, manifest)
            yield manifest


def test_everything_there_is(place: Place, gateway: Gateway, everything: Json) -> None:
    name = everything["server_id"]
    compared(gateway, name, everything)

    def result(tool_id: str, **arguments: Any) -> Json:
        return gateway.call(name, tool_id, arguments).result

    assert "hello" in only_text(result("echo", message="hello"))
    assert "5" in only_text(result("sum", a=2, b=3))
    weather = result("weather", location="Chicago")
    assert weather["structured_content"]["conditions"]
    assert weather["content"] == []
    picture = [block for block in result("picture")["content"] if block["type"] == "image"]
    assert all(key in block for block in picture for key in RECEIPTS)
    assert len(picture) == 1
    assert picture[0]["base64_valid"] is True
    assert "data" not in picture[0]
    (blob,) = [
        block["resource"]
        for block in result("reference", resourceType="Blob", resourceId=1)["content"]
        if block["type"] == "resource"
    ]
    assert blob["content_omitted"] is True
    assert "blob" not in blob
    assert any(block["type"] == "resource_link" for block in result("links", count=2)["content"])
    if everything["transport"] == "stdio":
        environment = json.loads(only_text(result("environment")))
        assert set(environment) <= {"PATH", "LC_CTYPE", "PWD", "SHLVL", "_"}
    assert gateway.call(name, "sum", {"a": "2", "b": 3}).kind == "invalid_input"
    approval = gateway.call(name, "logging", {}).approval
    place.approve(approval)
    assert gateway.call(name, "logging", {}).called["ok"]
    assert gateway.call(name, "logging", {}).kind == "pending"


def test_what_takes_too_long_is_given_up(place: Place, gateway: Gateway) -> None:
    whole = real_servers.everything()
    place.add({**whole, "server_id": "hurried", "timeout_s": 2})
    place.policy({SUBJECT: rules(["read mcp:hurried:*"])})
    called = gateway.call("hurried", "long", {"duration": 50, "steps": 5}).ended("transport_error", started=True)
    assert called["schema_protection"] == "absent"
    assert called["duration_s"] >= 2
