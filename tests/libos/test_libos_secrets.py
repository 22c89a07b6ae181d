"""Secrets, addresses, and what upstreams say of themselves: in no reply, log, audit row, or file that is kept."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from .conftest import NewPlace
from .http_upstream import ScriptedHttp, scripted_http
from .manifests import GET, PUT, http_manifest, manifest
from .places import SUBJECT, Place, rules
from .processes import Gateway
from .scripted import LIVE_GET, Json, Scripted

EVENT = {"event_id": "evt_123"}


@dataclass(slots=True)
class Vault:
    """A place with two servers that need secrets, one over stdio and one over HTTP, and all that was ever said there."""

    place: Place
    stdio: Scripted
    http: ScriptedHttp
    token: str
    said: list[str]

    def operator(self, *words: str) -> None:
        """A command of the operator, whatever it comes to."""
        ended = self.place.operator(*words)
        self.said += [ended.stdout, ended.stderr]

    def holding(self, text: str) -> list[str]:
        """Where this text stands, but for what is the operator's own."""
        files = [name for name, content in self.place.files().items() if text.encode() in content]
        return files + [said for said in self.said if text in said]


@pytest.fixture(scope="module")
def vault(new_place: NewPlace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    token = secrets.token_urlsafe(24)
    place = new_place()
    place.env = {"LIBOS_MCP_TOKEN": token, "LIBOS_MCP_OTHER": f"other-{token}"}
    place.policy(
        {SUBJECT: rules(["read mcp:*", "read mcp_server:*", "execute mcp_server:*"], ask=["write mcp:*"])},
        audit={"previews": True},
    )
    stdio = Scripted(tmp_path_factory.mktemp("stdio"))
    with scripted_http(tmp_path_factory.mktemp("http")) as http:
        header = {"env": "LIBOS_MCP_TOKEN", "prefix": "Bearer "}
        place.add(manifest(stdio, "local", env={"CAL_TOKEN": "LIBOS_MCP_TOKEN"}))
        place.add(http_manifest(http, "remote", headers={"Authorization": header}))
        yield Vault(place, stdio, http, token, [])


@pytest.fixture
def server(vault: Vault) -> Iterator[Gateway]:
    vault.stdio.forget()
    vault.http.forget()
    with vault.place.serving() as gateway:
        yield gateway
    vault.said += [line.decode() for line in gateway.seen]


def test_an_upstream_gets_its_secrets_and_nothing_else(vault: Vault, server: Gateway) -> None:
    assert server.call("local", "event_get", EVENT).called["ok"]
    (start,) = vault.stdio.events("start")
    own = {name: value for name, value in start["env"].items() if name not in ("PATH", "LC_CTYPE")}
    assert own == {"CAL_TOKEN": vault.token}
    assert server.call("remote", "event_get", EVENT).called["ok"]
    for heard in vault.http.heard:
        assert heard.headers["authorization"] == f"Bearer {vault.token}"
        assert "cookie" not in heard.headers
        assert heard.headers["accept-encoding"] == "identity"


def test_nothing_that_goes_wrong_tells_a_secret(vault: Vault, server: Gateway) -> None:
    text = f"{vault.token} is what I was given"
    for told in (
        {"deeds": {"tools/call": f"die {text}"}},
        {"deeds": {"tools/call": f"say {text}"}},
        {"deeds": {"tools/list": f"die {text}"}},
        {"deeds": {"initialize": f"say {text}"}},
        {"deeds": {"start": f"die {text}"}},
        {"reply": {"tools/call": {"jsonrpc": "2.0", "id": "$id", "error": {"code": -1, "message": text}}}},
        {"reply": {"tools/list": {"jsonrpc": "2.0", "id": "$id", "error": {"code": -1, "message": text}}}},
        {"reply": {"tools/list": {"jsonrpc": "2.0", "id": "$id", "result": {"tools": text}}}},
        {"reply": {"initialize": {"jsonrpc": "2.0", "id": "$id", "result": {"protocolVersion": text}}}},
        {"tools": [{**LIVE_GET, "inputSchema": {"type": "object", "description": text}}]},
    ):
        vault.stdio.tell(**told)
        vault.http.tell(**told)
        for name in ("local", "remote") if "start" not in told.get("deeds", {}) else ("local",):
            called = server.call(name, "event_get", EVENT).called
            assert called["status"] in ("transport_error", "invalid_response"), (told, called)
        server.tool("list_mcp_tools", server_id="local", refresh=True)
    vault.http.tell(http={"status": 500, "headers": {"X-Reason": vault.token}})
    server.call("remote", "event_get", EVENT).ended("transport_error", started=False)
    vault.http.tell(http={"redirect": f"http://127.0.0.1:1/{vault.token}"})
    server.call("remote", "event_get", EVENT).ended("transport_error", started=False)
    # What a refresh shows is data of the upstream; only there the text may stand.
    replies = [json.loads(line) for line in server.seen]
    calls = [reply for reply in replies if "schema_matches_manifest" not in json.dumps(reply)]
    assert vault.token not in json.dumps(calls)
    assert vault.token not in server.log.read_text()
    server.seen.clear()


def test_the_operators_command_tells_no_secret(vault: Vault, server: Gateway) -> None:
    vault.stdio.tell(deeds={"tools/list": f"die {vault.token}"})
    vault.http.tell(http={"status": 401, "headers": {"WWW-Authenticate": vault.token}})
    assert server.call("local", "event_put", {**EVENT, "title": "asked"}).kind == "pending"
    for words in (
        ["servers", "list"],
        *([word, name] for name in ("local", "remote") for word in ("show", "diff", "pin")),
        ["audit"],
        ["approvals", "list"],
    ):
        vault.operator(*(words if words[0] in ("servers", "audit", "approvals") else ["servers", *words]))


def test_a_secret_is_read_for_each_call(vault: Vault, server: Gateway) -> None:
    """A server that lacks one says which, by name; one that has another sends that."""
    renewed = secrets.token_urlsafe(24)
    with vault.place.serving(env={"LIBOS_MCP_TOKEN": renewed}) as other:
        assert other.call("local", "event_get", EVENT).called["ok"]
    assert vault.stdio.events("start")[-1]["env"]["CAL_TOKEN"] == renewed
    assert vault.holding(renewed) == []
    before = vault.stdio.count("start")
    for wrong in ("a\r\nX-Evil: 1", "x" * 9000):
        with vault.place.serving(env={"LIBOS_MCP_TOKEN": wrong}) as other:
            assert other.call("remote", "event_get", EVENT).kind == "unavailable"
            vault.said += [line.decode() for line in other.seen]
            assert "X-Evil" not in "".join(vault.said)
    assert vault.stdio.count("start") == before


def test_no_secret_or_address_is_anywhere(vault: Vault, server: Gateway) -> None:
    """After all that the other tests of this module did."""
    for name in ("local", "remote"):
        server.tool("inspect_mcp_server", server_id=name).done  # noqa: B018 - looked at when it was read
        server.tool("list_mcp_tools", server_id=name, refresh=True)
        assert server.call(name, "event_get", EVENT).called["ok"]
        server.call(name, "event_put", EVENT)
    server.tool("list_mcp_servers")
    vault.said += [line.decode() for line in server.seen]
    assert vault.holding(vault.token) == []
    assert vault.holding(vault.place.key) == []
    replies = [said for said in vault.said if said.startswith('{"')]
    assert replies
    assert not [reply for reply in replies if vault.http.url in reply or f":{vault.http.port}" in reply]
    logs = [name for name, content in vault.place.files().items() if vault.http.url.encode() in content]
    assert not [name for name in logs if name.endswith(".log")]
    audit = json.dumps(vault.place.audit())
    assert vault.token not in audit
    assert vault.http.url not in audit


def test_a_result_that_holds_a_secret_is_the_upstreams_to_give(vault: Vault, server: Gateway) -> None:
    vault.stdio.tell(reads={"cal.get": "CAL_TOKEN"})
    (block,) = server.call("local", "event_get", EVENT).result["content"]
    assert block["text"] == f"its length is {len(vault.token)}"


def test_what_can_be_named_is_bounded_by_the_server(vault: Vault, tmp_path: Path) -> None:
    for tools, env in (([GET], {"A": "HOME"}), ([PUT], {"A": "LIBOS_MCP_OPERATOR_KEY"}), ([GET], {"A": "PATHS"})):
        whole: Json = manifest(vault.stdio, "greedy", tools, env=env)
        vault.place.refused("servers", "add", str(vault.place.manifest_file(whole)))
