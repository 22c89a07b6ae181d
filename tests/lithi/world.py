"""compute_core and lithi-mcp before it, with callers that both know."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from compute_core.accounts import Caller as CoreCaller
from compute_core.accounts import Policy, add_key, revoke_keys, sha256_of
from compute_core.testing import RunningCore, running_core
from compute_core.testing import connected as core_connected

from .servers import SCOPES, Server, mint, run_command, serving
from .wire import MODERN, Endpoint, Reply

WORKFLOW = "triage@3"
SOURCE = f"sha256:{'5e' * 32}"
READ_ONLY = ("compute:read",)
REQUEST = re.compile(r"[A-Z]+ /")


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody with a key that lithi-mcp and the service know."""

    account: str
    key: str = field(repr=False)
    endpoint: Endpoint = field(repr=False)

    def call(self, tool: str, arguments: Any, revision: str = MODERN) -> Reply:
        return self.endpoint.call(tool, arguments, revision)

    def quote(self, **job: Any) -> str:
        """The handle of a new quote."""
        return str(self.call("lithi.quote", {"job": job_of(**job)}).work["handle"])

    def run(self, **job: Any) -> str:
        """The handle of a new job."""
        return str(self.call("lithi.run", {"quote": self.quote(**job)}).work["handle"])


def job_of(**more: Any) -> dict[str, Any]:
    """A job that can be quoted."""
    return {"workflow": WORKFLOW, "source_digest": SOURCE, **more}


class Heard(logging.Handler):
    """The lines that the service logs: one for each request, and some about its jobs."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    @property
    def requests(self) -> list[str]:
        """The lines about requests, such as `POST /jobs 201`."""
        return [line for line in self.lines if REQUEST.match(line)]

    def count(self, beginning: str) -> int:
        """How many lines begin so, such as `POST /jobs 201`."""
        return sum(line.startswith(beginning) for line in self.requests)


class World:
    """The service, the server, and who calls."""

    def __init__(self, folder: Path, core: RunningCore, heard: Heard) -> None:
        self.keys = folder / "keys.json"
        self.core = core
        self.heard = heard
        self.server: Server  # which starts once there is a keys file

    def caller(
        self,
        policy: Policy = "open",
        scopes: Iterable[str] = SCOPES,
        *,
        account: str | None = None,
        subject: str = "ada",
    ) -> Caller:
        """Somebody new, with an account of that policy, or with one that there is."""
        account = account or self.core.account(policy)
        key = mint(self.keys, subject, account, scopes)
        known = CoreCaller(subject, account, frozenset(SCOPES), None)
        with self.core.core.store.write() as db:
            add_key(db, sha256_of(key), known, self.core.now)
        return Caller(account, key, self.server.endpoint(key))

    def revoke(self, caller: Caller) -> None:
        """End a key, as far as lithi-mcp is concerned."""
        listed = run_command("keys", "list", keys=self.keys)
        shown = next(word for word in listed.stdout.split() if len(word) > 7 and sha256_of(caller.key).startswith(word))
        done = run_command("keys", "revoke", shown, keys=self.keys)
        assert done.returncode == 0, done.stderr

    def end_over_rest(self, caller: Caller, subject: str) -> None:
        """End the keys of a subject, as far as the service is concerned."""
        with self.core.core.store.write() as db:
            assert revoke_keys(db, caller.account, subject) == 1

    @cached_property
    def ada(self) -> Caller:
        """Her account needs no approvals."""
        return self.caller("open")

    @cached_property
    def bob(self) -> Caller:
        """His account has each quote approved."""
        return self.caller("approve", subject="bob")

    @cached_property
    def reader(self) -> Caller:
        """May only read, in the account of ada."""
        return self.caller(scopes=READ_ONLY, account=self.ada.account, subject="rea")

    def approve(self, key: str, quote: str) -> None:
        """Approve a quote over REST, with the key of somebody who may."""
        with core_connected(self.core.url, key) as client:
            approved = client.post("/approvals", json={"quote": quote})
        assert approved.status_code in (200, 201), approved.text

    def requests(self) -> int:
        """How many requests the service has answered."""
        return len(self.heard.requests)


@contextmanager
def running_world(folder: Path, *words: str, works: bool = False) -> Iterator[World]:
    """All of it in `folder`; `words` are further ones of the server's command. With `works`, jobs are done at once."""
    heard = Heard()
    logger = logging.getLogger("compute_core")
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(heard)
    try:
        with running_core(folder / "core.db", works=works) as core:
            world = World(folder, core, heard)
            mint(world.keys, "nobody", scopes=())
            with serving(world.keys, core.url, *words) as world.server:
                yield world
    finally:
        logger.removeHandler(heard)
        logger.setLevel(level)
