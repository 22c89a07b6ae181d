#!/usr/bin/env python3
"""A stand-in for the `li` command line that speaks its `--machine` contract and misbehaves as it is told.

Everything is said by environment variables, so that a server between the test and this program changes nothing:

LIONAGI_STUB_ARGV       a file; each run appends its arguments to it, one JSON array a line
LIONAGI_STUB_MODE       what every command but `handshake` does, one of MODES below; `ok` without it
LIONAGI_STUB_HANDSHAKE  the same for `handshake`
LIONAGI_STUB_DATA       JSON that is the data of a result; without it the arguments are
LIONAGI_STUB_KIND       the kind of a refusal; `conflict` without it
LIONAGI_STUB_EXIT       the exit code, in every mode that comes to an end; 0 without it
LIONAGI_STUB_STDERR     a text for stderr
LIONAGI_STUB_VERSION    the version of the implementation; 0.36.0 without it
LIONAGI_STUB_CONTRACT   the version of the contract, JSON; 1 without it
LIONAGI_STUB_PORT       a port of this machine; `hang`, `family` and `flood` connect to it, say the process id
                        of the leader, and hold the connection until the last of them is killed
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any


def setting(name: str, default: str) -> str:
    return os.environ.get("LIONAGI_STUB_" + name, default)


def envelope(**members: Any) -> dict[str, Any]:
    return {
        "ok": True,
        "contract_version": json.loads(setting("CONTRACT", "1")),
        "data": None,
        "error": None,
        **members,
    }


def result() -> dict[str, Any]:
    if sys.argv[1:2] == ["handshake"]:
        return envelope(data=handshake())
    data = os.environ.get("LIONAGI_STUB_DATA")
    return envelope(data={"argv": sys.argv[1:]} if data is None else json.loads(data))


def handshake() -> dict[str, Any]:
    contract = json.loads(setting("CONTRACT", "1"))
    return {
        "contract_version": contract,
        "min_supported_version": contract,
        "implementation": "lionagi",
        "implementation_version": setting("VERSION", "0.36.0"),
        "module": "lionagi",
        "code_identity": {"git": None},
    }


def refusal(kind: str) -> dict[str, Any]:
    error = {"kind": kind, "message": "The stub was told to refuse.", "detail": {"stub": True}}
    return envelope(ok=False, error=error)


def without(document: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in names}


def write(*documents: Any) -> None:
    for document in documents:
        sys.stdout.write(json.dumps(document) + "\n")


def connection(leader: int = 0) -> socket.socket | None:
    if (port := setting("PORT", "")) == "":
        return None
    made = socket.create_connection(("127.0.0.1", int(port)))
    made.sendall(b"%d\n" % (leader or os.getpid()))
    return made


def stay(held: socket.socket | None) -> None:
    """Do nothing until killed, or until the test is gone."""
    if held is None:
        signal.pause()
    else:
        held.recv(1)


def hang() -> None:
    """Stay until killed; SIGTERM is not enough."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    stay(connection())


def family() -> None:
    """Two processes that stay until both are killed."""
    leader = os.getpid()
    if os.fork():
        os.wait()
    else:
        stay(connection(leader))


def flood() -> None:
    held = connection()
    while held is None or held.fileno() >= 0:
        sys.stdout.write("x" * 65536)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


MODES: dict[str, Callable[[], None]] = {
    "ok": lambda: write(result()),
    "refuse": lambda: write(refusal(setting("KIND", "conflict"))),
    "bogus-kind": lambda: write(refusal("weird_kind")),
    "no-error": lambda: write(envelope(ok=False)),
    "no-data": lambda: write(without(result(), "data")),
    "no-ok": lambda: write(without(result(), "ok")),
    "no-contract": lambda: write(without(result(), "contract_version")),
    "no-object": lambda: write([result()]),
    "not-json": lambda: write_text("usage: li [-h] command\n"),
    "two-lines": lambda: write(result(), result()),
    "nan": lambda: write(envelope(data=float("nan"))),
    "infinity": lambda: write(envelope(data=[float("-inf")])),
    "twice": lambda: write_text('{"ok": false, "ok": true, "contract_version": 1, "data": 1}\n'),
    "surrogate": lambda: write(envelope(data="\ud800")),
    "deep": lambda: write_text("[" * 100_000 + "]" * 100_000),
    "empty": lambda: None,
    "hang": hang,
    "family": family,
    "flood": flood,
    "die": die,
}


def write_text(text: str) -> None:
    sys.stdout.write(text)


def record() -> None:
    if (path := setting("ARGV", "")) != "":
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(sys.argv[1:]) + "\n")


def main() -> None:
    record()
    sys.stderr.write(setting("STDERR", ""))
    variable = "HANDSHAKE" if sys.argv[1:2] == ["handshake"] else "MODE"
    MODES[setting(variable, "ok")]()
    sys.exit(int(setting("EXIT", "0")) if variable == "MODE" else 0)


if __name__ == "__main__":
    main()
