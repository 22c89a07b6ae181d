"""The command `servers`: what is registered of MCP servers, changes of that, and how it compares with what they offer."""

from __future__ import annotations

import asyncio
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from .command_options import number
from .manifest import MANIFEST_BYTES, Manifest, Stdio
from .manifest_difference import live_difference, manifest_difference, pinned, schema_difference, unpinnable
from .moments import as_text
from .operator_access import CommandError, add_options, operating
from .operator_servers import COMPONENTS, Servers
from .printing import json_lines, table
from .quoting import quoted, shown, shown_path
from .registrations import Registration
from .registry import Registry

DESCRIPTION: Final = "The MCP servers that are registered, and what callers may use of them."

_HEADINGS: Final = ("server", "transport", "tools", "from", "generation", "digest", "changed", "state")
_DIGEST_DIGITS: Final = 12
_LAST_GENERATION: Final = 2**63 - 1


def add_arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    add_options(parser)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, carry_out: Any, told: str) -> ArgumentParser:
        command = commands.add_parser(name, help=told, allow_abbrev=False)
        add_options(command)
        command.set_defaults(carry_out=carry_out)
        return command

    add("list", _list, "list the servers")
    for name, carry_out, told in (
        ("add", _add, "register a server"),
        ("replace", _replace, "put another manifest in the place of a registered one"),
    ):
        add(name, carry_out, told).add_argument("file", metavar="FILE", help="the manifest; -: from stdin")
    for name, carry_out, told in (
        ("show", _show, "show one server in full"),
        ("remove", _remove, "take a server out"),
    ):
        add(name, carry_out, told).add_argument("id", metavar="ID")
    confirming = add("confirm", _confirm, "let what the policy grants on a changed server count again")
    confirming.add_argument("id", metavar="ID")
    confirming.add_argument(
        "--generation", type=_generation, metavar="N", help="only if that is its generation; default: whatever it is"
    )
    comparing = add("diff", _diff, "compare a server with the spec, and with the tools that it offers")
    comparing.add_argument("id", metavar="ID")
    comparing.add_argument("--offline", action="store_true", help="leave the server alone")
    pinning = add("pin", _pin, "compare the registered schemas with those that a server offers, or take them over")
    pinning.add_argument("id", metavar="ID")
    pinning.add_argument("--yes", action="store_true", help="register the schemas that the server offers")


def _generation(text: str) -> int:
    return number(text, 1, _LAST_GENERATION)


@contextmanager
def _servers(options: Namespace, registry: Registry) -> Iterator[Servers]:
    with operating(registry, options, COMPONENTS) as operator:
        yield Servers(operator)


def _list(options: Namespace, registry: Registry) -> list[str]:
    with _servers(options, registry) as servers:
        return table([_HEADINGS, *map(_row, servers.all())])


def _row(found: Registration) -> tuple[str, ...]:
    manifest = found.manifest
    kind, tools = ("-", "-") if manifest is None else (manifest.transport_kind, str(len(manifest.tools)))
    changed = as_text(found.updated_at, "seconds")
    numbers = (str(found.generation), found.digest[:_DIGEST_DIGITS], changed)
    return (shown(found.server_id), kind, tools, found.origin, *numbers, _state(found))


def _state(found: Registration) -> str:
    if found.problem is not None:
        return "unusable"
    if found.manifest is None:
        return "removed"
    return "suspended" if found.suspended else "registered"


def _show(options: Namespace, registry: Registry) -> list[str]:
    with _servers(options, registry) as servers:
        found = servers.found(options.id)
    return json_lines(
        {
            "server_id": found.server_id,
            "state": _state(found),
            "problem": found.problem,
            "suspended": found.suspended,
            "generation": found.generation,
            "digest": found.digest,
            "origin": found.origin,
            "registered_by": found.registered_by,
            "created_at": as_text(found.created_at),
            "updated_at": as_text(found.updated_at),
            "stdio_authority_resource": _authority(found.manifest),
            "manifest": None if found.manifest is None else found.manifest.data,
        }
    )


def _authority(manifest: Manifest | None) -> str | None:
    return manifest.transport.authority if manifest is not None and isinstance(manifest.transport, Stdio) else None


def _add(options: Namespace, registry: Registry) -> list[str]:
    with _servers(options, registry) as servers:
        return _registered(servers.add(_read(servers, options.file)), "Registered")


def _replace(options: Namespace, registry: Registry) -> list[str]:
    with _servers(options, registry) as servers:
        return _registered(servers.replace(_read(servers, options.file)), "Replaced")


def _read(servers: Servers, file: str) -> Manifest:
    """The manifest in a file, or on stdin. Raises CommandError."""
    if file == "-":
        if sys.stdin is None:
            raise CommandError("Stdin cannot be read: it is closed.")
        return servers.read(sys.stdin.buffer.read(MANIFEST_BYTES + 1), "What stdin gives")
    name = f"The file {shown_path(file)}"
    try:
        with Path(file).open("rb") as opened:
            text = opened.read(MANIFEST_BYTES + 1)
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise CommandError(f"{name} cannot be read: no path has a NUL.") from None
    return servers.read(text, name)


def _registered(found: Registration, done: str) -> list[str]:
    lines = [f"{done} {quoted(found.server_id)}: generation {found.generation}, digest {found.digest}."]
    if (authority := _authority(found.manifest)) is not None:
        lines.append(f"To start it takes `write process:spawn` and `execute {authority}`.")
    return lines + _suspension(found)


def _suspension(found: Registration) -> list[str]:
    if not found.suspended:
        return []
    granted = f"What the policy grants on `mcp:{shown(found.server_id)}` does not count until"
    if found.manifest is None:
        return [f"{granted} it is registered again and `servers confirm` says so."]
    return [f"{granted} `servers confirm` says so."]


def _remove(options: Namespace, registry: Registry) -> list[str]:
    with _servers(options, registry) as servers:
        found = servers.remove(options.id)
    return [f"Removed {quoted(found.server_id)}; its generation is {found.generation}.", *_suspension(found)]


def _confirm(options: Namespace, registry: Registry) -> list[str]:
    with _servers(options, registry) as servers:
        found = servers.confirm(options.id, options.generation)
    name, state = quoted(found.server_id), f"generation {found.generation}, digest {found.digest}"
    return [f"What the policy grants on {name} counts: {state}."]


def _diff(options: Namespace, registry: Registry) -> list[str]:
    with _servers(options, registry) as servers:
        found, offered = servers.found(options.id), servers.offered(options.id)
    lines = _beside_spec(found, offered)
    if options.offline or found.manifest is None:
        return lines
    live = _live_tools(found.manifest, found.generation)
    beside = live_difference(found.manifest, live)
    return [*lines, *(beside or [f"The tools that {quoted(found.server_id)} offers are as registered."])]


def _beside_spec(found: Registration, offered: Manifest | None) -> list[str]:
    name = quoted(found.server_id)
    if offered is None:
        return [f"The spec has no server {name}."]
    lines = manifest_difference(offered, found.manifest, "as the spec has it", f"as registered ({_state(found)})")
    return lines or [f"The registration of {name} is that of the spec."]


def _pin(options: Namespace, registry: Registry) -> list[str]:
    with _servers(options, registry) as servers:
        found, manifest = servers.usable(options.id)
        live = _live_tools(manifest, found.generation)
        missing, lines = unpinnable(manifest, live), schema_difference(manifest, live)
        if missing and options.yes:
            raise CommandError("\n  ".join(["Nothing is changed; the schemas cannot be registered:", *missing]))
        if missing:
            return [*lines, *missing]
        if not lines:
            return [f"The schemas that {quoted(options.id)} offers are those that are registered."]
        if not options.yes:
            return [*lines, "Nothing is changed; with --yes the schemas that are offered are registered."]
        changed = servers.taken(pinned(manifest, live), "With the schemas that are offered, this")
        return [*lines, *_registered(servers.replace(changed, found), "Replaced")]


def _live_tools(manifest: Manifest, generation: int) -> Mapping[str, Mapping[str, Any]]:
    from .servers_live import live_tools  # what it needs is slow to load

    return asyncio.run(live_tools(manifest, generation, os.environ))
