"""A running service for tests: real HTTP on a loopback port, a clock that is set, jobs that wait until they are let go.

The client, httpx2, comes with the dependencies of tests.
"""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import uvicorn

from .accounts import SCOPES, Caller, Policy, add_account, add_key, new_key, sha256_of
from .app import create_app
from .core import Core, Settings, open_core
from .serving import listening_socket, server_config
from .worker import claim_next, finish

START = 1_790_000_000  # what the clock shows at first

# No test speaks TLS, and reading certificates would take longer than most tests.
_NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def connected(url: str, key: str | None = None) -> httpx2.Client:
    """A client of the service at `url` that sends this key; for use in a `with`."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx2.Client(base_url=url, headers=headers, verify=_NO_CERTIFICATES, trust_env=False, timeout=60)


@dataclass(slots=True)
class RunningCore:
    """The service at `url`. `now` is its clock, in seconds since 1970: set it to let time pass."""

    url: str
    core: Core
    now: int = START

    def account(self, policy: Policy = "open") -> str:
        """The id of a new account."""
        with self.core.store.write() as db:
            return add_account(db, policy, self.now)

    def key(self, account: str, *scopes: str, subject: str = "tester", expires_at: int | None = None) -> str:
        """A new key of an account, with these scopes, or with all when none is named."""
        key = new_key()
        caller = Caller(subject, account, frozenset(scopes or SCOPES), expires_at)
        with self.core.store.write() as db:
            add_key(db, sha256_of(key), caller, self.now)
        return key

    def work(self) -> int:
        """Do all jobs that were started; how many there were."""
        count = 0
        while (claim := claim_next(self.core)) is not None:
            count += finish(self.core, claim)
        return count


@contextmanager
def running_core(database: Path, *, works: bool = False, quote_seconds: int = 900) -> Iterator[RunningCore]:
    """A service over this file. Without `works`, jobs stand still until `work` is called."""
    running: list[RunningCore] = []
    core = open_core(Settings(database, quote_seconds), lambda: running[0].now if running else START)
    listener = listening_socket("127.0.0.1", 0)
    running.append(RunningCore(f"http://127.0.0.1:{listener.getsockname()[1]}", core))
    server = uvicorn.Server(server_config(create_app(core, works=works)))
    thread = threading.Thread(target=server.run, args=([listener],), name="compute-core server")
    thread.start()
    try:
        yield running[0]
    finally:
        server.should_exit = True
        thread.join()
