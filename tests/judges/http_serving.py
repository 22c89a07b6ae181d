"""Installed servers over HTTP: hello, the fixture of the conformance suite, and lithi before a real service."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compute_core.accounts import SCOPES, add_key, sha256_of
from compute_core.accounts import Caller as CoreCaller
from compute_core.testing import RunningCore, running_core

from .answers import answer_of, called
from .peers import GIVE_UP_AFTER, Endpoint, output
from .samples import LITHI_TOOLS, Call, Sample

SUBJECT = "judge"
OWN_SCOPES = ("compute:quote", "compute:run", "compute:read")  # those that lithi knows
JOB = {"workflow": "triage@3", "source_digest": f"sha256:{'5e' * 32}"}


@contextmanager
def serving(program: Path, *, key: str | None = None, env: Mapping[str, str] | None = None) -> Iterator[Endpoint]:
    """A server on a free port. At the end its log has to be free of errors, and of the key that was used."""
    with (
        subprocess.Popen(
            [program, "--http", "--port", "0"],
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        ThreadPoolExecutor(1) as reader,
    ):
        assert process.stderr is not None
        first = process.stderr.readline()
        rest = reader.submit(process.stderr.read)
        try:
            assert '"urls"' in first, first + rest.result(GIVE_UP_AFTER)
            (url,) = json.loads(first)["urls"]
            yield Endpoint(url, key)
        finally:
            process.terminate()
            log = rest.result(GIVE_UP_AFTER)
    assert process.returncode == 0, log
    assert [line for line in log.splitlines() if json.loads(line)["level"] == "error"] == []
    assert key is None or key not in log


@dataclass(frozen=True, slots=True)
class Lithi:
    """lithi with the key of somebody who may do all; a call of each tool that succeeds, and what two of them come to."""

    endpoint: Endpoint
    sample: Sample
    calls: dict[str, dict[str, Any]]  # arguments by tool


@contextmanager
def running_lithi(program: Path, folder: Path) -> Iterator[Lithi]:
    """lithi and the service behind it, which keeps its data in `folder`; its work has been done."""
    with running_core(folder / "core.db") as core:
        keys = {"LITHI_KEYS": str(folder / "keys.json"), "LITHI_CORE_URL": core.url}
        key = _new_key(program, core, keys)
        with serving(program, key=key, env=keys) as endpoint:
            yield _worked(endpoint, core)


def _new_key(program: Path, core: RunningCore, env: Mapping[str, str]) -> str:
    """A key that both of them know, of a caller whose account needs no approvals."""
    account = core.account("open")
    scopes = [word for scope in OWN_SCOPES for word in ("--scope", scope)]
    command: list[str | Path] = [program, "keys", "add", "--subject", SUBJECT, "--account", account, *scopes]
    key = output(command, env={**os.environ, **env}).strip()
    with core.core.store.write() as db:
        add_key(db, sha256_of(key), CoreCaller(SUBJECT, account, frozenset(SCOPES), None), core.now)
    return key


def _worked(endpoint: Endpoint, core: RunningCore) -> Lithi:
    """Has two quotes, runs one of them to its end, and asks how that stands."""

    def results(*calls: Call) -> list[dict[str, Any]]:
        return [answer_of(result) for result in called(endpoint, "auto", calls).answers]

    first, second = results(("lithi.quote", {"job": JOB}), ("lithi.quote", {"job": {**JOB, "labels": {"a": "b"}}}))
    (job,) = results(("lithi.run", {"quote": first["handle"]}))
    assert core.work() == 1
    named = {"handle": job["handle"]}
    (status,) = results(("lithi.status", named))
    assert status["state"] == "succeeded"
    refused = ("lithi.status", {"handle": "no handle"})
    sample = Sample(LITHI_TOOLS, ("lithi.status", named), status, refused, "invalid_input", "`handle` must match")
    calls = {
        "lithi.quote": {"job": JOB},
        "lithi.run": {"quote": first["handle"]},  # once more: it runs nothing twice
        "lithi.batch": {"quotes": [second["handle"]]},
        "lithi.status": named,
        "lithi.result": named,
    }
    return Lithi(endpoint, sample, calls)
