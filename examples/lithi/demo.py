"""Starts compute_core and lithi-mcp before it, and works through a quote as a client: run, refused, approved, run, read.

`make demo-lithi` runs it. Everything lies in a temporary folder and on loopback, and ends with it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

SCOPES = ("compute:quote", "compute:run", "compute:read")
APPROVE = "compute:approve"  # no scope of lithi-mcp: approving is not for those who ask
SOURCE = f"sha256:{hashlib.sha256(b'a prepared source').hexdigest()}"
WAIT_SECONDS = 0.2  # between two looks at the job


def main() -> None:
    """Run the demonstration. Raises AssertionError when an answer is not what it should be."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        database = str(folder / "core.db")
        keys = folder / "keys.json"
        account = _said("compute_core", "accounts", "add", "--db", database, "--policy", "approve")
        environment = {"LITHI_KEYS": str(keys)}
        who = ("--account", account, "--subject", "demo", *(word for scope in SCOPES for word in ("--scope", scope)))
        key = _said("lithi_mcp", "keys", "add", *who, environment=environment)
        digest = hashlib.sha256(key.encode()).hexdigest()
        add = ("keys", "add", "--db", database)
        _said("compute_core", *add, *who, "--sha256", digest)
        other = _said("compute_core", *add, "--account", account, "--subject", "owner", "--scope", APPROVE)
        with _core(database) as core, _lithi({**environment, "LITHI_CORE_URL": core}) as lithi:
            asyncio.run(_work(core, lithi, key, other))


async def _work(core: str, lithi: str, key: str, other: str) -> None:
    """The work of a client with `key`, while `other` is the key of somebody who may approve."""
    async with (
        httpx2.AsyncClient(headers=_bearer(key)) as http,
        Client(streamable_http_client(lithi, http_client=http)) as client,
    ):
        quote = await _call(client, "lithi.quote", {"job": {"workflow": "triage@3", "source_digest": SOURCE}})
        refused = await _call(client, "lithi.run", {"quote": quote["handle"]})
        assert refused["error"]["kind"] == "approval_required"
        approved = await http.post(f"{core}/approvals", json={"quote": quote["handle"]}, headers=_bearer(other))
        approved.raise_for_status()
        print(f"  approved over REST: {approved.status_code}")
        job = await _call(client, "lithi.run", {"quote": quote["handle"]})
        again = await _call(client, "lithi.run", {"quote": quote["handle"]})
        assert again["handle"] == job["handle"]
        while (status := await _call(client, "lithi.status", {"handle": job["handle"]}))["state"] != "succeeded":
            assert status["state"] in ("accepted", "running")
            await asyncio.sleep(WAIT_SECONDS)
        result = await _call(client, "lithi.result", {"handle": job["handle"]})
        stored = await http.get(f"{core}/results/{job['handle']}")
        stored.raise_for_status()
    found = f"sha256:{hashlib.sha256(stored.content).hexdigest()}"
    assert found == result["digest"]
    print(f"  the bytes of the result have the digest that was told: {found}")


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def _call(client: Client, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    answer = await client.call_tool(tool, arguments)
    print(f"{tool}{' (refused)' if answer.is_error else ''}: {json.dumps(answer.structured_content)}")
    assert answer.structured_content is not None
    return dict(answer.structured_content)


@contextmanager
def _core(database: str) -> Iterator[str]:
    """The address of the service, as the first line of its output tells it."""
    with _started("compute_core", "serve", "--db", database, "--port", "0") as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()


@contextmanager
def _lithi(environment: Mapping[str, str]) -> Iterator[str]:
    """The address of the server, as its log tells it."""
    with _started("lithi_mcp", "--port", "0", environment=environment) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if urls := json.loads(line).get("urls"):
                yield urls[0]
                return
        raise AssertionError("lithi-mcp did not start")


@contextmanager
def _started(module: str, *words: str, environment: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", module, *words]
    whole = {**os.environ, **(environment or {})}
    with subprocess.Popen(command, env=whole, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.communicate()


def _said(module: str, *words: str, environment: Mapping[str, str] | None = None) -> str:
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(
        command, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


if __name__ == "__main__":
    main()
