"""What the tests share; that it lies here lets them import the package as it stands in this folder."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from compute_core.testing import RunningCore, connected, running_core

Connect = Callable[[str | None], httpx2.Client]
WORKFLOW = "triage@3"
SOURCE = f"sha256:{'5e' * 32}"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RunningCore]:
    """A service whose jobs stand still until the test does them."""
    with running_core(tmp_path / "core.db") as running:
        yield running


@pytest.fixture(scope="session")
def shared_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCore]:
    """A service for tests that leave nothing behind which others could notice."""
    with running_core(tmp_path_factory.mktemp("shared") / "core.db") as running:
        yield running


@pytest.fixture
def connect(service: RunningCore) -> Iterator[Connect]:
    """Gives clients of the service that send the key they are made with."""
    with ExitStack() as clients:
        yield lambda key: clients.enter_context(connected(service.url, key))


@pytest.fixture
def client(service: RunningCore, connect: Connect) -> httpx2.Client:
    """A client of an account that needs no approvals, whose key may do all."""
    return connect(service.key(service.account()))


@pytest.fixture
def quoted() -> Callable[..., str]:
    """Asks for a quote and gives its handle; takes a client, and members of the job."""

    def ask(client: httpx2.Client, **job: object) -> str:
        body = {"job": {"workflow": WORKFLOW, "source_digest": SOURCE, **job}}
        reply = client.post("/quotes", json=body)
        assert reply.status_code == 201, reply.text  # noqa: S101
        return str(reply.json()["handle"])

    return ask
