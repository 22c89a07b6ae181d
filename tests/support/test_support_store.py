"""The store, in databases of both kinds: its transactions, the versions of its schema, and what it says when it cannot be used."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, exc, select, text

from verbc.support import store as store_module
from verbc.support.store import PATIENCE, Component, Store, StoreError

from .databases import KINDS, Place, PostgresqlPlace, SqlitePlace, busy
from .programs import open_files
from .things import NEW, OLD, THINGS, add, fail, give_sizes, make_things, names


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        yield SqlitePlace(tmp_path / "store.sqlite")
        return
    place = PostgresqlPlace(request.getfixturevalue("postgresql"))
    yield place
    place.server.drop(place.name)


@pytest.fixture
def store(place: Place) -> Iterator[Store]:
    with closing(Store(place.database(), [NEW])) as store:
        yield store


@pytest.fixture
def impatient(place: Place) -> Iterator[Store]:
    with closing(Store(place.database(), [NEW], patience=0.01)) as store:
        yield store


def versions(place: Place) -> dict[str, int]:
    return dict(place.by_hand("SELECT component, version FROM schema_versions"))


def test_closed_is_closed(store: Store) -> None:
    store.read(names)
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        store.read(names)
    with pytest.raises(StoreError, match="is closed"):
        store.write("one", add("a"))


def test_a_transaction_under_way_ends_as_if_nothing_was_closed(place: Place) -> None:
    before = open_files()
    store = Store(place.database(), [NEW])

    def work(connection: Connection) -> None:
        store.close()
        add("a")(connection)

    store.write("one", work)
    assert open_files() == before
    assert place.by_hand("SELECT name FROM things") == [("a",)]


# Transactions


def test_a_write_that_raises_leaves_no_trace(store: Store) -> None:
    def work(connection: Connection) -> None:
        add("a")(connection)
        raise KeyError

    with pytest.raises(KeyError):
        store.write("one", work)
    assert store.read(names) == set()
    store.write("two", add("b"))
    assert store.read(names) == {"b"}


def test_a_mistake_of_ours_is_no_problem_of_the_file(store: Store) -> None:
    store.write("one", add("a"))
    with pytest.raises(exc.IntegrityError) as failure:
        store.write("two", add("a"))
    assert "'a'" not in str(failure.value)


def test_a_read_stands_as_of_one_moment(store: Store, place: Place) -> None:
    def work(connection: Connection) -> list[set[str]]:
        first = names(connection)
        with closing(Store(place.database(), [NEW])) as other:
            other.write("one", add("a"))
        return [first, names(connection)]

    assert store.read(work) == [set(), set()]
    assert store.read(names) == {"a"}


def test_a_write_sees_what_was_written_while_it_waited(store: Store, place: Place) -> None:
    seen = []

    def work(connection: Connection) -> None:
        seen.append(names(connection))
        add("b")(connection)

    def first(connection: Connection) -> Future[None]:
        add("a")(connection)
        return pool.submit(other.write, "two", work)

    with closing(Store(place.database(), [NEW])) as other, ThreadPoolExecutor(1) as pool:
        other.read(names)
        store.write("one", first).result()
    assert seen == [{"a"}]
    assert store.read(names) == {"a", "b"}


def test_what_has_failed_is_not_committed_as_if_it_had_not(store: Store) -> None:
    def work(connection: Connection) -> None:
        add("a")(connection)
        connection.connection.dbapi_connection.rollback()  # type: ignore[union-attr]

    with pytest.raises(RuntimeError, match="went on after it had failed"):
        store.write("one", work)
    assert store.read(names) == set()


def test_a_mistake_that_somebody_hides_loses_nothing_without_a_word(store: Store, place: Place) -> None:
    """SQLite goes on as if nothing was, PostgreSQL commits nothing any more."""

    def work(connection: Connection) -> None:
        add("b")(connection)
        with suppress(exc.IntegrityError):
            add("a")(connection)

    store.write("one", add("a"))
    if isinstance(place, SqlitePlace):
        store.write("two", work)
        assert store.read(names) == {"a", "b"}
    else:
        with pytest.raises(RuntimeError, match="went on after it had failed"):
            store.write("two", work)
        assert store.read(names) == {"a"}


def test_an_open_cursor_of_what_has_failed_leaves_no_old_view_behind(store: Store) -> None:
    cursors = []

    def work(connection: Connection) -> None:
        cursors.append(connection.execute(select(THINGS.c.name)))
        assert cursors[0].fetchone() is not None
        raise KeyError

    store.write("one", lambda connection: [add(str(number))(connection) for number in range(3)])
    with pytest.raises(KeyError):
        store.read(work)
    store.write("two", add("a"))
    assert "a" in store.read(names)


def test_connections_are_kept(store: Store) -> None:
    def connection_of(connection: Connection) -> object:
        return connection.connection.dbapi_connection

    first = store.read(connection_of)
    assert [store.write("one", connection_of), store.read(connection_of)] == [first, first]


def test_reading_goes_on_while_somebody_writes(store: Store) -> None:
    def work(connection: Connection) -> set[str]:
        add("a")(connection)
        return store.read(names)

    assert store.write("one", work) == set()


def test_the_fault_hook_hears_of_a_write_around_its_commit(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.read(names)
    heard = []
    monkeypatch.setattr(
        store_module, "fault", lambda point: heard.append((point, place.by_hand("SELECT name FROM things")))
    )
    store.write("one", add("a"))
    assert heard == [("before one", []), ("after one", [("a",)])]
    with pytest.raises(ZeroDivisionError):
        store.write("two", fail)
    store.read(names)
    assert len(heard) == 2


def test_threads_share_it(store: Store) -> None:
    together = threading.Barrier(12)

    def work(number: int) -> None:
        together.wait()
        for turn in range(10):
            store.write("one", add(f"{number} {turn}"))
            assert f"{number} {turn}" in store.read(names)

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(work, range(12)))
    assert len(store.read(names)) == 120


def test_writers_of_one_process_take_turns(store: Store) -> None:
    inside = []

    def work(connection: Connection) -> None:
        inside.append("in")
        add(str(len(names(connection))))(connection)
        inside.append("out")

    with ThreadPoolExecutor(4) as pool:
        for finished in [pool.submit(store.write, "one", work) for _ in range(20)]:
            finished.result()
    assert inside == ["in", "out"] * 20
    assert store.read(names) == {str(number) for number in range(20)}


# When it cannot be used


def test_a_write_gives_up_on_another_that_goes_on_for_too_long(impatient: Store, place: Place) -> None:
    impatient.read(names)
    with busy(place):
        with pytest.raises(StoreError) as failure:
            impatient.write("one", add("a"))
        assert str(failure.value) == f"{place.database().name} is kept busy by others for too long; try again."
        assert impatient.read(names) == set()
    impatient.write("one", add("a"))
    assert impatient.read(names) == {"a"}


def test_a_write_that_was_asked_for_long_ago_waits_no_longer_for_others(store: Store, place: Place) -> None:
    """Its patience is one for all that it waits for: threads of its own process, and other processes."""
    store.read(names)
    past = time.monotonic() - PATIENCE
    with busy(place), pytest.raises(StoreError, match="is kept busy"):
        store.write("one", add("a"), past)

    def work(_connection: Connection) -> None:
        with ThreadPoolExecutor(1) as pool, pytest.raises(StoreError, match="is kept busy"):
            pool.submit(store.write, "two", add("b"), past).result()

    store.write("three", work)
    store.write("four", add("c"), past)
    assert store.read(names) == {"c"}


@pytest.mark.parametrize("asked", [2.5, 4, 8])
def test_what_the_own_threads_took_of_the_patience_is_not_had_again(
    asked: float, store: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.read(names)
    given: list[float] = []
    begin = type(place.database()).begin

    def noting(self: Any, connection: Connection, *, writes: bool, patience: float) -> None:
        given.append(patience)
        begin(self, connection, writes=writes, patience=patience)

    monkeypatch.setattr(type(place.database()), "begin", noting)
    store.write("one", add("a"), time.monotonic() - asked)
    assert len(given) == 1
    assert 0 <= given[0] <= PATIENCE - asked


def test_a_write_gives_up_on_another_thread_that_holds_it(impatient: Store) -> None:
    def work(_connection: Connection) -> None:
        with ThreadPoolExecutor(1) as pool, pytest.raises(StoreError, match="is kept busy"):
            pool.submit(impatient.write, "two", add("b")).result()

    impatient.write("one", work)
    impatient.write("three", add("c"))
    assert impatient.read(names) == {"c"}


def test_a_database_without_its_tables_is_not_ours(store: Store, place: Place) -> None:
    store.read(names)
    place.by_hand("DROP TABLE things")
    with pytest.raises(StoreError, match="does not hold what it should"):
        store.read(names)


# Versions of the schema


def test_an_older_version_is_brought_forward(store: Store, place: Place) -> None:
    place.by_hand(
        "CREATE TABLE schema_versions (component TEXT PRIMARY KEY, version INTEGER NOT NULL)",
        "INSERT INTO schema_versions VALUES ('things', 1), ('others', 5)",
        "CREATE TABLE things (name TEXT PRIMARY KEY)",
        "INSERT INTO things VALUES ('one'), ('three')",
    )
    rows = store.read(lambda connection: [tuple(row) for row in connection.execute(select(THINGS))])
    assert sorted(rows) == [("one", 3), ("three", 5)]
    assert versions(place) == {"things": 2, "others": 5}


def test_a_current_version_is_left_as_it_is(store: Store, place: Place) -> None:
    store.write("one", add("a"))
    again = Store(place.database(), [Component("things", (fail, fail))])
    assert again.read(names) == {"a"}
    again.close()


def test_a_current_version_is_opened_while_somebody_writes(store: Store, place: Place) -> None:
    def work(_connection: Connection) -> set[str]:
        other = Store(place.database(), [NEW], patience=0.01)
        found = other.read(names)
        other.close()
        return found

    assert store.write("one", work) == set()


def test_a_newer_version_is_refused_and_stays_as_it_is(place: Place) -> None:
    with closing(Store(place.database(), [NEW])) as newer:
        newer.write("one", add("a"))
    before = place.tables()
    older = Store(place.database(), [Component("first", (fail,)), OLD])
    with pytest.raises(StoreError) as failure:
        older.read(names)
    other = "state folder" if isinstance(place, SqlitePlace) else "database"
    assert str(failure.value) == (
        f"{place.database().name} was written by a newer version of this server. "
        f"Run that version, or choose another {other}."
    )
    older.close()
    assert place.tables() == before
    assert versions(place) == {"things": 2}


def test_a_migration_that_fails_leaves_everything_as_it_was(place: Place) -> None:
    store = Store(place.database(), [NEW, Component("more", (fail,))])
    with pytest.raises(ZeroDivisionError):
        store.read(names)
    store.close()
    assert place.tables() == set()


def test_components_have_versions_of_their_own(store: Store, place: Place) -> None:
    store.read(names)

    def make_others(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE others (name TEXT)"))

    both = Store(place.database(), [NEW, Component("others", (make_others,))])
    both.read(names)
    both.close()
    assert versions(place) == {"things": 2, "others": 1}


def test_of_many_that_open_a_new_file_one_makes_the_tables(place: Place) -> None:
    together = threading.Barrier(6)
    made = []

    def make(connection: Connection) -> None:
        made.append(threading.get_ident())
        make_things(connection)

    def work(_number: int) -> None:
        store = Store(place.database(), [Component("things", (make, give_sizes))])
        together.wait()
        assert store.read(names) == set()
        store.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert len(made) == 1


def test_the_cost_of_sql_is_paid_on_first_use() -> None:
    program = (
        "import sys; import verbc.support.state_folder, verbc.support.run_record, verbc.support.run_rows; "
        "assert 'sqlalchemy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
