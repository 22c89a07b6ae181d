"""The options of a generated server's command line, and which of them go together."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from .own_variables import operator_key_variable, store_variable
from .registry import HttpServe, JsonObject, Registry

# The command with options of its own.
KEYS: Final = "keys"

# The commands of whoever operates a server that a policy governs; the last only where there are upstream servers.
OPERATING: Final = {
    "approvals": "show what waits for approval, and decide it",
    "audit": "print what was decided and done",
    "policy": "check a policy file, and make keys for operators",
    "servers": "look after the registered servers",
}

# Backends that keep something which outlives the server.
_KEEPING_STATE = frozenset({"jobs"})
# Options that say nothing about a server over stdio.
_OF_HTTP = ("host", "port", "hosts", "origins", "workers", "verify")


def parser_of(registry: Registry) -> ArgumentParser:
    """What reads the command line of a server."""
    identity = registry.server
    parser = ArgumentParser(
        prog=identity.distribution,
        description=f"{_escaped(identity.summary)} Without a command: {_what_it_serves(registry)}.",
        allow_abbrev=False,
    )
    commands = {"verbs": "print the catalog"}
    if registry.serve.http is not None:
        commands[KEYS] = "add, list and revoke the keys of callers"
    commands.update((word, OPERATING[word]) for word in operating(registry))
    described = "; ".join(f"{name}: {text}" for name, text in commands.items())
    parser.add_argument("command", nargs="?", choices=[*commands], help=described)
    parser.add_argument("--surface", choices=["tools", "request"], help=f"default: {registry.surface}")
    if _keeps_state(registry):
        place = f"by default {identity.distribution} in $XDG_STATE_HOME"
        parser.add_argument("--state", type=Path, metavar="DIR", help=f"folder that the server keeps; {place}")
    if is_governed(registry):
        _add_governing_options(parser, registry)
    parser.add_argument(
        "--as", dest="subject", metavar="NAME", help="who calls, where nothing checks it; default: local"
    )
    if registry.serve.http is not None:
        _add_http_options(parser, registry.serve.http)
    parser.add_argument("--version", action="store_true", help="print the version and the digests, and exit")
    return parser


def is_governed(registry: Registry) -> bool:
    """Whether a policy decides what callers may do."""
    return (registry.access or {}).get("policy") is not None


def operating(registry: Registry) -> tuple[str, ...]:
    """The commands for whoever operates the server."""
    if not is_governed(registry):
        return ()
    upstream = any(backend["kind"] == "gateway" for backend in registry.backends.values())
    return tuple(word for word in OPERATING if word != "servers" or upstream)


def _keeps_state(registry: Registry) -> bool:
    return is_governed(registry) or any(backend["kind"] in _KEEPING_STATE for backend in registry.backends.values())


def _add_governing_options(parser: ArgumentParser, registry: Registry) -> None:
    variable = store_variable(registry.server.package)
    parser.add_argument(
        "--store", metavar="URL", help=f"PostgreSQL database that keeps it instead; also by the variable {variable}"
    )
    parser.add_argument("--policy", type=Path, metavar="FILE", help="the policy; default: the one that is built in")


def _what_it_serves(registry: Registry) -> str:
    if not registry.serve.stdio:
        return "serve MCP clients over HTTP"
    over_http = "; with --http, any number of them over HTTP" if registry.serve.http is not None else ""
    return f"serve one MCP client over stdin and stdout{over_http}"


def _add_http_options(parser: ArgumentParser, http: HttpServe) -> None:
    options = parser.add_argument_group("over HTTP")
    options.add_argument("--http", action="store_true", help="serve over HTTP")
    options.add_argument("--host", help=f"name or address to listen on; default: {_escaped(http.host)}")
    options.add_argument("--port", type=_port, help=f"default: {http.port}; 0: one that is free, which the log tells")
    options.add_argument(
        "--hosts",
        type=_several,
        action="extend",
        metavar="NAMES",
        help=_named("names that it is called by", http.hosts),
    )
    options.add_argument(
        "--origins",
        type=_several,
        action="extend",
        metavar="ORIGINS",
        help=_named("web pages that may call", http.origins),
    )
    options.add_argument("--workers", type=_workers, metavar="N", help="processes that serve; default: 1")
    options.add_argument(
        "--verify", metavar="WAY", help="how it is checked who calls, instead of the way that is built in"
    )


def _named(what: str, built_in: Iterable[str]) -> str:
    return f"{what}, separated by commas; may be repeated; default: {_escaped(', '.join(built_in)) or 'none'}"


def _several(text: str) -> list[str]:
    """What stands between commas; nothing in an empty text."""
    return [part for part in (part.strip() for part in text.split(",")) if part]


def _port(text: str) -> int:
    return number(text, 0, 65535)


def _workers(text: str) -> int:
    return number(text, 1, 64)


def number(text: str, least: int, most: int) -> int:
    """The whole number of an option. Raises ArgumentTypeError."""
    # No bound has more digits, and Python does not read thousands of them.
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and least <= int(text) <= most):
        raise ArgumentTypeError(f"it has to be a number from {least} to {most}")
    return int(text)


def is_over_http(registry: Registry, options: Namespace) -> bool:
    """Whether clients come over HTTP: where nothing else is offered, that need not be said."""
    return registry.serve.http is not None and (options.http or not registry.serve.stdio)


def served(http: HttpServe, options: Namespace) -> HttpServe:
    """How it is served over HTTP: as it is built in, but for what the options say."""
    found = {name: getattr(options, name) for name in ("host", "port", "hosts", "origins")}
    told: JsonObject = {
        name: tuple(value) if isinstance(value, list) else value for name, value in found.items() if value is not None
    }
    return replace(http, **told)


def is_verified(registry: Registry, options: Namespace) -> bool:
    """Whether it is checked who calls over HTTP."""
    return options.verify is not None or (registry.access or {}).get("verify") is not None


def misused(registry: Registry, options: Namespace) -> str | None:
    """What is wrong with options that are right each for itself."""
    if options.command in (KEYS, *operating(registry)):
        return f"{options.command} comes before everything else."
    key = operator_key_variable(registry.server.package)
    if is_governed(registry) and os.environ.get(key):
        return f"{key} is for the operator's commands; a server must not have it."
    if options.subject is not None and not (options.subject.isprintable() and options.subject.strip()):
        return "--as needs a name that can be printed."
    if is_over_http(registry, options):
        named_for_nothing = options.subject is not None and is_verified(registry, options)
        return "--as is for servers that don't check who calls." if named_for_nothing else None
    of_http = [name for name in _OF_HTTP if getattr(options, name, None) is not None]
    return f"--{of_http[0]} goes with --http." if of_http else None


def _escaped(text: str) -> str:
    """`text` in a form that argparse, which fills in percent signs, shows as it is."""
    return text.replace("%", "%%")
