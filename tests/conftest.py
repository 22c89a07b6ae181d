"""What all tests share: nothing that they do is remembered beyond them."""

from collections.abc import Iterator

import pytest

from tests.postgresql import postgresql, postgresql_url

__all__ = ["own_cache", "postgresql", "postgresql_url"]


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
