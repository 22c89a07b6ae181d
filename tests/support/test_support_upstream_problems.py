"""What an operator is told when a server does not answer: what he can do something about, in words."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

import pytest

from verbc.support.upstream_errors import ErrorType, UpstreamError
from verbc.support.upstream_problems import told

from .manifests import STDIO, over_http, over_stdio, read

FOLDERS = f"`/usr/local/bin`, `/usr/bin`, `/bin`, `{Path(sys.executable).parent}`"


@pytest.mark.parametrize(
    ("stdio", "sentence"),
    [
        ({"command": "clock"}, f"there is no program `clock` in {FOLDERS}"),
        (
            {"command": "clock", "env": {"PATH": "SAMPLE_MCP_PATH"}},
            "there is no program `clock` on the PATH that `SAMPLE_MCP_PATH` holds",
        ),
        (
            {"command": "bin/clock"},
            "there is no program `bin/clock` that can be started, as seen from the folder of the server",
        ),
    ],
)
def test_a_program_that_is_not_there_is_named_with_where_it_was_looked_for(
    stdio: dict[str, object], sentence: str
) -> None:
    manifest = read(over_stdio(stdio={**STDIO, "env": {}, **stdio}))
    assert told(manifest, UpstreamError("McpCommandNotFound")) == f"{sentence} (McpCommandNotFound)"


def test_the_status_of_a_reply_is_told() -> None:
    said = told(read(over_http()), UpstreamError("McpHttpStatus", 401))
    assert said == (
        "it replied with the HTTP status 401; see its address, and the variables of its headers (McpHttpStatus)"
    )


@pytest.mark.parametrize(
    ("error_type", "word"),
    [
        ("McpAddressDenied", "address"),
        ("McpConnectFailed", "connection"),
        ("McpConnectionLost", "ended"),
        ("McpDnsFailed", "name"),
        ("McpDnsTimeout", "name"),
        ("McpTimeout", "time"),
    ],
)
def test_what_an_operator_can_see_to_is_a_sentence_with_the_type_behind_it(error_type: ErrorType, word: str) -> None:
    said = told(read(over_http()), UpstreamError(error_type))
    assert said.endswith(f" ({error_type})")
    assert word in said.split(" (")[0]


@pytest.mark.parametrize("error_type", get_args(ErrorType))
def test_every_type_is_named(error_type: ErrorType) -> None:
    for manifest in (read(over_http()), read(over_stdio())):
        assert error_type in told(manifest, UpstreamError(error_type))
