"""What starts programs for tests: it has loaded the libraries that they stand on, and each of them is a fork of it.

python warm_parent.py <descriptor of a socket>     takes one order after the other, until nobody is left to give any. An
order is an object of JSON with what to run, and comes with the three standard files of the program and a socket: there its
process id is told, then its exit code. Its id is nobody else's until the other side has closed its half of the socket.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

LIBRARIES = (
    "cryptography.hazmat.primitives.ciphers.aead",
    "mcp.server",
    "mcp.server.streamable_http_manager",
    "httpx2",
    "jsonschema_rs",
    "psycopg",
    "sqlalchemy",
    "uvicorn.protocols.http.h11_impl",
    "yaml",
)
LONGEST_ORDER = 1 << 20  # bytes
FIRST_OF_NOBODY = 3  # the first descriptor that a program does not know of
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

Order = dict[str, Any]


def next_order(orders: socket.socket) -> Order | None:
    """In a process that is to be a program: what it is; None when there are no more orders."""
    while True:
        text, descriptors, _, _ = socket.recv_fds(orders, LONGEST_ORDER, 4)
        if not text:
            return None
        if os.fork() == 0:
            orders.close()
            return started(json.loads(text), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def started(order: Order, stdin: int, stdout: int, stderr: int, telling: int) -> Order:
    """Start the program, which this returns in; the process that has called it waits for its end, and ends itself."""
    program = os.fork()
    if program == 0:
        for number, descriptor in enumerate((stdin, stdout, stderr)):
            os.dup2(descriptor, number)
        os.closerange(FIRST_OF_NOBODY, max(stdin, stdout, stderr, telling) + 1)
        return order
    for descriptor in (stdin, stdout, stderr):
        os.close(descriptor)
    told = socket.socket(fileno=telling)
    with suppress(ConnectionError):
        told.send(b"%d" % program)
        end = os.waitid(os.P_PID, program, os.WEXITED | os.WNOWAIT)
        assert end is not None
        told.send(b"%d" % (end.si_status if end.si_code == os.CLD_EXITED else -end.si_status))
        told.recv(1)  # nothing, once that was heard
    os.waitpid(program, 0)
    os._exit(0)  # which closes the socket, too


def become(order: Order, paths: list[str]) -> None:
    """Be the program, as if Python had been started with these arguments: `-m` and a module, or a file."""
    if order["session"]:
        os.setsid()
    for number in SIGNALS:
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in order["ignored"] else usual)
    sys.stdin = sys.__stdin__ = os.fdopen(0, "r", -1, sys.stdin.encoding, sys.stdin.errors, closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", -1, sys.stdout.encoding, sys.stdout.errors, closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", 1, sys.stderr.encoding, sys.stderr.errors, closefd=False)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    option, *rest = order["arguments"]
    place = os.getcwd() if option == "-m" else os.path.dirname(option)
    sys.path[:] = [place, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), *paths]
    if option == "-m":
        sys.argv[:] = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = order["arguments"]
        runpy.run_path(option, run_name="__main__")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever gives the orders ends then, and so does this
    for library in LIBRARIES:
        importlib.import_module(library)
    gc.freeze()
    own_paths = sys.path[1:]
    if (own_order := next_order(socket.socket(fileno=int(sys.argv[1])))) is not None:
        become(own_order, own_paths)
