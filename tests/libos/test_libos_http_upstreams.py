"""Upstreams over streamable HTTP: what is sent to them, what is taken from them, and where nothing goes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from .http_upstream import ScriptedHttp, scripted_http
from .manifests import GET, PUT, http_manifest, tool
from .places import Place
from .processes import Gateway
from .scripted import LIVE_GET, Json, poll

EVENT = {"event_id": "evt_123"}
CAP = 4000  # bytes of a response
PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedHttp]:
    """Where nothing is to go: named as a proxy, and in redirects."""
    with scripted_http(tmp_path_factory.mktemp("elsewhere")) as upstream:
        yield upstream


@pytest.fixture(scope="module")
def gateway(place: Place, elsewhere: ScriptedHttp) -> Iterator[Gateway]:
    """A server in an environment that names proxies."""
    with place.serving(env=dict.fromkeys(PROXIES, elsewhere.url)) as serving:
        yield serving


@pytest.fixture(scope="module")
def shared_remote(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedHttp]:
    with scripted_http(tmp_path_factory.mktemp("remote")) as upstream:
        place.add(http_manifest(upstream, timeout_s=2, max_response_bytes=CAP))
        yield upstream


@pytest.fixture
def remote(shared_remote: ScriptedHttp, place: Place) -> ScriptedHttp:
    """The scripted calendar over HTTP, registered as `remote`."""
    shared_remote.forget()
    place.grant("read mcp:*", "write mcp:*")
    return shared_remote


@pytest.fixture(autouse=True)
def nothing_elsewhere(elsewhere: ScriptedHttp) -> Iterator[None]:
    yield
    assert elsewhere.heard == []


@pytest.mark.parametrize("form", ["json", "sse"])
def test_a_call_is_one_session(gateway: Gateway, remote: ScriptedHttp, form: str) -> None:
    remote.tell(http={"form": form})
    assert gateway.call("remote", "event_get", EVENT).result["structured_content"]["arguments"] == EVENT
    poll(lambda: remote.last_session not in remote.sessions, "the end of the session")
    own = [heard for heard in remote.heard if heard.headers.get("mcp-session-id") in (None, remote.last_session)]
    assert [(heard.method, heard.message.get("method")) for heard in own] == [
        ("POST", "initialize"),
        ("POST", "notifications/initialized"),
        ("POST", "tools/list"),
        ("POST", "tools/call"),
        ("DELETE", None),
    ]
    for number, heard in enumerate(own):
        assert heard.path == "/mcp"
        assert ("mcp-session-id" in heard.headers) is (number > 0)
        if heard.method == "POST":
            assert {part.strip() for part in heard.headers["accept"].split(",")} == {
                "application/json",
                "text/event-stream",
            }
            assert heard.headers["content-type"] == "application/json"
            assert heard.headers["accept-encoding"] == "identity"
        if number > 0:
            assert heard.headers["mcp-protocol-version"] == "2025-11-25"


def test_rights_to_start_programs_are_not_needed(place: Place, gateway: Gateway, remote: ScriptedHttp) -> None:
    place.policy({"agent": {"allow": ["read mcp:remote:event_get"], "ask": [], "deny": []}})
    assert gateway.call("remote", "event_get", EVENT).called["ok"]


@pytest.mark.parametrize("moment", ["initialize", "tools/list", "tools/call"])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503])
def test_an_error_of_http_is_no_result(gateway: Gateway, remote: ScriptedHttp, moment: str, status: int) -> None:
    remote.tell(http={"status": status, "at": moment})
    called = gateway.call("remote", "event_put", EVENT).ended("transport_error", started=moment == "tools/call")
    assert set(called["error"]) == {"code", "error_type", "correlation_id"}
    assert remote.count("call") == int(moment == "tools/call")


@pytest.mark.parametrize("moment", ["initialize", "tools/list", "tools/call"])
def test_redirects_are_not_followed(
    gateway: Gateway, remote: ScriptedHttp, elsewhere: ScriptedHttp, moment: str
) -> None:
    remote.tell(http={"redirect": elsewhere.url, "at": moment})
    called = gateway.call("remote", "event_put", EVENT).ended("transport_error", started=moment == "tools/call")
    assert elsewhere.url not in str(called)


@pytest.mark.parametrize(
    ("http", "error_type"),
    [
        ({"encoding": "gzip"}, "McpHttpContentEncodingDenied"),
        ({"padding": 10_000}, "McpHttpResponseTooLarge"),
        ({"padding": 10_000, "form": "sse"}, "McpHttpSseFrameTooLarge"),
    ],
)
@pytest.mark.parametrize("moment", ["tools/list", "tools/call"])
def test_what_is_not_read_ends_the_call(
    gateway: Gateway, remote: ScriptedHttp, http: Json, error_type: str, moment: str
) -> None:
    remote.tell(http={**http, "at": moment})
    gateway.call("remote", "event_put", EVENT).ended("transport_error", error_type, started=moment == "tools/call")


@pytest.mark.parametrize("moment", ["initialize", "tools/list", "tools/call"])
@pytest.mark.parametrize("deed", ["die", "garbage", "array"])
def test_nonsense_and_silence_are_no_answers(gateway: Gateway, remote: ScriptedHttp, moment: str, deed: str) -> None:
    remote.tell(deeds={moment: deed})
    called = gateway.call("remote", "event_put", EVENT).ended("transport_error", started=moment == "tools/call")
    assert set(called["error"]) == {"code", "error_type", "correlation_id"}
    assert remote.count("call") == int(moment == "tools/call")


def test_an_upstream_that_hangs_has_its_time(place: Place, gateway: Gateway, remote: ScriptedHttp) -> None:
    place.add(http_manifest(remote, "remote-short", timeout_s=0.4))
    for moment in ("initialize", "tools/list", "tools/call"):
        remote.tell(hold={moment: "go"})
        called = gateway.call("remote-short", "event_put", EVENT).ended(
            "transport_error", started=moment == "tools/call"
        )
        assert called["duration_s"] >= 0.4
    remote.release()


def test_an_upstream_that_is_not_there_may_have_been_contacted(place: Place, gateway: Gateway, tmp_path: Path) -> None:
    with scripted_http(tmp_path / "left") as left:
        whole = http_manifest(left, "left")
    place.add(whole)
    place.grant("read mcp:*")
    reply = gateway.call("left", "event_get", EVENT)
    if reply.failed:
        assert reply.kind == "unavailable"
    else:
        reply.ended("transport_error", started=False)
    assert str(left.port) not in str(reply.value)


def test_a_name_that_leads_inside_is_not_called(place: Place, gateway: Gateway, remote: ScriptedHttp) -> None:
    """This machine's own name: it is none of those that may stand for this machine."""
    name = socket.gethostname()
    addresses = {entry[4][0] for entry in socket.getaddrinfo(name, remote.port, type=socket.SOCK_STREAM)}
    assert addresses
    whole = http_manifest(remote, "inside")
    whole["http"] = {"url": f"https://{name}:{remote.port}/mcp"}
    place.add(whole)
    called = gateway.call("inside", "event_get", EVENT).ended("transport_error", "McpAddressDenied", started=False)
    assert not any(str(address) in str(called) for address in addresses)
    assert not [heard for heard in remote.heard if heard.method == "POST"]


def test_live_checks_are_the_same(gateway: Gateway, remote: ScriptedHttp) -> None:
    remote.tell(tools=[LIVE_GET])
    gateway.call("remote", "event_put", EVENT).ended("invalid_response", "LiveToolValidationError", started=False)
    assert remote.counts == (0, 1, 0)


def test_a_refresh_goes_over_http_as_well(place: Place, gateway: Gateway, remote: ScriptedHttp) -> None:
    place.policy({"agent": {"allow": ["read mcp_server:remote", "execute mcp_server:remote"]}})
    answer = gateway.tool("list_mcp_tools", server_id="remote", refresh=True).done
    assert (answer["transport"], answer["refreshed"]) == ("streamable_http", True)
    assert all(entry["live"]["schema_matches_manifest"] for entry in answer["tools"])


def test_a_kept_session_that_has_expired_is_not_tried_twice(
    place: Place, gateway: Gateway, remote: ScriptedHttp
) -> None:
    tools = [GET, tool(PUT, warm_mutation="allow")]
    place.add(http_manifest(remote, "remote-warm", tools, warm=True))
    for _ in range(2):
        assert gateway.call("remote-warm", "event_put", EVENT).called["ok"]
    assert remote.count("initialize") == 1
    remote.sessions.clear()
    first = gateway.call("remote-warm", "event_put", EVENT).called
    assert first["ok"] or first["call_started"] is False
    assert gateway.call("remote-warm", "event_put", EVENT).called["ok"]
    assert remote.count("call") == 3 + first["ok"]
