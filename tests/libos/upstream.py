"""An upstream that does as it is told: `python -I -S upstream.py FOLDER` serves MCP over its stdin and stdout.

Before each message it reads `script` in the folder, an object of JSON; what happens is noted in `events`, a line each:
`start`, `initialize`, `list`, `page`, `call`, `entered`, `left`, `answered` and `end`. A script has, all optional,

    tools    what `tools/list` gives; by default none
    page     how many tools a page has
    endless  every page names a next one
    results  results of `tools/call` by name; by default one that tells the arguments
    deeds    what to do in place of an answer, by method, or by `start`
    hold     by method: a file; until it is there, nothing is answered
    meet     how many calls have to be inside before any is answered; `meeting` is the folder they meet in
    asks     requests of its own, sent before a call is answered
    reads    by tool: a variable whose value is in the answer of a call
    stays    it leaves neither at the end of its input nor when it is told to end
    reply    what the reply to a method is, in place of a right one; `$id` in it is the id of the request

This runs without any package, so that starting it takes next to no time.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

PATIENCE = 60.0  # seconds; a script that holds longer is a fault
POLL = 0.002
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
FLOOD = 1 << 16  # bytes at a time


class Deed(Exception):  # noqa: N818 - it is an order
    """What the transport is to do in place of an answer: one word."""


class Upstream:
    """What is said to each message, whatever it came by."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def note(self, what: str, **more: Any) -> None:
        """Add a line to the events; lines of several processes do not mix."""
        line = json.dumps({"what": what, "pid": os.getpid(), **more}).encode() + b"\n"
        descriptor = os.open(self.folder / "events", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    @property
    def script(self) -> Json:
        script = json.loads((self.folder / "script").read_bytes())
        assert isinstance(script, dict)
        return script

    def obey(self, moment: str) -> None:
        """Raises Deed when the script has one for this moment."""
        if deed := self.script.get("deeds", {}).get(moment):
            raise Deed(deed)

    def reply(self, message: Json) -> Json | None:
        """The reply to a request, None to everything else. Raises Deed."""
        method = message.get("method")
        if method is None:
            self.note("answered", message=message)
        if method is None or "id" not in message:
            return None
        replied = {"jsonrpc": "2.0", "id": message["id"]}
        params = message.get("params") or {}
        result = self._result(method, params)
        if (other := self.script.get("reply", {}).get(method)) is not None:
            text = json.dumps(other).replace('"$id"', json.dumps(message["id"]))
            given = json.loads(text)
            return dict(given) if isinstance(given, dict) else {"given": given}
        if result is None:
            return {**replied, "error": {"code": -32601, "message": "There is no such method."}}
        return {**replied, "result": result}

    def _result(self, method: str, params: Json) -> Json | None:
        if method == "initialize":
            return self._initialize(params)
        if method == "tools/list":
            return self._list(params.get("cursor"))
        if method == "tools/call":
            return self._call(str(params.get("name")), params.get("arguments"))
        return {} if method == "ping" else None

    def _initialize(self, params: Json) -> Json:
        self.note("initialize", params=params)
        self._hold("initialize")
        self.obey("initialize")
        offered = params.get("protocolVersion")
        version = self.script.get("version") or (offered if offered in VERSIONS else VERSIONS[0])
        return {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "scripted", "version": "1"},
        }

    def _list(self, cursor: str | None) -> Json:
        self.note("page" if cursor else "list")
        self._hold("tools/list")
        self.obey("tools/list")
        script = self.script
        tools, page = script.get("tools", []), script.get("page")
        first = int(cursor or 0)
        after = first + page if page else len(tools)
        listed: Json = {"tools": tools[first:after]}
        if after < len(tools) or script.get("endless"):
            listed["nextCursor"] = str(after)
        return listed

    def _call(self, name: str, arguments: Any) -> Json:
        self.note("call", name=name, arguments=arguments)
        self.note("entered", name=name)
        self._meet()
        self._hold("tools/call")
        self.obey("tools/call")
        self.note("left", name=name)
        script = self.script
        if (variable := script.get("reads", {}).get(name)) is not None:
            return {"content": [{"type": "text", "text": f"its length is {len(os.environ[variable])}"}]}
        told = script.get("results", {}).get(name)
        if told is not None:
            return dict(told)
        structured = {"tool": name, "arguments": arguments}
        return {
            "content": [{"type": "text", "text": json.dumps(structured)}],
            "structuredContent": structured,
            "isError": False,
        }

    def _hold(self, method: str) -> None:
        name = self.script.get("hold", {}).get(method)
        give_up = time.monotonic() + PATIENCE
        while name is not None and not (self.folder / name).exists():
            assert time.monotonic() < give_up
            time.sleep(POLL)

    def _meet(self) -> None:
        script = self.script
        if not (parties := script.get("meet")):
            return
        folder = Path(script["meeting"])
        (folder / f"{os.getpid()}-{time.monotonic_ns()}").touch()
        give_up = time.monotonic() + PATIENCE
        while len(os.listdir(folder)) < parties:
            assert time.monotonic() < give_up
            time.sleep(POLL)


def noise(deed: str) -> bytes:
    """What goes out in place of a message."""
    kind, _, rest = deed.partition(" ")
    return {
        "garbage": b"this is no JSON\n",
        "binary": bytes(range(256)) + b"\n",
        "array": b"[1, 2, 3]\n",
        "say": rest.encode() + b"\n",
    }[kind]


def flood(descriptor: int, *, lines: bool) -> None:
    """Write without an end, until nobody reads."""
    piece = (b"x" * 100 + b"\n") * (FLOOD // 101) if lines else b"x" * FLOOD
    while True:
        os.write(descriptor, piece)


def do(deed: str) -> None:
    """What a program can do other than to answer."""
    kind, _, rest = deed.partition(" ")
    if kind == "die":
        sys.stderr.write(rest + "\n")
        sys.stderr.flush()
        os._exit(3)
    if kind == "hang":
        while True:
            time.sleep(PATIENCE)
    if kind == "frame":
        flood(1, lines=False)
    if kind == "stdout":
        notice = b'{"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "%s"}}\n' % (b"x" * 900)
        while True:
            os.write(1, notice)
    if kind == "stderr":
        flood(2, lines=True)
    os.write(1, noise(deed))


def main() -> None:
    upstream = Upstream(Path(sys.argv[1]))
    if upstream.script.get("stays"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    upstream.note("start", env=dict(os.environ), cwd=os.getcwd(), arguments=sys.argv[1:])
    try:
        upstream.obey("start")
    except Deed as deed:
        do(str(deed))
    for line in sys.stdin.buffer:
        message = json.loads(line)
        try:
            if message.get("method") == "tools/call":
                for asked in upstream.script.get("asks", []):
                    os.write(1, json.dumps({"jsonrpc": "2.0", **asked}).encode() + b"\n")
            reply = upstream.reply(message)
        except Deed as deed:
            do(str(deed))
            continue
        if reply is not None:
            os.write(1, json.dumps(reply).encode() + b"\n")
    upstream.note("end")
    while upstream.script.get("stays"):
        time.sleep(PATIENCE)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        os._exit(1)
