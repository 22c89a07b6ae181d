"""Manifests: what is taken for one, every bound and refusal, the normal form with its digest, and what a start is known by."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verbc.support.fingerprint import digest
from verbc.support.manifest import Http, Manifest, ManifestError, Stdio, read_manifest, same_schema
from verbc.support.manifest_addresses import is_public

from .manifests import ALLOWED, EVENT_GET, EVENT_PUT, HTTP, STDIO, a_tool, over_http, over_stdio, read

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


def problems(value: Any, allowed: tuple[str, ...] = ALLOWED, reserved: tuple[str, ...] = ()) -> dict[str, str]:
    """What is wrong with a value, by its place."""
    with pytest.raises(ManifestError) as failure:
        read_manifest(value, allowed, reserved)
    return {".".join(map(str, problem.path)): problem.text for problem in failure.value.problems}


def stdio(**changes: Any) -> dict[str, Any]:
    return over_stdio(stdio={**STDIO, **changes})


def http(**changes: Any) -> dict[str, Any]:
    return over_http(http={**HTTP, **changes})


def tools(**changes: Any) -> dict[str, Any]:
    return over_stdio(tools=[{**EVENT_GET, **changes}])


# The normal form


def test_every_default_stands_in_the_normal_form() -> None:
    assert read(over_stdio(tools=[a_tool(input_schema=None)])).data == {
        "schema_version": 1,
        "server_id": "calendar",
        "transport": "stdio",
        "stdio": {"command": "python3", "args": ["-m", "calendar_server"], "env": {}, "cwd": None},
        "tools": [
            {
                **EVENT_GET,
                "rollback_status": None,
                "input_schema": {},
                "unpinned_mutation": "refuse",
                "warm_mutation": "refuse",
                "read_back": None,
                "metadata": {},
            }
        ],
        "timeout_s": 10,
        "max_request_bytes": 65_536,
        "max_response_bytes": 1_048_576,
        "concurrency": 4,
        "page_limit": 16,
        "warm": False,
        "metadata": {},
    }


def test_the_headers_of_http_have_all_their_parts() -> None:
    headers = {"Authorization": {"env": "SAMPLE_MCP_TOKEN", "prefix": "Bearer ", "suffix": ""}}
    assert read(over_http()).data["http"] == {"url": HTTP["url"], "headers": headers}


@pytest.mark.parametrize("value", [over_stdio(), over_http(), tools(metadata={"é": [1.0, {"a": None}]})])
def test_a_normal_form_is_its_own(value: dict[str, Any]) -> None:
    manifest = read(value)
    again = read(json.loads(json.dumps(manifest.data)))
    assert again == manifest
    assert again.digest == manifest.digest == digest(manifest.data)


@pytest.mark.parametrize("wrapper", ["mcp_server", "server"])
def test_it_may_be_the_only_member_of_an_object(wrapper: str) -> None:
    assert read({wrapper: over_stdio()}) == read(over_stdio())
    assert f"{wrapper}.warm" in problems({wrapper: over_stdio(warm=1)})
    assert problems({wrapper: over_stdio(), "more": 1})[wrapper] == f"there is no `{wrapper}` in the manifest"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (over_stdio(), over_stdio(timeout_s=10.0)),
        (over_stdio(), over_stdio(schema_version=1.0, concurrency=4.0, warm=False)),
        (stdio(cwd=None), stdio(cwd="./x/../")),
        (stdio(cwd="a/b"), stdio(cwd="a\\.\\c/../b//")),
        (over_stdio(), dict(reversed(over_stdio().items()))),
        (tools(input_schema={"minLength": 1}), tools(input_schema={"minLength": 1.0})),
    ],
)
def test_what_means_the_same_has_one_digest(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert read(one).digest == read(other).digest


@pytest.mark.parametrize(
    "other",
    [
        over_stdio(timeout_s=10.5),
        over_stdio(warm=True),
        over_stdio(metadata={"a": 1}),
        over_stdio(tools=[EVENT_PUT, EVENT_GET]),
        stdio(args=["-m", "calendar_server", ""]),
        stdio(env={"TOKEN": "SAMPLE_MCP_TOKEN"}),
        over_http(),
    ],
)
def test_what_means_something_else_has_another_digest(other: dict[str, Any]) -> None:
    assert read(other).digest != read(over_stdio()).digest


def test_reading_leaves_the_value_as_it_was() -> None:
    value = tools(input_schema={"minLength": 1.0}, metadata={"a": [2.0]})
    before = copy.deepcopy(value)
    read(value)
    assert json.dumps(value) == json.dumps(before)


@given(JSON)
def test_any_other_value_is_refused_in_words(value: Any) -> None:
    assert all(re.fullmatch(r"[^\n]{3,400}", text) for text in problems(value).values())


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where the members and items of a manifest are; what is in a schema is no matter of its own."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in steps:
        yield (*path, step)
        if step != "input_schema":
            yield from places(item, (*path, step))


def complaints(value: Any) -> list[tuple[str | int, ...]]:
    """The places where a value is no manifest."""
    try:
        read(value)
    except ManifestError as error:
        return [problem.path for problem in error.problems]
    return []


@pytest.mark.parametrize("written", [over_stdio(), over_http()])
@pytest.mark.parametrize("other", [None, True, -1, 0.5, "", "a\0", [], [0], {}, {"": 0}])
def test_whatever_stands_at_a_place_is_taken_as_it_is_or_refused(written: dict[str, Any], other: Any) -> None:
    refused = 0
    for path in places(written):
        value = copy.deepcopy(written)
        target = value
        for step in path[:-1]:
            target = target[step]  # type: ignore[index]
        target[path[-1]] = other  # type: ignore[index]
        found = complaints(value)
        refused += bool(found)
        assert all(place[:1] in ((), path[:1]) for place in found), path
        if not found:
            assert read(read(value).data) == read(value)
    assert refused > len(list(places(written))) // 2


# The server


def test_everything_that_is_wrong_is_told_at_once() -> None:
    value = over_stdio(server_id="a:b", colour="red", warm="yes", tools=[a_tool(right="admin"), {**EVENT_GET, "x": 1}])
    assert problems(value) == {
        "server_id": "`server_id` must be at most 96 letters, digits and _ . @ + -, and begin with a letter or digit",
        "tools.0.right": "`right` must be `read`, `write` or `execute`",
        "tools.1.x": "there is no `x` in a tool",
        "tools.1.tool_id": "`tool_id` is that of another tool already",
        "tools.1.mcp_name": "`mcp_name` is that of another tool already",
        "warm": "`warm` must be true or false",
        "colour": "there is no `colour` in the manifest",
    }


def test_the_text_of_the_error_has_a_line_for_each_problem() -> None:
    with pytest.raises(ManifestError) as failure:
        read(over_stdio(server_id=None, tools=[a_tool(right=1)]))
    assert str(failure.value).splitlines() == [
        "The manifest must have `server_id`.",
        "tools[0].right: `right` must be `read`, `write` or `execute`.",
    ]


def test_a_name_that_would_steer_a_display_is_shown_escaped() -> None:
    with pytest.raises(ManifestError) as failure:
        read(over_stdio(**{"\u202ex\n": 1}))
    assert str(failure.value) == "\\u202ex\\u000a: there is no `\\u202ex\\u000a` in the manifest."


@pytest.mark.parametrize("name", ["server_id", "transport", "tools", "stdio"])
def test_what_it_must_have(name: str) -> None:
    assert problems(over_stdio(**{name: None})) == {"": f"the manifest must have `{name}`"}


@pytest.mark.parametrize("value", [None, [], "text", 1, True])
def test_it_is_an_object(value: Any) -> None:
    assert problems(value) == {"": "the manifest must be an object"}


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("schema_version", [1], [0, 2, True, "1", 1.5]),
        ("server_id", ["a", "9", "a" * 96, "A_.@+-z"], ["", "a" * 97, "_a", "a:b", "a b", "a\n", "é", 1]),
        ("timeout_s", [60, 0.001, 59.5], [0, -1, 60.001, "10", True, 1e300]),
        ("max_request_bytes", [1, 1_048_576], [0, 1_048_577, 10.5, "1", True]),
        ("max_response_bytes", [1, 8_388_608], [0, 8_388_609, -1, False]),
        ("concurrency", [1, 64], [0, 65, True]),
        ("page_limit", [1, 64], [0, 65, "16"]),
        ("warm", [True, False], [0, 1, "true"]),
        ("metadata", [{}, {"a": [None]}], [[], "a", 1]),
        ("tools", [[EVENT_GET]], [[], {}, "a", [[]]]),
        ("transport", ["stdio"], ["http", "", 1, ["stdio"]]),
    ],
)
def test_the_bounds_of_a_server(name: str, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert read(over_stdio(**{name: value})).data[name] is not None
    for value in bad:
        assert any(place.startswith(name) for place in problems(over_stdio(**{name: value}))), value


def test_null_is_no_way_to_leave_something_out() -> None:
    for name in ("timeout_s", "metadata", "tools", "stdio", "warm", "schema_version"):
        assert name in problems({**over_stdio(), name: None})


def test_there_is_the_block_of_the_transport_and_no_other() -> None:
    assert problems(over_stdio(http=HTTP)) == {"http": "`http` is not for the transport `stdio`"}
    assert problems(over_http(stdio=STDIO)) == {"stdio": "`stdio` is not for the transport `streamable_http`"}
    assert problems(over_http(http=None, stdio=STDIO)).keys() == {"", "stdio"}


def test_it_is_nested_no_deeper_than_what_is_shown_of_it_may_be() -> None:
    def deep(levels: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for _ in range(levels - 1):
            value = {"a": value}
        return value

    assert read(over_stdio(metadata=deep(61)))
    assert problems(over_stdio(metadata=deep(62))) == {"": "the manifest is nested too deeply"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {1: 2}, object(), (1,)])
def test_what_is_no_json_is_refused(value: Any) -> None:
    assert problems(over_stdio(metadata={"a": value})).keys() == {""}


def test_it_is_no_larger_than_a_mebibyte() -> None:
    assert problems(over_stdio(metadata={"a": "x" * (1 << 20)})) == {"": "the manifest is too large"}


# Programs


@pytest.mark.parametrize(
    "command", ["", "a b", "a\tb", "a\u00a0b", "a\n", "a;b", "a&b", "a|b", "a<b", "a>b", "~/a", "a\0", 1, ["a"]]
)
def test_a_command_is_one_plain_word(command: Any) -> None:
    assert problems(stdio(command=command)).keys() == {"stdio.command"}


@pytest.mark.parametrize("command", ["python3", "/usr/bin/python3", "a~b", "$(x)", "mcp-server.py", "é"])
def test_a_command_need_not_be_a_name(command: str) -> None:
    assert read(stdio(command=command)).data["stdio"]["command"] == command


@pytest.mark.parametrize("args", ["-m", [1], [None], ["a\0"], {"a": 1}, [["a"]]])
def test_arguments_are_a_list_of_texts(args: Any) -> None:
    assert problems(stdio(args=args)).keys() == {"stdio.args"}


@pytest.mark.parametrize(
    ("cwd", "normal"),
    [("a", "a"), ("./a//b/", "a/b"), ("a/../b", "b"), ("a\\b", "a/b"), (".", None), ("", None), (None, None)],
)
def test_a_working_folder_has_one_form(cwd: str | None, normal: str | None) -> None:
    transport = read(stdio(cwd=cwd)).transport
    assert isinstance(transport, Stdio)
    assert transport.cwd == normal


@pytest.mark.parametrize("cwd", ["/a", "..", "a/../..", "a/../../a", "\\a", "C:\\a", "c:a", "a\0", 1])
def test_a_working_folder_lies_below_the_servers_own(cwd: Any) -> None:
    assert problems(stdio(cwd=cwd)).keys() == {"stdio.cwd"}


def test_variables_are_named_on_both_sides() -> None:
    assert read(stdio(env={"TOKEN": "SAMPLE_MCP_TOKEN", "_a1": "SAMPLE_MCP_"})).data["stdio"]["env"]
    assert problems(stdio(env={"A-B": "SAMPLE_MCP_A", "1": "SAMPLE_MCP_A", "": "SAMPLE_MCP_A"})).keys() == {
        "stdio.env.A-B",
        "stdio.env.1",
        "stdio.env.",
    }
    for name in ("HOME", "sample_mcp_a", "SAMPLE_MCP_A B", "SAMPLE_MCP_\n", "", 1, None, ["SAMPLE_MCP_A"]):
        assert problems(stdio(env={"TOKEN": name})).keys() == {"stdio.env.TOKEN"}, name
    assert problems(stdio(env=["TOKEN"])).keys() == {"stdio.env"}


def test_only_variables_that_are_allowed_can_be_named() -> None:
    value = stdio(env={"TOKEN": "CAL_TOKEN"})
    for allowed in ("CAL_TOKEN", "CAL_*", "*", "CAL_TOKEN*"):
        assert read_manifest(value, ["X", allowed]).digest
    for refused in ("CAL", "CAL_?OKEN", "*_TOKEN", "CAL_TOKEN=1", "cal_*"):
        assert problems(value, (refused,)).keys() == {"stdio.env.TOKEN"}, refused
    assert problems(value, ())["stdio.env.TOKEN"].endswith("may read: there is none")
    assert problems(value, ("A_*", "B"))["stdio.env.TOKEN"] == (
        "`TOKEN` must name a variable that a manifest may read: `A_*`, `B`"
    )


def test_what_is_reserved_stays_so_though_it_is_allowed() -> None:
    value = http(headers={"X-Key": {"env": "SAMPLE_MCP_STORE"}})
    assert read_manifest(value, ALLOWED, ["SAMPLE_MCP_STOR"]).digest
    assert problems(value, ALLOWED, ("SAMPLE_MCP_STORE",)) == {
        "http.headers.X-Key.env": "`env` must not name a variable that is this server's own"
    }


def authority(value: dict[str, Any]) -> str:
    transport = read(value).transport
    assert isinstance(transport, Stdio)
    return transport.authority


def test_a_start_is_known_by_all_that_it_is_made_of() -> None:
    assert authority(stdio()) == "mcp_stdio:" + digest(
        {"command": "python3", "args": ["-m", "calendar_server"], "env": [], "cwd": None}
    )
    others = [
        stdio(command="python"),
        stdio(args=["-m"]),
        stdio(args=["-m calendar_server"]),
        stdio(cwd="a"),
        stdio(env={"A": "SAMPLE_MCP_A"}),
        stdio(env={"A": "SAMPLE_MCP_B"}),
    ]
    found = {authority(value) for value in (stdio(), *others)}
    assert len(found) == len(others) + 1
    assert all(re.fullmatch("mcp_stdio:[0-9a-f]{64}", one) for one in found)


def test_what_else_a_manifest_says_does_not_change_its_start() -> None:
    one = stdio(env={"A": "SAMPLE_MCP_A", "B": "SAMPLE_MCP_B"}, cwd="x/..")
    other = {
        **stdio(env={"B": "SAMPLE_MCP_B", "A": "SAMPLE_MCP_A"}),
        "server_id": "other",
        "tools": [a_tool(right="write")],
    }
    assert authority(one) == authority(other)


# Addresses


@pytest.mark.parametrize(
    "url",
    [
        "https://calendar.example.org",
        "https://calendar.example.org/mcp/",
        "https://calendar.example.org:8443/mcp?profile=a&b=%20c",
        "http://localhost:8000/mcp",
        "http://127.0.0.1:8000/mcp",
        "http://[::1]:8000/mcp",
        "https://localhost/mcp",
        "https://8.8.8.8/mcp",
        "https://[2606:4700:4700::1111]/mcp",
    ],
)
def test_an_address_stays_as_it_is(url: str) -> None:
    transport = read(http(url=url)).transport
    assert isinstance(transport, Http)
    assert transport.url == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        1,
        "calendar.example.org/mcp",
        "ftp://calendar.example.org",
        "https://",
        "https:///mcp",
        "https://user@calendar.example.org",
        "https://:word@calendar.example.org",
        "https://calendar.example.org/#x",
        "https://calendar.example.org/?a#x",
        "https://calendar.example.org/?a b",
        "https://calendar.example.org/mcp?é",
        "https://calendar.example.org/a\nb",
        "https://calendar.example.org:0/",
        "https://calendar.example.org:99999/",
        "http://calendar.example.org/mcp",
        "http://8.8.8.8/mcp",
        "http://127.0.0.2/mcp",
        "http://localhost.example.org/mcp",
        "https://127.0.0.2/mcp",
        "https://10.0.0.1/mcp",
        "https://192.168.1.1/mcp",
        "https://100.64.0.1/mcp",
        "https://169.254.169.254/latest",
        "https://168.63.129.16/",
        "https://0.0.0.0/",
        "https://224.0.0.1/",
        "https://[::]/",
        "https://[fe80::1]/",
        "https://[fd00:ec2::254]/",
        "https://[ff0e::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[64:ff9b::a9fe:a9fe]/",
        "https://[2002:a9fe:a9fe::]/",
        "https://[fec0::1]/",
        "https://[64:ff9b:1::a9fe:a9fe]/",
        "https://[::169.254.169.254]/",
        "https://[::ffff:0:10.0.0.1]/",
        "https://192.0.0.192/",
        "https://192.88.99.1/",
        "https://[5f00::1]/",
        "https://[3fff::1]/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://127.1/",
        "https://127.0.0.1.x.0x1/",
        "https://metadata.google.internal/",
        "https://METADATA.google.internal./",
        "https://metadata/",
        "https://instance-data/",
    ],
)
def test_where_no_request_goes(url: Any) -> None:
    found = problems(http(url=url))
    assert found.keys() == {"http.url"}
    assert "example.org/" not in found["http.url"].replace("https://tools.example.org/mcp", "")


def test_an_address_is_public_only_where_all_that_it_stands_for_is() -> None:
    assert is_public(ip_address("1.1.1.1"))
    assert is_public(ip_address("64:ff9b::101:101"))
    assert not is_public(ip_address("64:ff9b::7f00:1"))
    assert not is_public(ip_address("2002:7f00:1::"))
    assert not is_public(ip_address("::ffff:127.0.0.1"))


@pytest.mark.parametrize(
    "network",
    [
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
        *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32"),
        *("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "64:ff9b::a00:0/104", "100::/64"),
        *("2001::/32", "2001:2::/48", "2001:10::/28", "2001:20::/28", "2001:db8::/32", "2002::/16", "3fff::/20"),
        *("4000::/3", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
    ],
)
def test_no_address_of_a_special_network_is_public(network: str) -> None:
    inside = ip_network(network)
    middle = inside.network_address + inside.num_addresses // 2
    assert not any(map(is_public, (inside.network_address, middle, inside.broadcast_address)))


@pytest.mark.parametrize(
    "address",
    [
        *("1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0"),
        *("192.0.1.1", "192.88.98.255", "198.17.255.255", "198.20.0.0", "223.255.255.255"),
        *("2001:200::1", "2001:db7::1", "2606:4700::1111", "2a00:1450::1", "3ffe::1"),
    ],
)
def test_what_is_beside_one_is(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "name",
    [
        *("connection", "Content-Length", "HOST", "transfer-encoding", "upgrade", "Accept", "accept-encoding"),
        *("Content-Type", "Mcp-Session-Id", "MCP-Protocol-Version", "Last-Event-ID", "baggage", "traceparent"),
        *("", "a b", "a:b", "é", "a" * 129),
    ],
)
def test_headers_that_no_manifest_sets(name: str) -> None:
    assert problems(http(headers={name: {"env": "SAMPLE_MCP_A"}})).keys() == {f"http.headers.{name}"}


@pytest.mark.parametrize(
    ("header", "place"),
    [
        ("Bearer x", ""),
        ({}, ""),
        ({"env": "HOME"}, ".env"),
        ({"env": "SAMPLE_MCP_A", "prefix": "bearer "}, ".prefix"),
        ({"env": "SAMPLE_MCP_A", "prefix": None}, ".prefix"),
        ({"env": "SAMPLE_MCP_A", "suffix": "x"}, ".suffix"),
        ({"env": "SAMPLE_MCP_A", "value": "x"}, ".value"),
    ],
)
def test_a_header_comes_from_a_variable(header: Any, place: str) -> None:
    assert problems(http(headers={"X-Key": header})).keys() == {f"http.headers.X-Key{place}"}


@pytest.mark.parametrize("prefix", ["", "Bearer ", "Token ", "Basic "])
def test_the_texts_before_the_value_of_a_header(prefix: str) -> None:
    assert read(http(headers={"X-Key": {"env": "SAMPLE_MCP_A", "prefix": prefix, "suffix": ""}})).digest


def test_a_header_stands_there_once() -> None:
    headers = {"X-Key": {"env": "SAMPLE_MCP_A"}, "x-key": {"env": "SAMPLE_MCP_B"}}
    assert problems(http(headers=headers)) == {"http.headers.x-key": "`x-key` stands there twice"}


# Tools


@pytest.mark.parametrize(
    "name", ["tool_id", "mcp_name", "right", "rollback_class", "state_mutation", "information_flow"]
)
def test_what_a_tool_must_have(name: str) -> None:
    assert problems(over_stdio(tools=[a_tool(**{name: None})])) == {"tools.0": f"a tool must have `{name}`"}


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("tool_id", ["a", "b" * 96], ["", "b" * 97, "a:b", "*", 1]),
        ("mcp_name", ["a", "any text:\u202e", "x" * 256], ["", "x" * 257, 1]),
        ("right", ["read", "write", "execute"], ["admin", "READ", "*", ["read"]]),
        ("rollback_class", ["irreversible", "rollbackable", "no_rollback_required", "unknown"], ["none", 1, ""]),
        ("rollback_status", [None, "not_supported", "not_applied", "not_required", "unknown"], ["irreversible", 1, ""]),
        ("state_mutation", [False], [0, "false"]),
        ("information_flow", [True, False], [1, "true"]),
        ("unpinned_mutation", ["refuse", "allow"], [True, "deny", ""]),
        ("warm_mutation", ["refuse", "allow"], [False, "deny"]),
        ("read_back", [None, "event_get"], ["nobody", "cal.get", "", 1]),
        ("metadata", [{}, {"a": 1}], ["x", []]),
        ("input_schema", [{}, {"type": "object"}], [True, "object", [], 1]),
    ],
)
def test_the_bounds_of_a_tool(name: str, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert read(tools(**{name: value})).data["tools"][0][name] == value
    for value in bad:
        assert problems(tools(**{name: value})).keys() == {f"tools.0.{name}"}, value


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("irreversible", "not_supported"),
        ("rollbackable", "not_applied"),
        ("no_rollback_required", "not_required"),
        ("unknown", "unknown"),
    ],
)
def test_the_status_of_a_change_follows_from_its_class(kind: str, status: str) -> None:
    tool = read(tools(rollback_class=kind)).tools[0]
    assert (tool.rollback_status, tool.effective_rollback_status) == (None, status)
    tool = read(tools(rollback_class=kind, rollback_status="not_applied")).tools[0]
    assert (tool.rollback_status, tool.effective_rollback_status) == ("not_applied", "not_applied")


def test_what_changes_something_has_something_to_roll_back() -> None:
    assert problems(tools(state_mutation=True)).keys() == {"tools.0.rollback_class"}
    assert read(tools(state_mutation=True, rollback_class="unknown")).tools[0].right == "read"
    assert read(tools(right="write")).tools[0].state_mutation is False


def test_what_is_read_back_with_changes_nothing() -> None:
    value = over_stdio(tools=[EVENT_GET, {**EVENT_PUT, "read_back": "event_put"}])
    assert problems(value) == {"tools.1.read_back": "`read_back` must name a tool that changes nothing itself"}


def test_a_tool_is_found_by_its_id_alone() -> None:
    manifest = read(over_stdio())
    assert manifest.tool("event_put") is manifest.tools[1]
    assert manifest.tool("cal.put") is manifest.tool("EVENT_PUT") is manifest.tool("") is None


# Schemas


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "string"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [{"type": "string"}]},
        {"properties": {"child": {"$ref": "#"}}},
        {"$defs": {"a": {"$anchor": "x"}}, "$ref": "#x"},
        {"x-unknown": 1, "format": "unknown"},
        {"default": {"$ref": "https://example.org/x"}},
        {"properties": {"$ref": {"type": "string"}}},
    ],
)
def test_schemas_that_stand_by_themselves(schema: dict[str, Any]) -> None:
    tool = read(tools(input_schema=schema)).tools[0]
    assert tool.pinned
    assert tool.input_schema == schema


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "strin"}, ".type"),
        ({"properties": {"a": {"minLength": -1}}}, ".properties.a.minLength"),
        ({"properties": {"a": {"pattern": "("}}}, ".properties.a.pattern"),
        ({"required": "a"}, ".required"),
        ({"items": [{}]}, ".items"),
        ({"$schema": 5}, ".$schema"),
        ({"$schema": "https://example.org/schema"}, ""),
        ({"$ref": "https://example.org/x"}, ""),
        ({"$ref": "file:///etc/passwd"}, ""),
        ({"properties": {"a": {"$ref": "other.json"}}}, ""),
        ({"$defs": {"unused": {"$ref": "https://example.org/x"}}}, ""),
        ({"$ref": "#/$defs/nobody"}, ""),
        ({"$ref": "#"}, ""),
    ],
)
def test_schemas_that_are_none(schema: dict[str, Any], place: str) -> None:
    found = problems(tools(input_schema=schema))
    assert found.keys() == {f"tools.0.input_schema{place}"}
    assert "example" not in found.popitem()[1]


def test_no_schema_is_none_that_is_pinned() -> None:
    assert not read(over_stdio(tools=[a_tool(input_schema=None)])).tools[0].pinned


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1}),
        ({"minLength": 1}, {"minLength": 1.0}),
        ({"minimum": 0}, {"minimum": -0.0}),
        ({"a": "\u00e9"}, {"a": "é"}),
        ({}, {}),
    ],
)
def test_schemas_that_are_the_same(one: Any, other: Any) -> None:
    assert same_schema(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": 1}, {"a": True}),
        ({"a": 0}, {"a": False}),
        ({"a": 0}, {"a": None}),
        ({"a": "1"}, {"a": 1}),
        ({"a": 1}, {"a": 1, "title": "A"}),
        ({"a": "e\u0301"}, {"a": "é"}),
        ({"a": 2**53}, {"a": 2**53 + 1}),
        ({}, None),
        ({"a": float("nan")}, {"a": float("nan")}),
        ({"a": object()}, {"a": object()}),
    ],
)
def test_schemas_that_differ(one: Any, other: Any) -> None:
    assert not same_schema(one, other)


@given(JSON, JSON)
def test_being_the_same_is_an_equality(one: Any, other: Any) -> None:
    assert same_schema(one, json.loads(json.dumps(one)))
    assert same_schema(one, other) == same_schema(other, one) == (plain(one) == plain(other))


def plain(value: Any) -> Any:
    """A value in which Python's equality is that of JSON."""
    match value:
        case bool() | None | str():
            return (type(value), value)
        case list():
            return [plain(item) for item in value]
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case _:
            return value


# What a search looks at


def test_a_search_sees_no_address_and_no_variable() -> None:
    seen = read(http(headers={"X-Key": {"env": "SAMPLE_MCP_A"}})).searched
    assert "cal.put" in seen
    assert not any(hidden in seen for hidden in ("example.org", "sample_mcp", "x-key"))
    seen = read(stdio(env={"TOKEN": "SAMPLE_MCP_A"})).searched
    assert "calendar_server" in seen
    assert not any(hidden in seen for hidden in ("sample_mcp", "token"))


def test_reading_one_loads_no_database_and_no_client() -> None:
    program = (
        "import sys; import verbc.support.manifest, verbc.support.server_views; "
        "assert not {'sqlalchemy', 'yaml', 'mcp', 'jsonschema_rs', 'pydantic'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_it_can_be_shared() -> None:
    manifest: Manifest = read(over_stdio())
    with pytest.raises(AttributeError):
        manifest.server_id = "other"  # type: ignore[misc]
