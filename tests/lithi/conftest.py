"""What the tests of lithi-mcp share: a service with accounts, a server before it, and keys that both know."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .world import World, running_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A service whose jobs stand still until a test does them, and lithi-mcp before it, for one module."""
    with running_world(tmp_path_factory.mktemp("lithi")) as running:
        yield running
