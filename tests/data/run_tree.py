"""A tree of processes for tests, told as JSON; all of them end when the test is gone. Each reports itself in a line."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

REPORTS, LIFE = int(sys.argv[1]), int(sys.argv[2])


def main(node: dict[str, Any]) -> None:
    """Be one process of the tree, having started its children."""
    if not node.get("default"):
        react(node)
    children = [start(child) for child in node.get("children", ())]
    report("is", node)
    if node.get("leaves"):
        os._exit(node.get("code", 0))
    if node.get("multiplies"):
        multiply(node)
    node["pids"] = children
    os.read(LIFE, 1)
    os._exit(0)


def start(node: dict[str, Any]) -> int:
    """Start a child: in a session of its own, or with another environment, if it says so."""
    pid = os.fork()
    if pid:
        return pid
    if node.get("session"):
        os.setsid()
    if "environment" in node:
        words = [sys.executable, *FLAGS, __file__, *sys.argv[1:3], json.dumps(node)]
        os.execve(sys.executable, words, node["environment"])  # noqa: S606 - just this program
    main(node)
    raise AssertionError


def react(node: dict[str, Any]) -> None:
    """Report a SIGTERM, and then do what the node says: stay, dismiss the children first, or just end."""

    def asked(*_: object) -> None:
        report("asked", node)
        if node.get("stays"):
            return
        for pid in node.get("pids", ()) if node.get("dismisses") else ():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os._exit(0)

    signal.signal(signal.SIGTERM, asked)


def multiply(node: dict[str, Any]) -> None:
    """Go on as one's own child, again and again, a bounded number of times."""
    for _ in range(node["multiplies"]):
        if os.fork():
            os._exit(0)


def report(what: str, node: dict[str, Any]) -> None:
    os.write(REPORTS, f"{what} {node['name']} {os.getpid()}\n".encode())


FLAGS = ("-I", "-S")

if __name__ == "__main__":
    main(json.loads(sys.argv[3]))
