"""A PostgreSQL server that the tests start for themselves, and a new database in it for each test that wants one.

A test takes the fixture `postgresql_url`, the address of a database that is its own and has no tables; it goes with the
test, whoever is still connected. One that needs more takes `postgresql`, the server of its session (one per worker): it
makes databases, stops and starts, and carries out statements as their owner. Both are in `tests/conftest.py`.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import psycopg
import pytest

USER: Final = "tester"
STARTING: Final = 60.0  # seconds
# Nothing has to outlive the machine, and many processes of a test are connected at the same time.
SETTINGS: Final = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "32MB",
}


class Server:
    """A server of its own, on a socket in a folder of its own, run by a user that is not root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.password = secrets.token_urlsafe()
        self._account = _account()
        self._numbers = count()
        self._process: subprocess.Popen[bytes] | None = None
        _lay_out(folder, self.password, self._account)

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        settings = {**SETTINGS, "unix_socket_directories": str(self.folder)}
        command = [_program("postgres"), "-D", str(self.folder / "data")]
        command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, **self._account
            )
        end = time.monotonic() + STARTING
        while not self._answers():
            assert self._process.poll() is None, (self.folder / "log").read_text(encoding="utf-8")
            assert time.monotonic() < end
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop it; whoever is connected is turned out."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(STARTING)
            self._process = None

    def make_database(self) -> str:
        """The name of a new database."""
        name = f"test_{next(self._numbers)}"
        self.order(f"CREATE DATABASE {name}")
        return name

    def drop(self, database: str) -> None:
        """Have a database gone, whoever is connected to it."""
        self.order(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")

    def order(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """What a statement finds, in a transaction of its own, as the owner of everything."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            found = connection.execute(statement.encode())
            return found.fetchall() if found.description else []

    def url(self, database: str) -> str:
        """The address of a database, with a password."""
        return f"postgresql://{USER}:{self.password}@/{database}?host={quote(str(self.folder), safe='')}"

    def _answers(self) -> bool:
        try:
            self.order("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True


def _lay_out(folder: Path, password: str, account: Mapping[str, Any]) -> None:
    secret = folder / "password"
    secret.touch(mode=0o600)
    secret.write_text(password, encoding="ascii")
    if account:
        for path in (folder, secret):
            os.chown(path, account["user"], account["group"])
    command = [_program("initdb"), "--no-sync", "--no-instructions", "--auth=scram-sha-256"]
    command += [f"--username={USER}", f"--pwfile={secret}", f"--pgdata={folder / 'data'}"]
    # Texts sort as they do in most databases: as people sort them, not by their bytes.
    command += ["--encoding=UTF8", "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en"]
    with open(folder / "log", "ab") as log:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, cwd=folder, check=True, **account)


def _account() -> Mapping[str, Any]:
    """Who runs the server: it refuses to be run by root."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _program(name: str) -> str:
    """A program of PostgreSQL, of its newest version; Debian keeps them off the PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    program = str(found[-1]) if found else shutil.which(name)
    if program is None:
        pytest.fail("PostgreSQL is not installed: `make peers` does it, or install the package `postgresql`.")
    return program


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """The server of this session."""
    # The path of a socket must be short, and the folders of pytest are closed to other users.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        server = Server(folder)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def postgresql_url(postgresql: Server) -> Iterator[str]:
    """The address of a new database."""
    database = postgresql.make_database()
    yield postgresql.url(database)
    postgresql.drop(database)
