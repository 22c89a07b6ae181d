"""The command `policy`: make a key for an operator, and check a policy file before a server has to rely on it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from .operator_keys import new_key
from .policy_file import read_policy
from .printing import tell
from .quoting import quoted, shown_path
from .registry import Registry
from .right_forms import is_needed

DESCRIPTION: Final = "The policy file, and the keys of operators in it."


def add_arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    making = commands.add_parser("key", help="make an operator key and print it, this one time", allow_abbrev=False)
    making.set_defaults(carry_out=_key)
    checking = commands.add_parser("check", help="say whether a policy file can be used", allow_abbrev=False)
    checking.add_argument("file", type=Path, metavar="FILE", help="the policy file")
    checking.set_defaults(carry_out=_check)


def _key(_options: Namespace, registry: Registry) -> list[str]:
    key, digest = new_key()
    tell(
        registry.server.distribution,
        f'The key is shown this one time; the policy file knows it by this line:\noperator_keys: ["{digest}"]',
    )
    return [key]


def _check(options: Namespace, registry: Registry) -> list[str]:
    found = read_policy(options.file)
    for subject, grant in _idle(found.subjects, registry):
        # It may be for a version that is to come, or it is a slip, and then a deny of it keeps nobody off.
        tell(
            registry.server.distribution, f"No call of this server needs {quoted(grant)}, which {quoted(subject)} has."
        )
    subjects, keys = _counted(len(found.subjects), "subject"), _counted(len(found.operator_keys), "operator key")
    return [f"The policy file {shown_path(options.file)} can be used; it has {subjects} and {keys}."]


def _idle(subjects: Mapping[str, Any], registry: Registry) -> Iterator[tuple[str, str]]:
    """Grants, each with its subject, that nothing here can need."""
    required = frozenset(right for verb in registry.verbs for right in verb.requires)
    for subject, rows in subjects.items():
        for grant in (*rows["allow"], *(row["right"] for row in rows["ask"]), *rows["deny"]):
            if not is_needed(grant, required):
                yield subject, grant


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
