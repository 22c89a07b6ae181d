"""What the memory of a governed server holds, such as its keys, is nothing that programs of its user can read there."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from verbc.support import command
from verbc.support.registry import Registry

# What the system lets root read is more; so a user of no files looks, where these tests run as root.
LOOKING = """
import ctypes, os, subprocess
from verbc.support.own_memory import keep_to_itself

prctl = ctypes.CDLL(None).prctl
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    prctl(4, 1, 0, 0, 0)  # as after a start as that user

def look():
    seen = subprocess.run(["/bin/cat", f"/proc/{os.getpid()}/environ"], capture_output=True)
    print(prctl(3, 0, 0, 0, 0), seen.returncode == 0, b"KEY=" in seen.stdout)

look()
keep_to_itself()
look()
print(len(os.listdir("/dev/fd")) > 2, open("/proc/self/stat").read() != "")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /proc")
def test_the_environment_of_a_process_is_kept_from_what_it_starts() -> None:
    looked = subprocess.run(
        [sys.executable, "-c", LOOKING],
        env={"KEY": secrets.token_hex(), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert looked.stdout.splitlines() == ["1 True True", "0 False False", "True True"], looked.stderr


def test_elsewhere_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    from verbc.support.own_memory import keep_to_itself

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setitem(sys.modules, "ctypes", None)
    keep_to_itself()


@pytest.mark.parametrize(
    ("access", "kind", "words", "told"),
    [
        ({"policy": {}}, "gateway", ["policy"], ["kept", "operated"]),
        ({"policy": {}}, "jobs", ["policy"], ["kept", "operated"]),
        ({"policy": {}}, "gateway", [], ["kept", "served"]),
        ({"policy": {}}, "jobs", [], ["served"]),
        (None, "cli", [], ["served"]),
    ],
)
def test_a_governed_package_begins_with_it(
    access: Any, kind: str, words: list[str], told: list[str], registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []

    def operated(*_: Any) -> int:
        happened.append("operated")
        return 0

    modules = {
        "own_memory": SimpleNamespace(keep_to_itself=lambda: happened.append("kept")),
        "operator_command": SimpleNamespace(main=operated),
    }
    given = replace(registry, access=access, backends={"one": {"kind": kind}})
    monkeypatch.setattr(command, "load", lambda _path: given)
    monkeypatch.setattr(command, "_support", modules.__getitem__)
    monkeypatch.setattr(command, "_misgoverned", lambda *_: None)
    monkeypatch.setattr(command, "_serve_stdio", lambda *_: happened.append("served"))
    assert command.main(words) == 0
    assert happened == told
