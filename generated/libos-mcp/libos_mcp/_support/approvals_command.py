"""The command `approvals`: see which calls wait for somebody's approval, look at one in full, and decide it."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from . import approvals
from .approvals import Approval, ApprovalError
from .moments import as_text
from .operator_access import GOVERNANCE, CommandError, Operator, add_options, operating
from .printing import json_lines, table, tell
from .quoting import quoted, shown
from .registry import Registry

DESCRIPTION: Final = "Calls that have to be approved, each by itself, before they are carried out."

_HEADINGS: Final = ("approval", "state", "until", "approver", "subject", "verb", "rights")
_MOST: Final = 1000
_CELL_CHARACTERS: Final = 100


def add_arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    add_options(parser)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    listing = commands.add_parser("list", help="list those that wait", allow_abbrev=False)
    listing.add_argument("--all", action="store_true", help=f"also what is decided or over, up to the last {_MOST}")
    listing.set_defaults(carry_out=_list)
    add_options(listing)
    for name, carry_out, told in (
        ("show", _show, "show one in full, with the arguments of the call"),
        ("approve", _approve, "let the call be carried out, once"),
        ("reject", _reject, "refuse the call; also one that is approved, until it is sent"),
    ):
        command = commands.add_parser(name, help=told, allow_abbrev=False)
        command.add_argument("id", metavar="ID", help="the approval, or the first characters of it, at least 6")
        command.set_defaults(carry_out=carry_out)
        add_options(command)


@contextmanager
def _deciding(options: Namespace, registry: Registry) -> Iterator[Operator]:
    with operating(registry, options, GOVERNANCE) as operator:
        try:
            yield operator
        except ApprovalError as error:
            raise CommandError(str(error)) from None


def _list(options: Namespace, registry: Registry) -> list[str]:
    with _deciding(options, registry) as operator:
        if options.all:
            found = operator.store.read(lambda connection: approvals.recent(connection, _now(), _MOST))
        else:
            found = operator.store.read(lambda connection: approvals.pending(connection, _now()))
    return table([_HEADINGS, *map(_row, found)])


def _row(found: Approval) -> tuple[str, ...]:
    about = (found.subject, found.verb, ", ".join(found.rights))
    until = as_text(found.expires_at)
    return (found.id, found.state, until, found.approver, *(shown(text, _CELL_CHARACTERS) for text in about))


def _show(options: Namespace, registry: Registry) -> list[str]:
    with _deciding(options, registry) as operator:
        found = operator.store.read(lambda connection: approvals.find(connection, options.id, _now()))
    if found.arguments is None:
        tell(registry.server.distribution, "The arguments are kept only until an approval is settled.")
    return json_lines(_in_full(found))


def _in_full(found: Approval) -> dict[str, Any]:
    decided_at, used_at = found.decided_at, found.used_at
    return {
        **found.told(),
        "state": found.state,
        "approver": found.approver,
        "arguments": None if found.arguments is None else json.loads(found.arguments),
        "created_at": as_text(found.created_at),
        "decided_at": None if decided_at is None else as_text(decided_at),
        "decided_by": found.decided_by,
        "used_at": None if used_at is None else as_text(used_at),
    }


def _approve(options: Namespace, registry: Registry) -> list[str]:
    found = _decided(options, registry, approved=True)
    until = as_text(found.expires_at)
    return [f"Approved {found.id}: {quoted(found.subject)} may send the very same call once, until {until}."]


def _reject(options: Namespace, registry: Registry) -> list[str]:
    found = _decided(options, registry, approved=False)
    until = as_text(found.expires_at)
    return [f"Rejected {found.id}: the very same call of {quoted(found.subject)} is denied until {until}."]


def _decided(options: Namespace, registry: Registry, *, approved: bool) -> Approval:
    with _deciding(options, registry) as operator:
        name = "approve" if approved else "reject"
        return operator.store.write(
            name, lambda connection: approvals.decide(connection, options.id, approved, operator.name, _now())
        )


def _now() -> datetime:
    return datetime.now(UTC)
