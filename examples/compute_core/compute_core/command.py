"""The command line: serving, and what only whoever has the file may do. The one module that prints."""

import argparse
import re
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from .accounts import (
    SCOPES,
    Caller,
    KnownKeyError,
    UnknownAccountError,
    add_account,
    add_key,
    new_key,
    revoke_keys,
    sha256_of,
)
from .clock import system_clock
from .core import Settings
from .serving import listening_socket, serve
from .store import Store, StoreError

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say; the exit code: 0, 1 with a problem, 2 for wrong usage (which argparse exits with)."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except (OSError, sqlite3.Error, StoreError) as error:
        return _problem(str(error))
    return code


def _serve(options: argparse.Namespace) -> int:
    Store(options.db).close()  # says here, once, when there is no using it
    listener = listening_socket(options.host, options.port)
    host, port = listener.getsockname()[:2]
    print(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}", flush=True)
    settings = Settings(options.db.absolute(), options.quote_lifetime, options.job_seconds)
    serve(settings, listener, options.workers)
    return 0


def _add_account(options: argparse.Namespace) -> int:
    with closing(Store(options.db)) as store, store.write() as db:
        account = add_account(db, options.policy, system_clock())
    print(account)
    return 0


def _add_key(options: argparse.Namespace) -> int:
    now = system_clock()
    key = None if options.sha256 else new_key()
    expires_at = None if options.lifetime is None else now + options.lifetime
    caller = Caller(options.subject, options.account, frozenset(options.scope), expires_at)
    try:
        with closing(Store(options.db)) as store, store.write() as db:
            add_key(db, sha256_of(key) if key else options.sha256, caller, now)
    except UnknownAccountError:
        return _problem(f'there is no account "{options.account}"')
    except KnownKeyError:
        return _problem("a key with this SHA-256 is there already")
    if key:
        print(key)
        print("This is the only time that the key is shown.", file=sys.stderr)
    return 0


def _revoke_keys(options: argparse.Namespace) -> int:
    with closing(Store(options.db)) as store, store.write() as db:
        count = revoke_keys(db, options.account, options.subject)
    print(count)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "compute-core", description="A small compute service over REST.", allow_abbrev=False
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _describe_serve(commands.add_parser("serve", help="serve over HTTP; the address is the first line of the output"))
    accounts = commands.add_parser("accounts", help="the accounts of a file").add_subparsers(required=True)
    _describe_add_account(accounts.add_parser("add", help="make an account; prints its id"))
    keys = commands.add_parser("keys", help="the bearer keys of an account").add_subparsers(required=True)
    _describe_add_key(keys.add_parser("add", help="make a key; prints it, this once"))
    _describe_revoke_keys(keys.add_parser("revoke", help="end the keys of a subject; prints how many there were"))
    return parser


def _describe_serve(parser: argparse.ArgumentParser) -> None:
    _describe_file(parser)
    parser.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1")
    parser.add_argument("--port", type=int, default=7070, help="default: 7070; 0 takes a free one")
    parser.add_argument(
        "--workers", type=int, default=1, choices=range(1, 65), metavar="N", help="processes; default: 1"
    )
    parser.add_argument("--quote-lifetime", type=_lifetime, default=900, help="such as 30s or 2h; default: 15m")
    parser.add_argument(
        "--job-seconds", type=_job_seconds, default=0.0, help="how long a job takes at least; default: 0"
    )
    parser.set_defaults(run=_serve)


def _describe_add_account(parser: argparse.ArgumentParser) -> None:
    _describe_file(parser)
    parser.add_argument(
        "--policy",
        choices=("approve", "open"),
        default="approve",
        help="whether quotes are approved first; default: approve",
    )
    parser.set_defaults(run=_add_account)


def _describe_add_key(parser: argparse.ArgumentParser) -> None:
    _describe_owner(parser)
    parser.add_argument(
        "--scope", action="append", default=[], choices=SCOPES, help="what it may do; repeat it for more"
    )
    parser.add_argument(
        "--lifetime", type=_lifetime_or_none, default="90d", help="such as 12h or 30d, or never; default: 90d"
    )
    parser.add_argument("--sha256", type=_sha256, help="take a key that was made elsewhere, by its SHA-256 in hex")
    parser.set_defaults(run=_add_key)


def _describe_revoke_keys(parser: argparse.ArgumentParser) -> None:
    _describe_owner(parser)
    parser.set_defaults(run=_revoke_keys)


def _describe_owner(parser: argparse.ArgumentParser) -> None:
    _describe_file(parser)
    parser.add_argument("--account", required=True, help="id of the account")
    parser.add_argument("--subject", required=True, type=_subject, help="who has the key")


def _describe_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--db", required=True, type=Path, metavar="FILE", help="the SQLite file; made if it is not there"
    )


def _lifetime(text: str) -> int:
    found = re.fullmatch("([1-9][0-9]{0,6})([smhd])", text)
    if found is None:
        raise argparse.ArgumentTypeError("should be a number and s, m, h or d, such as 15m")
    return int(found[1]) * _SECONDS[found[2]]


def _lifetime_or_none(text: str) -> int | None:
    return None if text == "never" else _lifetime(text)


def _job_seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= 3600:
        raise argparse.ArgumentTypeError("should be between 0 and 3600")
    return seconds


def _subject(text: str) -> str:
    if not re.fullmatch("[A-Za-z0-9._@-]{1,100}", text):
        raise argparse.ArgumentTypeError("should be at most 100 letters, digits, dots, dashes, underscores, at signs")
    return text


def _sha256(text: str) -> str:
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise argparse.ArgumentTypeError("should be 64 hex digits, in lower case")
    return text


def _problem(text: str) -> int:
    print(f"compute-core: {text}", file=sys.stderr)
    return 1
