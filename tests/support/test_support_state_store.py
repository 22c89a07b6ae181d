"""What a governed server keeps: where that is, that nothing waits for it on the event loop, and what goes wrong there."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, delete, insert, select

from verbc.support.governance_tables import BUDGETS
from verbc.support.refusal import Refusal
from verbc.support.registry import Registry
from verbc.support.state_folder import StateFolderError
from verbc.support.state_store import StateStore
from verbc.support.store import Store, StoreError
from verbc.support.wiping import wiped

from .databases import KINDS
from .programs import finish

TABLES = ("governance_tables", "registration_tables")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registry: Registry) -> None:
    """Nobody's own folder or database."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(variable(registry), raising=False)


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest) -> str | None:
    """The address of a database; None for a file."""
    return None if request.param == "sqlite" else str(request.getfixturevalue("postgresql_url"))


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def variable(registry: Registry) -> str:
    return f"{registry.server.package.upper()}_STORE"


@asynccontextmanager
async def opened(registry: Registry, **where: Any) -> AsyncIterator[StateStore]:
    store = StateStore(registry, TABLES, **where)
    try:
        yield store
    finally:
        await store.close()


def add(subject: str) -> Callable[[Connection], str]:
    def work(connection: Connection) -> str:
        connection.execute(insert(BUDGETS), {"subject": subject, "started_at": 0, "calls": 0, "bytes": 0})
        return subject

    return work


def subjects(connection: Connection) -> set[str]:
    return set(connection.scalars(select(BUDGETS.c.subject)))


def test_traces_of_what_was_wiped_are_removed_behind_the_answer(
    registry: Registry, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = secrets.token_hex(32)
    answered, gone = threading.Event(), threading.Event()
    remove = Store.remove_traces

    def found() -> bool:
        return any(text.encode() in path.read_bytes() for path in state.iterdir())

    def removing(store: Store) -> None:
        assert answered.wait(60)
        remove(store)
        gone.set()

    def wipe(connection: Connection) -> None:
        connection.execute(delete(BUDGETS))
        wiped(connection)

    monkeypatch.setattr(Store, "remove_traces", removing)

    async def work() -> tuple[bool, bool]:
        async with opened(registry, state=state) as store:
            await store.write("one", add(text))
            await store.write("two", wipe)
            kept = found()
            await store.write("three", add("a"))
            answered.set()
            assert await asyncio.to_thread(gone.wait, 60)
            return kept, found()

    assert finish(work()) == (True, False)


def test_traces_that_cannot_be_removed_fail_no_write(
    registry: Registry, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = threading.Event()

    def removing(_store: Store) -> None:
        tried.set()
        raise StoreError("It fails.")

    monkeypatch.setattr(Store, "remove_traces", removing)

    async def work() -> None:
        async with opened(registry, state=state) as store:
            await store.write("one", wiped)
            assert await asyncio.to_thread(tried.wait, 60)
            assert await store.write("two", add("a")) == "a"

    finish(work())


def test_what_is_written_is_kept(registry: Registry, state: Path, url: str | None) -> None:
    async def keep() -> None:
        async with opened(registry, state=state, url=url) as store:
            assert await store.read(subjects) == set()
            assert await store.write("one", add("a")) == "a"
        async with opened(registry, state=state, url=url) as store:
            assert await store.read(subjects) == {"a"}

    finish(keep())
    assert (state / "server.db").exists() is (url is None)


def test_it_works_on_threads_of_its_own(registry: Registry, state: Path, url: str | None) -> None:
    async def look() -> set[str]:
        async with opened(registry, state=state, url=url) as store:
            return {
                await store.read(lambda _: threading.current_thread().name),
                await store.write("one", lambda _: threading.current_thread().name),
            }

    assert {name.rpartition("_")[0] for name in finish(look())} == {"store-read", "store-write"}


def test_nothing_is_opened_before_it_is_used(registry: Registry, state: Path) -> None:
    async def open_and_close() -> None:
        async with opened(registry, state=state), opened(registry, url="postgresql://nowhere.invalid/name"):
            pass

    finish(open_and_close())
    assert not state.exists()


def test_a_file_lies_in_the_folder_of_the_server(registry: Registry, tmp_path: Path) -> None:
    store = StateStore(registry, TABLES).store()
    store.read(subjects)
    store.close()
    assert (tmp_path / "home" / registry.server.distribution / "server.db").exists()


def test_a_variable_names_a_database(
    registry: Registry, state: Path, postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable(registry), postgresql_url)
    store = StateStore(registry, TABLES, state=state).store()
    store.write("one", add("a"))
    store.close()
    monkeypatch.delenv(variable(registry))
    again = StateStore(registry, TABLES, url=postgresql_url).store()
    assert again.read(subjects) == {"a"}
    again.close()
    assert not state.exists()


def test_what_is_said_outright_counts_more_than_the_variable(
    registry: Registry, postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable(registry), "postgresql://nowhere.invalid/name")
    store = StateStore(registry, TABLES, url=postgresql_url).store()
    assert store.read(subjects) == set()
    store.close()


def test_an_empty_variable_names_nothing(registry: Registry, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable(registry), "")
    store = StateStore(registry, TABLES, state=state).store()
    store.read(subjects)
    store.close()
    assert (state / "server.db").exists()


def test_of_many_first_uses_one_opens_it(registry: Registry, state: Path, url: str | None) -> None:
    async def use() -> int:
        async with opened(registry, state=state, url=url) as store:
            await asyncio.gather(*(store.write("one", add(str(number))) for number in range(20)))
            return len(await store.read(subjects))

    assert finish(use()) == 20


def test_a_cancellation_has_effect_once_all_is_on_record(registry: Registry, state: Path, url: str | None) -> None:
    async def cancel() -> set[str]:
        writing, enough = threading.Event(), threading.Event()

        def work(connection: Connection) -> None:
            writing.set()
            assert enough.wait(60)
            add("a")(connection)

        async with opened(registry, state=state, url=url) as store:
            await store.read(subjects)
            task = asyncio.ensure_future(store.write("one", work))
            await asyncio.to_thread(writing.wait, 60)
            task.cancel()
            await asyncio.sleep(0)
            assert not task.done()
            enough.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await store.read(subjects)

    assert finish(cancel()) == {"a"}


def test_what_the_work_refuses_is_refused_and_not_written(registry: Registry, state: Path, url: str | None) -> None:
    refusal = Refusal("busy", "Not now.")

    def work(connection: Connection) -> None:
        add("a")(connection)
        raise refusal

    async def write() -> set[str]:
        async with opened(registry, state=state, url=url) as store:
            with pytest.raises(Refusal) as raised:
                await store.write("one", work)
            assert raised.value is refusal
            return await store.read(subjects)

    assert finish(write()) == set()


def test_it_is_closed_once_what_is_under_way_has_ended(registry: Registry, state: Path, url: str | None) -> None:
    async def close() -> None:
        writing, enough = threading.Event(), threading.Event()

        def work(connection: Connection) -> str:
            writing.set()
            assert enough.wait(60)
            return add("a")(connection)

        store = StateStore(registry, TABLES, state=state, url=url)
        task = asyncio.ensure_future(store.write("one", work))
        await asyncio.to_thread(writing.wait, 60)
        closing = asyncio.ensure_future(store.close())
        await asyncio.sleep(0)
        assert not closing.done()
        enough.set()
        assert await task == "a"
        await closing

    finish(close())


# When it cannot be used


def refused(registry: Registry, **where: Any) -> list[Refusal]:
    """What a read and a write are told."""

    async def use() -> list[Refusal]:
        async with opened(registry, **where) as store:
            refusals = []
            for work in (store.read(subjects), store.write("one", add("a"))):
                with pytest.raises(Refusal) as raised:
                    await work
                refusals.append(raised.value)
            return refusals

    return finish(use())


def assert_told(refusals: list[Refusal], caplog: pytest.LogCaptureFixture, problem: str) -> None:
    for refusal in refusals:
        assert (refusal.kind, refusal.detail) == ("unavailable", None)
        assert refusal.message == "What this server keeps cannot be used now; its log says why."
    assert [record.verbc_fields for record in caplog.records] == [{"problem": problem}] * 2  # type: ignore[attr-defined]


def test_a_file_that_cannot_be_used_is_told_in_the_log(
    registry: Registry, state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (state / "server.db").mkdir(parents=True)
    state.chmod(0o700)
    refusals = refused(registry, state=state)
    problem = f"The store {state / 'server.db'} cannot be opened for writing; look at its permissions."
    assert_told(refusals, caplog, problem)


def test_a_folder_that_cannot_be_used_is_told_in_the_log(
    registry: Registry, state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state.touch()
    refusals = refused(registry, state=state)
    assert_told(refusals, caplog, f"The state folder {state} is not a folder. Choose another one with --state.")


def test_a_database_that_cannot_be_used_is_told_in_the_log_without_its_address(
    registry: Registry, postgresql_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    secret = secrets.token_hex()
    wrong = f"postgresql://{secret}:{secret}@/{secret}?{postgresql_url.partition('?')[2]}"
    refusals = refused(registry, url=wrong)
    assert_told(
        refusals,
        caplog,
        "The store in PostgreSQL cannot be reached; see that its server runs, and that its address, user and password "
        "are right.",
    )
    assert secret not in caplog.text


def test_commands_are_told_the_reason_itself(registry: Registry, state: Path) -> None:
    with pytest.raises(StoreError, match="begins with postgresql://"):
        StateStore(registry, TABLES, url="mysql://host/name").store().read(subjects)
    state.touch()
    with pytest.raises(StateFolderError, match="is not a folder"):
        StateStore(registry, TABLES, state=state).store()


def test_it_can_be_used_once_it_is_there(registry: Registry, state: Path) -> None:
    kept = StateStore(registry, TABLES, state=state)
    state.touch()
    with pytest.raises(StateFolderError):
        kept.store()
    state.unlink()
    assert kept.store().read(subjects) == set()
    asyncio.run(kept.close())
