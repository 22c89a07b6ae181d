"""Who may carry out the commands of an operator: whoever has a key that the policy file knows, and shows it each time."""

from __future__ import annotations

import os
import warnings
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .operator_keys import is_operator, operator_name
from .own_variables import operator_key_variable
from .policy_file import read_policy
from .quoting import shown_path
from .registry import Registry

if TYPE_CHECKING:
    from .store import Store


# The modules of the tables that every governed server keeps.
GOVERNANCE: Final = ("governance_tables",)


class CommandError(Exception):
    """A command cannot be carried out; the text is a sentence that says why."""


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator who has shown a key, and what a server keeps."""

    name: str  # what the record calls this operator
    registry: Registry
    store: Store


def add_options(parser: ArgumentParser) -> None:
    """The options that all commands of an operator have."""
    # Without defaults, so that they can stand on either side of a further word.
    parser.add_argument("--policy", type=Path, metavar="FILE", default=SUPPRESS, help="the policy file of the server")
    parser.add_argument("--state", type=Path, metavar="DIR", default=SUPPRESS, help="folder that the server keeps")
    parser.add_argument("--store", metavar="URL", default=SUPPRESS, help="database that the server keeps all in")


@contextmanager
def operating(registry: Registry, options: Namespace, components: Sequence[str]) -> Iterator[Operator]:
    """The operator who calls, with the store open for the length of the command; `components` are modules of tables.

    Raises CommandError, PolicyFileError.
    """
    name = checked_operator(registry, getattr(options, "policy", None), os.environ)
    # All that needs the database is loaded once it is known that somebody may use it.
    from .state_folder import StateFolderError
    from .state_store import StateStore
    from .store import StoreError

    state, url = getattr(options, "state", None), getattr(options, "store", None)
    try:
        store = StateStore(registry, components, state=state, url=url).store()
        try:
            _sweep(store)
            yield Operator(name, registry, store)
        finally:
            store.close()
    except (StateFolderError, StoreError) as error:
        raise CommandError(str(error)) from None


def _sweep(store: Store) -> None:
    """Wipe the arguments of what nobody has decided in time: no server need be running that would see to it."""
    from . import approvals

    now = datetime.now(UTC)
    if store.read(lambda connection: approvals.any_over(connection, now)):
        store.write("sweep", lambda connection: approvals.sweep(connection, now))


def checked_operator(registry: Registry, policy: Path | None, environ: Mapping[str, str]) -> str:
    """What the record calls the operator whose key is in the environment, or typed on the terminal.

    Raises CommandError where it is none that the policy file knows, and PolicyFileError.
    """
    if policy is None:
        raise CommandError(
            "This needs the policy file of the server, which has the keys of operators; name it with --policy."
        )
    known = read_policy(policy).operator_keys
    if not known:
        raise CommandError(f"The policy file {shown_path(policy)} has no `operator_keys`; `policy key` makes one.")
    variable = operator_key_variable(registry.server.package)
    key = environ.get(variable) or _typed_key(variable)
    if not is_operator(key, known):
        raise CommandError(f"The operator key is none of those in the policy file {shown_path(policy)}.")
    return operator_name(key)


def _typed_key(variable: str) -> str:
    """The key as it is typed on the terminal, which does not show it."""
    from getpass import GetPassWarning, getpass

    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
        with warnings.catch_warnings():
            warnings.simplefilter("error", GetPassWarning)  # rather than show what is typed
            return getpass("Operator key: ")
    except (OSError, GetPassWarning):
        raise CommandError(f"There is no terminal to type the operator key on; give it in {variable}.") from None
    except (EOFError, KeyboardInterrupt):
        raise CommandError("No operator key was typed.") from None
