"""What the tests of libos-mcp share: a place with an operator, a server there, and an upstream that is registered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from .http_upstream import ScriptedHttp, scripted_http
from .manifests import manifest
from .places import Place
from .processes import GENERATED, Gateway, environment, run_command
from .scripted import Scripted

NewPlace = Callable[[], Place]


@pytest.fixture(scope="session")
def libos_mcp() -> Path:
    """The folder of the generated package."""
    if not (GENERATED / "libos_mcp" / "registry.json").is_file():
        pytest.fail("There is no generated libos-mcp: run `make generate`.")
    return GENERATED


@pytest.fixture(scope="session")
def operator_key(libos_mcp: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """An operator's key, and what a policy file says of it."""
    folder = tmp_path_factory.mktemp("key")
    made = run_command(["policy", "key"], env=environment(), cwd=folder)
    assert made.returncode == 0, made.stderr
    (digest,) = re.findall(r"\b[0-9a-f]{64}\b", made.stderr)
    return made.stdout.strip(), digest


@pytest.fixture(scope="module")
def new_place(operator_key: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> NewPlace:
    """Makes places where nothing has happened yet."""

    def make() -> Place:
        return Place(tmp_path_factory.mktemp("place"), *operator_key)

    return make


@pytest.fixture(scope="module")
def place(new_place: NewPlace) -> Place:
    """A place for one module."""
    return new_place()


@pytest.fixture
def own_place(new_place: NewPlace) -> Place:
    """A place for one test."""
    return new_place()


@pytest.fixture(scope="module")
def shared_calendar(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Scripted:
    upstream = Scripted(tmp_path_factory.mktemp("calendar"))
    place.add(manifest(upstream))
    return upstream


@pytest.fixture
def calendar(shared_calendar: Scripted) -> Scripted:
    """The scripted calendar, registered as `calendar`; nothing has reached it, nothing is told to it."""
    shared_calendar.forget()
    return shared_calendar


@pytest.fixture(scope="module")
def gateway(place: Place) -> Iterator[Gateway]:
    """The server of the place, over stdio, for the subject `agent`, whose rights each test gives."""
    with place.serving() as serving:
        yield serving


@pytest.fixture
def own_upstream(tmp_path: Path) -> Scripted:
    """An upstream for one test, not registered."""
    return Scripted(tmp_path / "upstream")


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[ScriptedHttp]:
    """The same over HTTP."""
    with ExitStack() as stack:
        yield stack.enter_context(scripted_http(tmp_path / "remote"))
