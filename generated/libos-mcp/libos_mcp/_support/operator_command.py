"""The commands of an operator: decide approvals, read the audit, change what is registered, look after the policy."""

from __future__ import annotations

import signal
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from .operator_access import CommandError
from .policy_file import PolicyFileError
from .printing import failed, prepare_stdout, printed
from .registry import Registry

# What a shell gives for a program that Ctrl-C has ended.
_INTERRUPTED: Final = 128 + signal.SIGINT


def main(words: Sequence[str], registry: Registry) -> int:
    """Carry out what `words` say, and return the exit code. The first one is `approvals`, `audit`, `policy` or `servers`.

    For each there is a module beside this one, so a package carries those that it has a use for.
    """
    prepare_stdout()
    program = registry.server.distribution
    word = words[0]
    command = import_module(f"{__package__}.{word}_command")
    parser = ArgumentParser(prog=f"{program} {word}", description=command.DESCRIPTION, allow_abbrev=False)
    command.add_arguments(parser)
    options = parser.parse_args(words[1:])
    try:
        return printed(options.carry_out(options, registry), program)
    except (CommandError, PolicyFileError) as error:
        return failed(program, str(error))
    except KeyboardInterrupt:
        return _INTERRUPTED
