"""A small registry written by hand, and a backend that runs whatever function a test gives it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from verbc.support.backend import Plan
from verbc.support.call import Call
from verbc.support.fingerprint import digest, fingerprint
from verbc.support.refusal import BUILT_IN_KINDS

HINTS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}


def verb_data(name: str, params: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """A verb as it stands in registry.json; run by the python backend unless `changes` say otherwise."""
    schema = {"type": "object", "properties": {}, "additionalProperties": False, **(params or {})}
    function = name.replace(".", "_")
    return {
        "name": name,
        "summary": f"Summary of {name}.",
        "description": None,
        "effect": "read",
        "idempotent": None,
        "hints": HINTS,
        "params": schema,
        "result": None,
        "fingerprint": fingerprint(schema),
        "fingerprint_required": False,
        "required_unenforced": [],
        "varies_with": {},
        "refused": {},
        "unavailable": None,
        "requires": [],
        "plan": None,
        "limits": {"timeout": 30, "output": 65536, "concurrency": 4, "pool": "local"},
        "examples": [],
        "run": {
            "backend": "local",
            "target": [function],
            "reply": {"form": "json"},
            "refusals": {},
            "module": "sample",
            "function": function,
        },
        "digest": digest(name),
        **changes,
    }


ITEM = {"type": "object", "properties": {"id": {"type": "string"}, "size": {"type": "integer"}}, "required": ["id"]}

VERBS: list[dict[str, Any]] = [
    verb_data(
        "item.show",
        {
            "properties": {
                "id": {"type": "string", "minLength": 1, "maxLength": 8, "description": "Which one."},
                "count": {"type": "integer", "minimum": 1, "maximum": 500},
                "color": {"enum": ["red", "green"]},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            },
            "required": ["id"],
        },
        result={**ITEM, "additionalProperties": False},
        refused={"force": "It would stop a run in the middle."},
    ),
    verb_data("item.names", result={"type": "array", "items": {"type": "string"}}, description="More about it."),
    verb_data("free"),
    verb_data(
        "spawn", {"properties": {"query": {"type": "array"}}}, fingerprint_required=True, required_unenforced=["query"]
    ),
    verb_data(
        "flow",
        {"properties": {"playbook": {"type": "string", "pattern": "^[a-z]+$"}, "n": {"type": "integer"}}}
        | {"additionalProperties": True},
        fingerprint_required=True,
        varies_with={"playbook": "local"},
    ),
    verb_data(
        "play",
        {"properties": {"playbook": {"type": "string"}}, "required": ["playbook"], "additionalProperties": True},
        fingerprint_required=True,
        varies_with={"playbook": "local"},
    ),
    verb_data("gone", unavailable="Nobody needs it."),
    verb_data(
        "wiped",
        unavailable="It cannot be undone.",
        run={
            "backend": "li",
            "target": ["state", "wipe"],
            "reply": {"form": "json"},
            "refusals": {},
            "module": "sample",
            "function": "wiped",
        },
    ),
]

DATA: dict[str, Any] = {
    "verbc": 1,
    "server": {
        "name": "sample",
        "version": "1.2.3",
        "title": "Sample",
        "summary": "Shows items.",
        "instructions": "Ask for items.",
        "package": "sample_mcp",
        "distribution": "sample-mcp",
    },
    "surface": "tools",
    "serve": {
        "protocols": ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
        "stdio": True,
        "http": {"host": "127.0.0.1", "port": 7777, "path": "/mcp", "origins": [], "hosts": [], "replies": "json"},
    },
    "access": None,
    "feedback": "names",
    "limits": {"body": 65536, "ops": 3, "timeout": 30, "output": 65536, "concurrency": 4},
    "kinds": {**BUILT_IN_KINDS, "weird": "Declared by this server."},
    "synonyms": {"removed_after": "2031-01-31", "verbs": {"show_item": "item.show"}},
    "backends": {"local": {"kind": "python", "handlers": "handlers"}, "li": {"kind": "cli", "command": "li"}},
    "verbs": VERBS,
    "digest": digest("sample"),
}

Work = Callable[[Call], Awaitable[Any]]


@dataclass
class Functions:
    """A backend: `works` has a function for each verb, `variants` the parameters that a value stands for."""

    works: Mapping[str, Work] = field(default_factory=dict)
    variants: Mapping[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)

    async def plan(self, call: Call) -> Plan:
        return Plan(call)

    async def run(self, plan: Plan) -> Any:
        self.ran.append(plan.call.verb.name)
        work = self.works.get(plan.call.verb.name)
        return await work(plan.call) if work else dict(plan.call.arguments)

    async def params_for(self, param: str, value: str, call: Call) -> dict[str, Any]:
        self.asked.append(value)
        variant = self.variants[value]
        if isinstance(variant, Exception):
            raise variant
        further: dict[str, Any] = variant
        return further


MODULES: dict[str, str] = {
    "__init__.py": "",
    "__main__.py": "import sys\n\nfrom ._support.command import main\n\nsys.exit(main())\n",
    "server.py": """
from pathlib import Path

from ._support.backend_python import PythonBackend
from ._support.binding import Bindings
from ._support.call import LOCAL
from ._support.registry import load
from ._support.server_mcp import build_server


def create_server(*, surface=None, caller=LOCAL):
    registry = load(Path(__file__).with_name("registry.json"))
    return build_server(registry, {"local": PythonBackend(Bindings("sample_mcp.verbs"), load_local)}, surface, caller)


def load_local():
    from .handlers import Handlers

    return Handlers()
""",
    "handlers.py": '''
import asyncio
import os
import sys
import threading
import time
from pathlib import Path

print("a print at import")


class Handlers:
    async def item_show(self, params, call):
        print("a stray print")
        os.system("echo from a child")
        await call.progress(1, 2, "half")
        return {"id": params.id, "size": params.count if params.count is not None else 1}

    async def item_names(self, call):
        return ["a"] * 3

    async def free(self, call):
        """Waits, and leaves a trace of when it started and how it ended."""
        trace = Path(os.environ["TRACE"])
        trace.write_text("started")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
            trace.write_text("cleaned up")
            raise

    async def spawn(self, params, call):
        """Blocks a thread, which nothing can cancel."""
        Path(os.environ["TRACE"]).write_text("started")
        await asyncio.to_thread(time.sleep, 60)

    async def play(self, params, call):
        return "x" * 50_000

    def params_for_playbook(self, value, call):
        return {"properties": {"depth": {"type": "integer"}}}
''',
    "verbs/__init__.py": "",
    "verbs/sample.py": """
from pydantic import BaseModel, ConfigDict

from .._support.binding import Binding


class Show(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    id: str
    count: int | None = None
    color: str | None = None
    tags: list[str] | None = None


class Open(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow", frozen=True)


async def item_show(handlers, params, call):
    return await handlers.item_show(params, call)


async def item_names(handlers, call):
    return await handlers.item_names(call)


async def free(handlers, call):
    return await handlers.free(call)


async def spawn(handlers, params, call):
    return await handlers.spawn(params, call)


async def play(handlers, params, call):
    return await handlers.play(params, call)


VERBS = {
    "item.show": Binding(item_show, Show),
    "item.names": Binding(item_names),
    "free": Binding(free),
    "spawn": Binding(spawn, Open),
    "play": Binding(play, Open),
}
""",
}
