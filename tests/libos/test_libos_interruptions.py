"""A command that is told to end while a server is asked for its tools: it says so, and leaves nothing running."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from subprocess import PIPE, Popen

import pytest

from .manifests import manifest
from .places import Place
from .processes import KEY_VARIABLE, PROGRAM
from .scripted import PATIENCE, Scripted, poll


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("words", [["diff"], ["pin", "--yes"]])
def test_a_look_at_a_server_is_broken_off_in_order(
    words: list[str], number: signal.Signals, own_place: Place, own_upstream: Scripted
) -> None:
    own_place.add(manifest(own_upstream, timeout_s=60))
    own_upstream.forget()
    own_upstream.tell(deeds={"tools/list": "hang"}, stays=True)
    command = Popen(
        [sys.executable, *PROGRAM, "servers", words[0], "calendar", *words[1:], *own_place.words],
        env={**own_place.variables, KEY_VARIABLE: own_place.key},
        cwd=own_place.folder,
        stdout=PIPE,
        stderr=PIPE,
        text=True,
    )
    try:
        own_upstream.wait_for("list")
        (started,) = own_upstream.events("start")
        command.send_signal(number)
        printed, errors = command.communicate(timeout=PATIENCE)
    finally:
        command.kill()
        command.wait()
    assert command.returncode == 1
    assert errors == "libos-mcp: The look at `calendar` was broken off.\n"
    assert "generation" not in printed
    poll(lambda: not is_there(started["pid"]), "the end of the upstream")


def is_there(pid: int) -> bool:
    """Whether a process is there; one that only waits to be reaped counts."""
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
