#!/usr/bin/env python3
"""An upstream over stdio that does what a script tells it, well-behaved where the script says nothing.

The script is JSON, the only argument: for `start`, each method and `end` a list of steps, and where to report its life.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from typing import Any

COMMAND = (sys.executable, "-I", "-S", __file__)

ECHO = {"name": "echo", "description": "Says it again.", "inputSchema": {"type": "object"}}


class Program:
    """One run."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.script = script
        self.heard: list[str] = []  # methods of requests and notifications
        self.answers: list[Any] = []  # to requests of its own
        self.calls: list[int] = []
        self.life: socket.socket | None = None
        self.request: dict[str, Any] = {}

    def run(self) -> None:
        if "port" in self.script:
            self.life = socket.create_connection(("127.0.0.1", self.script["port"]))
            self.life.sendall(b"%d\n" % os.getpid())
        self.steps("start", [])
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if "method" not in message:
                self.answers.append(message)
                continue
            self.heard.append(message["method"])
            if "id" in message:
                self.request = message
                self.steps(message["method"], [{"usual": True}])
        self.steps("end", [])

    def steps(self, moment: str, usual: list[Any]) -> None:
        found = self.script.get(moment, usual)
        if found and isinstance(found[0], list):  # one list of steps for each time, the last one over and over
            found = found.pop(0) if len(found) > 1 else found[0]
        for step in found:
            ((word, value),) = step.items()
            getattr(self, word)(value)

    def usual(self, _value: Any) -> None:
        params = self.request["params"]
        match self.request["method"]:
            case "initialize":
                self.reply(
                    {
                        "protocolVersion": self.script.get("revision", params["protocolVersion"]),
                        "capabilities": {"tools": {}},
                        "serverInfo": {"name": "stub", "version": "1"},
                    }
                )
            case "tools/list":
                self.reply({"tools": [ECHO]})
            case _:
                seen = {
                    "arguments": params["arguments"],
                    "answers": self.answers,
                    "cwd": os.getcwd(),
                    "environment": dict(os.environ),
                    "heard": self.heard,
                    "leads": os.getpid() == os.getsid(0),
                    "pid": os.getpid(),
                }
                self.reply({"content": [{"type": "text", "text": "done"}], "structuredContent": seen})

    def reply(self, result: Any) -> None:
        self.say({"jsonrpc": "2.0", "id": self.request["id"], "result": result})

    def error(self, error: Any) -> None:
        self.say({"jsonrpc": "2.0", "id": self.request["id"], "error": error})

    def say(self, message: Any) -> None:
        self.text(json.dumps(message, separators=(",", ":")) + "\n")

    def text(self, text: str) -> None:
        os.write(1, text.encode("utf-8", "surrogateescape"))

    def page(self, page: dict[str, Any]) -> None:
        """A page of a list of so many, with one tool on each."""
        number = int(self.request["params"].get("cursor", "0"))
        following = {"nextCursor": str(number + 1)} if number + 1 < page["of"] else {}
        self.reply({"tools": [{**ECHO, "name": f"echo{number}"}], **following})

    def flood(self, flood: dict[str, Any]) -> None:
        piece = flood["piece"].encode() * 1024
        while True:
            os.write(flood["descriptor"], piece)

    def noise(self, size: int) -> None:
        for _ in range(size // 1024):
            os.write(2, b"x" * 1024)

    def stop(self, code: int) -> None:
        os._exit(code)

    def hang(self, _value: Any) -> None:
        """Wait for nothing, whatever becomes of the input."""
        while True:
            signal.pause()

    def stubborn(self, _value: Any) -> None:
        """Have a child in the same group; both take no notice of what asks them to end."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.fork()

    def offspring(self, _value: Any) -> None:
        """Have a child in the same group, which waits for nothing, and has no pipe of ours."""
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            self.hang(None)

    def shut(self, descriptor: int) -> None:
        os.close(descriptor)


if __name__ == "__main__":
    Program(json.loads(sys.argv[1])).run()
