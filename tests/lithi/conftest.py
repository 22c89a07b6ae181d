"""What the tests of lithi-mcp share: a service with accounts, a server before it, and requests with nothing wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .stub import Service, always, reply, service
from .verifying import QUOTE
from .wire import REVISIONS, Request
from .world import World, job_of, running_world
from .wrong import MARK


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A service whose jobs stand still until a test does them, and lithi-mcp before it, for one module."""
    with running_world(tmp_path_factory.mktemp("lithi")) as running:
        yield running


@pytest.fixture(params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    """Each of the two revisions of the protocol."""
    return str(request.param)


@pytest.fixture
def good(world: World, revision: str) -> Request:
    """A request for a quote, with nothing wrong."""
    return world.ada.endpoint.call_request(revision, "lithi.quote", {"job": job_of()})


@pytest.fixture(scope="module")
def backend() -> Iterator[Service]:
    """A service that gives everybody the same quote."""
    with service(always(reply(201, QUOTE))) as running:
        yield running


@pytest.fixture
def nothing_logged(world: World) -> Iterator[None]:
    """Sees to it that no test leaves its marker in the log of the server; replies are looked at where they come in."""
    yield
    assert MARK not in world.server.output.text.lower()
