"""Scripted upstreams as tests have them: what they are to do, and what they were asked."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("upstream.py")
# Longer than anything here takes, on any machine; it only keeps a fault from hanging the tests.
PATIENCE = 60.0  # seconds
_POLL = 0.005

Json = dict[str, Any]

GET_SCHEMA: Json = {
    "type": "object",
    "properties": {"event_id": {"type": "string"}},
    "required": ["event_id"],
    "additionalProperties": False,
}
PUT_SCHEMA: Json = {
    "type": "object",
    "properties": {"event_id": {"type": "string"}, "title": {"type": "string"}},
    "required": ["event_id"],
    "additionalProperties": False,
}
LIVE_GET: Json = {"name": "cal.get", "description": "Reads an event.", "inputSchema": GET_SCHEMA}
LIVE_PUT: Json = {"name": "cal.put", "description": "Writes an event.", "inputSchema": PUT_SCHEMA}
LIVE_TOOLS = (LIVE_GET, LIVE_PUT)


def poll(found: Callable[[], bool], what: str) -> None:
    """Return once this is so; fails when it doesn't come."""
    give_up = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < give_up, f"it does not come: {what}"
        time.sleep(_POLL)


class Scripted:
    """An upstream by its folder. It has both tools of the calendar until it is told otherwise."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.tell()

    def tell(self, **script: Any) -> None:
        """What it is to do from the next message on, see `upstream.py`; and nothing that was told before."""
        script.setdefault("tools", list(LIVE_TOOLS))
        new = self.folder / "script.new"
        new.write_text(json.dumps(script))
        os.replace(new, self.folder / "script")

    def release(self, name: str = "go") -> None:
        """Let go on what is held by this file."""
        (self.folder / name).touch()

    def forget(self) -> None:
        """No event so far, nothing told."""
        (self.folder / "events").unlink(missing_ok=True)
        (self.folder / "go").unlink(missing_ok=True)
        self.tell()

    def events(self, what: str | None = None) -> list[Json]:
        """What happened, in order; only such events when one kind is named."""
        try:
            text = (self.folder / "events").read_text()
        except FileNotFoundError:
            return []
        events: list[Json] = [json.loads(line) for line in text.splitlines()]
        return [event for event in events if what in (None, event["what"])]

    def count(self, what: str) -> int:
        return len(self.events(what))

    @property
    def counts(self) -> tuple[int, int, int]:
        """How often it was started, and asked for its tools, and how many calls it got."""
        return self.count("start"), self.count("list"), self.count("call")

    @property
    def untouched(self) -> bool:
        """Whether nothing reached it; what was called before may end meanwhile."""
        return not [event for event in self.events() if event["what"] != "end"]

    @property
    def calls(self) -> list[tuple[str, Any]]:
        """Name and arguments of the calls it got."""
        return [(event["name"], event["arguments"]) for event in self.events("call")]

    def wait_for(self, what: str, times: int = 1) -> None:
        """Return once there are so many events of a kind."""
        poll(lambda: self.count(what) >= times, f"{times} of {what}")

    @property
    def most_at_once(self) -> int:
        """How many calls were inside together at most."""
        inside = most = 0
        for event in self.events():
            inside += {"entered": 1, "left": -1}.get(event["what"], 0)
            most = max(most, inside)
        return most

    def stdio(self, env: Mapping[str, str] | None = None) -> Json:
        """How a manifest starts it."""
        arguments = ["-I", "-S", str(PROGRAM), str(self.folder)]
        return {"command": sys.executable, "args": arguments, **({"env": dict(env)} if env else {})}
