"""The command `keys` of a server: add a key to the file that callers are verified by, list what is in it, revoke one."""

from __future__ import annotations

import os
import re
import secrets
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from .environment import MissingVariableError, expand
from .identities import identity, is_name
from .key_entries import KeyEntry, key_digest
from .keys_file import KeysFileError, change_keys, read_keys
from .moments import as_text
from .printing import failed, prepare_stdout, printed, table, tell
from .quoting import listed, quoted, shown, shown_path
from .registry import Registry

# 256 bits.
_KEY_BYTES = 32
_AGE = re.compile(r"([1-9][0-9]{0,8})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_ID = re.compile(r"[0-9a-f]{6,64}")
_HEADINGS = ("key", "subject", "account", "scopes", "expires", "label")


class _CommandError(Exception):
    """The command cannot be carried out; the text is a sentence that says why."""


def main(arguments: Sequence[str], registry: Registry) -> int:
    """Carry out `keys` with these arguments, those after the word itself, and return the exit code."""
    prepare_stdout()
    program = registry.server.distribution
    options = _parser(registry).parse_args(arguments)
    try:
        lines: list[str] = options.carry_out(options, _file(options, registry), registry)
    except (_CommandError, KeysFileError, MissingVariableError) as error:
        return failed(program, str(error))
    return printed(lines, program)


def _parser(registry: Registry) -> ArgumentParser:
    parser = ArgumentParser(
        prog=f"{registry.server.distribution} keys",
        description="The keys that callers are verified by. Their file has only SHA-256 digests of them.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    adding = commands.add_parser("add", help="make a key and print it, this one time", allow_abbrev=False)
    adding.add_argument("--subject", type=_name, required=True, metavar="NAME", help="whom the key stands for")
    adding.add_argument("--account", type=_name, metavar="NAME", help="the account that it belongs to; default: none")
    adding.add_argument("--scope", dest="scopes", action="append", default=[], metavar="SCOPE", help="may be repeated")
    adding.add_argument("--expires", type=_age, metavar="AGE", help="such as 30d, 12h or 90m; default: never")
    adding.add_argument("--label", type=_name, metavar="TEXT", help="what tells it from others in the list")
    listing = commands.add_parser("list", help="list the keys, without what they are", allow_abbrev=False)
    revoking = commands.add_parser("revoke", help="take a key out of the file", allow_abbrev=False)
    revoking.add_argument("id", type=_id, metavar="KEY", help="how the list calls it")
    for command, carry_out in ((adding, _add), (listing, _list), (revoking, _revoke)):
        command.add_argument("--file", type=Path, help="the keys file; default: the one of the server")
        command.set_defaults(carry_out=carry_out)
    return parser


def _file(options: Namespace, registry: Registry) -> Path:
    """The keys file. Raises _CommandError, MissingVariableError."""
    if options.file is not None:
        return Path(options.file)
    verify = (registry.access or {}).get("verify") or {}
    if "keys" not in verify:
        raise _CommandError("This server is built without a keys file; name one with --file.")
    return Path(expand(verify["keys"], os.environ))


def _add(options: Namespace, file: Path, registry: Registry) -> list[str]:
    _check_scopes(options.scopes, registry)
    key = secrets.token_urlsafe(_KEY_BYTES)
    known = identity(
        subject=options.subject, account=options.account, scopes=options.scopes or None, expires=options.expires
    )
    entry = KeyEntry(key_digest(key), known, options.expires, options.label)
    change_keys(file, lambda entries: [*entries, entry])
    tell(registry.server.distribution, f"Added {entry.id} to {shown_path(file)}. The key is shown this one time.")
    return [key]


def _list(_options: Namespace, file: Path, _registry: Registry) -> list[str]:
    """The keys as a table, in the order of the file."""
    now = datetime.now(UTC).timestamp()
    return table([_HEADINGS, *(_row(entry, now) for entry in read_keys(file))])


def _row(entry: KeyEntry, now: float) -> tuple[str, ...]:
    known = entry.identity
    over = " (expired)" if known.expires_at is not None and known.expires_at <= now else ""
    cells = (known.subject, known.account, " ".join(sorted(known.scopes)), entry.expires, entry.label)
    subject, account, scopes, expires, label = (shown(cell or "-") for cell in cells)
    return (entry.id, subject, account, scopes, expires + over, label)


def _revoke(options: Namespace, file: Path, registry: Registry) -> list[str]:
    def without(entries: list[KeyEntry]) -> list[KeyEntry]:
        found = [entry for entry in entries if entry.sha256.startswith(options.id)]
        if len(found) != 1:
            raise _CommandError(
                f"{'No key' if not found else 'More than one key'} of {shown_path(file)} begins with {options.id}."
            )
        return [entry for entry in entries if entry is not found[0]]

    change_keys(file, without)
    return [f"Revoked {options.id}. Servers that read {shown_path(file)} take it no more."]


def _check_scopes(scopes: list[str], registry: Registry) -> None:
    declared = list((registry.access or {}).get("scopes") or {})
    if unknown := [scope for scope in scopes if declared and scope not in declared]:
        raise _CommandError(f"There is no scope {quoted(unknown[0])}; there are {listed(declared)}.")


def _name(text: str) -> str:
    if not is_name(text):
        raise ArgumentTypeError("it has to be a text that can be printed, and not too long")
    return text


def _age(text: str) -> str:
    """When something ends that has this age ahead, as RFC 3339 has it."""
    match = _AGE.fullmatch(text)
    try:
        if match is not None:
            end = datetime.now(UTC) + timedelta(**{_UNITS[match[2]]: int(match[1])})
            return as_text(end, "seconds")
    except OverflowError:
        pass  # said below
    raise ArgumentTypeError("it has to be an age such as 30d, 12h or 90m")


def _id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise ArgumentTypeError("it has to be what the list shows, or at least six digits of it")
    return text
