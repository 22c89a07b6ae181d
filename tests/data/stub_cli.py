#!/usr/bin/env python3
"""A command line for tests: the first word says how it behaves, options say the rest; unknown words are ignored."""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys


def report(port: int, leader: int = 0) -> socket.socket:
    """Tell the test that this process lives; the connection ends with the last process that holds it."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(b"%d\n" % (leader or os.getpid()))
    return connection


def stay(connection: socket.socket) -> None:
    """Do nothing until killed, or until the test is gone."""
    connection.recv(1)


def echo(_options: argparse.Namespace) -> None:
    sys.stdout.write(json.dumps(sys.argv[1:]))


def environment(_options: argparse.Namespace) -> None:
    sys.stdout.write(json.dumps(dict(os.environ)))


def circumstances(_options: argparse.Namespace) -> None:
    descriptors = sorted(int(name) for name in os.listdir("/dev/fd"))
    sys.stdout.write(
        json.dumps({"stdin": sys.stdin.read(), "leads": os.getpid() == os.getsid(0), "descriptors": descriptors})
    )


def say(options: argparse.Namespace) -> None:
    sys.stderr.write(options.stderr)
    sys.stdout.write(options.text)


def flood(options: argparse.Namespace) -> None:
    with report(options.port):
        while True:
            sys.stdout.write("x" * 65536)


def noisy(_options: argparse.Namespace) -> None:
    sys.stderr.write("é" * 1_000_000 + "the end")
    sys.stdout.write('"done"\n')


def hang(options: argparse.Namespace) -> None:
    stay(report(options.port))


def stubborn(options: argparse.Namespace) -> None:
    """Two processes that nothing but SIGKILL ends."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    leader = os.getpid()
    if os.fork():
        os.wait()
    else:
        stay(report(options.port, leader))


def leave(options: argparse.Namespace) -> None:
    """End at once, but leave a process behind that keeps stdout and stderr open."""
    connection = report(options.port)
    if os.fork() == 0:
        stay(connection)
        os._exit(0)
    say(options)


def die(options: argparse.Namespace) -> None:
    sys.stdout.write(options.text)
    sys.stdout.flush()
    os.kill(os.getpid(), options.signal)


def version(options: argparse.Namespace) -> None:
    """Say a version, or, as long as the file `broken` is there, fail; each question leaves a byte in `asked`."""
    with open(os.environ["STUB_ASKED"], "ab") as asked:
        asked.write(b".")
    if os.path.exists(os.environ["STUB_ASKED"] + ".broken"):
        sys.exit("no answer today")
    sys.stdout.write(json.dumps({"data": {"version": os.environ["STUB_VERSION"]}}))


MODES = (echo, environment, circumstances, say, flood, noisy, hang, stubborn, leave, die, version)


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("mode")
    parser.add_argument("--text", default="")
    parser.add_argument("--stderr", default="")
    parser.add_argument("--exit", type=int, default=0)
    parser.add_argument("--port", type=int)
    parser.add_argument("--signal", type=int, default=signal.SIGKILL)
    options, _ = parser.parse_known_args()
    {mode.__name__: mode for mode in MODES}[options.mode](options)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(options.exit)


if __name__ == "__main__":
    main()
