"""The command `audit`: the record of what was decided, called and changed, as JSON lines."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from typing import Final

from . import audit
from .command_options import number
from .operator_access import GOVERNANCE, add_options, operating
from .printing import json_line
from .registry import Registry

DESCRIPTION: Final = "The record of what was decided, called and changed: one JSON object per line, the oldest first."

_USUAL_LINES: Final = 100
_MOST_LINES: Final = 100_000
_LAST_ID: Final = 2**63 - 1


def add_arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    add_options(parser)
    parser.add_argument("--subject", metavar="NAME", help="only what is about this caller")
    parser.add_argument(
        "--limit", type=_limit, default=_USUAL_LINES, metavar="N", help=f"most lines; default: {_USUAL_LINES}"
    )
    parser.add_argument("--after", type=_id, metavar="ID", help="the first ones after this id; default: the last ones")
    parser.set_defaults(carry_out=_lines)


def _lines(options: Namespace, registry: Registry) -> list[str]:
    with operating(registry, options, GOVERNANCE) as operator:
        found = operator.store.read(
            lambda connection: audit.lines(
                connection, datetime.now(UTC), subject=options.subject, after=options.after, limit=options.limit
            )
        )
    return [json_line(line) for line in found]


def _limit(text: str) -> int:
    return number(text, 1, _MOST_LINES)


def _id(text: str) -> int:
    return number(text, 0, _LAST_ID)
