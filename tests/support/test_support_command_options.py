"""The options of a server's command line: those it has, and those that make sense together."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from verbc.support.command_options import is_over_http, is_verified, misused, parser_of, served
from verbc.support.registry import Registry, from_data

from .samples import DATA


def offering(*, access: Any = None, **serve: Any) -> Registry:
    data = {**copy.deepcopy(DATA), "access": access}
    data["serve"].update(serve)
    return from_data(data)


KEYED = {"verify": {"keys": "${KEYS}"}, "scopes": {}, "pin": {}}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("--port 1", "--port goes with --http."),
        ("--host localhost", "--host goes with --http."),
        ("--hosts x", "--hosts goes with --http."),
        ("--origins ,", "--origins goes with --http."),
        ("--workers 2", "--workers goes with --http."),
        ("--verify keys=x", "--verify goes with --http."),
        ("--http --verify keys=x --as me", "--as is for servers that don't check who calls."),
        ("--as \n", "--as needs a name that can be printed."),
        ("--as a\u202eb --http", "--as needs a name that can be printed."),
        ("--http keys", "keys comes before everything else."),
        ("--http --host x --port 0 --workers 64 --verify keys=x", None),
        ("--http --as me", None),
        ("--as me", None),
        ("--surface tools", None),
    ],
)
def test_options_that_make_no_sense_are_told(arguments: str, problem: str | None) -> None:
    registry = offering()
    options = parser_of(registry).parse_args(arguments.split(" "))
    assert misused(registry, options) == problem


def test_who_calls_cannot_be_named_where_it_is_checked() -> None:
    registry = offering(access=KEYED, stdio=False)
    options = parser_of(registry).parse_args(["--as", "me"])
    assert is_verified(registry, options)
    assert misused(registry, options) == "--as is for servers that don't check who calls."


@pytest.mark.parametrize(
    "arguments",
    ["--port 65536", "--port -1", "--port x", "--port \u0661", "--workers 0", "--workers 65", "--workers 1.5", "--htt"],
)
def test_numbers_have_bounds(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parser_of(offering()).parse_args(["--http", *arguments.split()])
    assert caught.value.code == 2
    assert arguments.split()[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("serve", "arguments", "over_http"),
    [
        ({}, [], False),
        ({}, ["--http"], True),
        ({"stdio": False}, [], True),
        ({"stdio": False}, ["--http", "--port", "1"], True),
        ({"http": None}, [], False),
    ],
)
def test_http_is_what_is_served_where_it_is_wanted_or_alone(
    serve: dict[str, Any], arguments: list[str], over_http: bool
) -> None:
    registry = offering(**serve)
    options = parser_of(registry).parse_args(arguments)
    assert is_over_http(registry, options) is over_http
    assert misused(registry, options) is None


@pytest.mark.parametrize(
    ("arguments", "changed"),
    [
        ([], {}),
        (["--host", "::1", "--port", "0"], {"host": "::1", "port": 0}),
        (["--hosts", "a.example,b.example:8443"], {"hosts": ("a.example", "b.example:8443")}),
        (["--hosts", " a.example , ", "--hosts=b.example"], {"hosts": ("a.example", "b.example")}),
        (["--origins", "https://a.example"], {"origins": ("https://a.example",)}),
        (["--hosts", "", "--origins="], {"hosts": (), "origins": ()}),
    ],
)
def test_what_is_told_at_the_start_takes_the_place_of_what_is_built_in(
    arguments: list[str], changed: dict[str, Any]
) -> None:
    built_in = {"hosts": ["built.in"], "origins": ["https://built.in"]}
    registry = offering(http={**DATA["serve"]["http"], **built_in})
    assert registry.serve.http is not None
    options = parser_of(registry).parse_args(["--http", *arguments])
    assert served(registry.serve.http, options) == replace(registry.serve.http, **changed)


def test_a_server_of_stdio_alone_has_no_options_of_http(capsys: pytest.CaptureFixture[str]) -> None:
    parser = parser_of(offering(http=None))
    assert "HTTP" not in parser.format_help()
    for arguments in (["--http"], ["--port", "1"], ["--hosts", "x"], ["--verify", "x"], ["keys"]):
        with pytest.raises(SystemExit):
            parser.parse_args(arguments)
    assert capsys.readouterr().err


def test_the_help_names_what_holds_without_options() -> None:
    named = {"hosts": ["a.example", "b.example"], "origins": ["https://%41.example"]}
    text = " ".join(parser_of(offering(http={**DATA["serve"]["http"], **named})).format_help().split())
    for default in ("127.0.0.1", "7777", "tools", "a.example, b.example", "https://%41.example"):
        assert f"default: {default}" in text
    assert "default: none" in parser_of(offering()).format_help()
