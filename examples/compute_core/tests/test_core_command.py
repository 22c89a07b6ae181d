"""The command line, and services of several processes on one file."""

import hashlib
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from compute_core.command import run
from compute_core.store import Store
from compute_core.testing import connected, running_core
from compute_core.worker import CLAIM_SECONDS

HERE = Path(__file__).resolve().parent.parent
SOURCE = f"sha256:{'5e' * 32}"
MOST_READS = 20_000  # of a job that ends within some


@contextmanager
def served(database: Path, *options: str, end: signal.Signals = signal.SIGTERM) -> Iterator[str]:
    """The address of a service in processes of its own, which get the signal `end` at the end."""
    command = [sys.executable, "-m", "compute_core", "serve", "--db", str(database), "--port", "0", *options]
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(end)
            process.wait(30)


def made(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(arguments) == 0
    return capsys.readouterr().out.strip()


def account_and_key(database: Path, capsys: pytest.CaptureFixture[str], *scopes: str) -> tuple[str, str]:
    account = made(capsys, "accounts", "add", "--db", str(database), "--policy", "open")
    options = [option for scope in scopes for option in ("--scope", scope)]
    where = ["--db", str(database), "--account", account, "--subject", "ada"]
    return account, made(capsys, "keys", "add", *where, *options)


def test_a_key_is_kept_as_its_digest_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "core.db"
    account, key = account_and_key(database, capsys, "compute:read")
    assert re.fullmatch("acct_[0-9a-z]{12}", account)
    assert re.fullmatch("core_[A-Za-z0-9_-]{43}", key)  # 256 bits
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert key.encode() not in content
    assert hashlib.sha256(key.encode()).hexdigest().encode() in content
    assert stat.S_IMODE(database.stat().st_mode) == 0o600


def test_problems_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = str(tmp_path / "core.db")
    where = ["--db", database, "--subject", "ada"]
    assert run(["keys", "add", *where, "--account", "acct_000000000000"]) == 1
    assert 'there is no account "acct_000000000000"' in capsys.readouterr().err
    account = made(capsys, "accounts", "add", "--db", database)
    known = ["keys", "add", *where, "--account", account, "--sha256", "0" * 64]
    assert made(capsys, *known) == ""
    assert run(known) == 1
    assert "is there already" in capsys.readouterr().err
    assert run(["accounts", "add", "--db", str(tmp_path)]) == 1
    assert run(["accounts", "add", "--db", str(tmp_path / "missing" / "core.db")]) == 1
    (tmp_path / "text").write_text("this is no database" * 100)
    assert run(["accounts", "add", "--db", str(tmp_path / "text")]) == 1
    with Store(tmp_path / "newer.db").write() as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    assert run(["serve", "--db", str(tmp_path / "newer.db")]) == 1
    assert "tables of version 99" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [["--lifetime", "0d"], ["--lifetime", "9"], ["--scope", "all"], ["--sha256", "AB"], ["--subject", "a b"]],
)
def test_wrong_options(tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: list[str]) -> None:
    arguments = ["keys", "add", "--db", str(tmp_path / "core.db"), "--account", "a", "--subject", "ada", *wrong]
    with pytest.raises(SystemExit) as ended:
        run(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_service_from_start_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "core.db"
    account, key = account_and_key(database, capsys, "compute:quote", "compute:run", "compute:read")
    with served(database) as url, connected(url, key) as client:
        quote = client.post("/quotes", json={"job": {"workflow": "triage@3", "source_digest": SOURCE}}).json()
        job = client.post("/jobs", json={"quote": quote["handle"]}).json()
        assert ended_state(client, job["handle"]) == "succeeded"
        result = client.get(f"/jobs/{job['handle']}/result").json()
        content = client.get(f"/results/{job['handle']}").content
        assert result["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
        where = ["--db", str(database), "--account", account, "--subject", "ada"]
        assert made(capsys, "keys", "revoke", *where) == "1"
        assert client.get("/key").status_code == 401


def test_processes_share_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "core.db"
    _, key = account_and_key(database, capsys, "compute:quote", "compute:run", "compute:read")
    with ExitStack() as stack:
        urls = [stack.enter_context(served(database, *options)) for options in ([], ["--workers", "2"])]
        clients = [stack.enter_context(connected(url, key)) for url in urls]
        assert clients[0].get("/terms-key").json() == clients[1].get("/terms-key").json()
        body = {"job": {"workflow": "triage@3", "source_digest": SOURCE}}
        quotes = [clients[number % 2].post("/quotes", json=body).json()["handle"] for number in range(6)]
        headers = {"Idempotency-Key": "race"}
        with ThreadPoolExecutor(12) as threads:
            replies = list(
                threads.map(
                    lambda number: clients[number % 2].post("/jobs", json={"quote": quotes[0]}, headers=headers),
                    range(24),
                )
            )
            batches = list(
                threads.map(lambda number: clients[number % 2].post("/batches", json={"quotes": quotes[1:]}), range(12))
            )
        assert len({reply.json()["handle"] for reply in replies}) == 1
        assert sorted(reply.status_code for reply in replies) == [200] * 23 + [201]
        assert len({reply.json()["handle"] for reply in batches}) == 1
        items = clients[0].get(f"/batches/{batches[0].json()['handle']}").json()["items"]
        assert [ended_state(clients[1], item["job"]["handle"]) for item in items] == ["succeeded"] * 5


def test_a_killed_process_leaves_its_job_to_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "core.db"
    _, key = account_and_key(database, capsys, "compute:quote", "compute:run", "compute:read")
    body = {"job": {"workflow": "triage@3", "source_digest": SOURCE}}
    with served(database, "--job-seconds", "600", end=signal.SIGKILL) as url, connected(url, key) as client:
        quote = client.post("/quotes", json=body).json()["handle"]
        handle = client.post("/jobs", json={"quote": quote}).json()["handle"]
        state = "accepted"
        for _ in range(MOST_READS):
            if state == "running":
                break
            state = client.get(f"/jobs/{handle}").json()["state"]
        assert state == "running"
    with running_core(database) as service, connected(service.url, key) as client:
        service.now = int(time.time())
        assert client.post("/jobs", json={"quote": quote}).json()["state"] == "running"
        assert service.work() == 0
        service.now += 600 + CLAIM_SECONDS + 1
        assert service.work() == 1
        assert client.get(f"/jobs/{handle}/result").json()["state"] == "succeeded"


def ended_state(client: httpx2.Client, handle: str) -> str:
    for _ in range(MOST_READS):
        job = client.get(f"/jobs/{handle}").json()
        if job["p_next_action"] != "wait":
            return str(job["state"])
    pytest.fail("the job does not end")
