"""The program of an upstream: found, started in a group of its own with the variables it is to have, and ended as a group.

When this server is killed, the input of the program ends, and programs end with that. One that hangs and does not look
lives on.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from .bounded_work import wait_through
from .child import Child
from .manifest_transport import Stdio
from .upstream_errors import NotStartedError

# How long a program has to end by itself once its input has ended, and again once it is asked to end.
GRACE_SECONDS = 0.5
_USUAL_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin")


@dataclass(frozen=True, slots=True)
class Program:
    """What is to be started."""

    file: str
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    folder: str | None


def usual_folders() -> tuple[str, ...]:
    """Where programs are looked for whose manifest maps no PATH."""
    return (*_USUAL_FOLDERS, str(Path(sys.executable).parent))


def program_of(stdio: Stdio, variables: Mapping[str, str]) -> Program:
    """The program of a manifest, with the values of its variables and a PATH. Raises NotStartedError."""
    path = variables.get("PATH") or ":".join(usual_folders())
    found = shutil.which(stdio.command, path=path)
    if found is None:
        raise NotStartedError("McpCommandNotFound")
    # Seen from the server's folder, and not from the one that the program works in.
    return Program(
        os.path.abspath(found), (stdio.command, *stdio.args), {**variables, "PATH": path}, _folder(stdio.cwd)
    )


async def start(program: Program, child: Child) -> None:
    """Start a program, with pipes. Raises NotStartedError; a cancellation that comes meanwhile leaves no process."""
    try:
        cancelled = await child.start(
            [word.encode() for word in program.argv],  # UTF-8, whatever the locale of the server
            stdin=subprocess.PIPE,
            env=program.environment,
            executable=program.file,
            cwd=program.folder,
        )
    except (OSError, ValueError):
        raise NotStartedError("McpStartFailed") from None
    if cancelled:
        await end(child, patient=False)
        raise asyncio.CancelledError


async def end(child: Child, *, patient: bool = True) -> None:
    """End a program, and whatever is left of its group then.

    It has a grace, and then another one, unless this is cancelled or not `patient`.
    """
    input_of(child).close()
    cancelled = patient and await _graces(child)
    child.signal_group(signal.SIGKILL)
    await child.release(cancelled=cancelled)


def input_of(child: Child) -> asyncio.WriteTransport:
    """What a program reads from."""
    return cast("asyncio.WriteTransport", child.transport.get_pipe_transport(0))


async def _graces(child: Child) -> bool:
    """Wait for a program to end, ask it to, and wait again; true: a cancellation cut that short."""
    if await wait_through(child.exited, GRACE_SECONDS, hasty=True):
        return True
    if not child.exited.done():
        child.signal_group(signal.SIGTERM)
    return await wait_through(child.exited, GRACE_SECONDS, hasty=True)


def _folder(cwd: str | None) -> str | None:
    if cwd is None:
        return None
    here = Path.cwd().resolve()
    folder = (here / cwd).resolve()
    if not folder.is_relative_to(here) or not folder.is_dir():
        raise NotStartedError("McpWorkingFolder")
    return str(folder)
