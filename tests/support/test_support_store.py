"""The store: its file, its transactions, the versions of its schema, and what it says when it cannot be used."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, Connection, Integer, MetaData, Table, Text, exc, insert, select, text

from verbc.support import store as store_module
from verbc.support.store import Component, Store, StoreError

from .programs import open_files

METADATA = MetaData()
THINGS = Table("things", METADATA, Column("name", Text, primary_key=True), Column("size", Integer))


def make_things(connection: Connection) -> None:
    connection.execute(text("CREATE TABLE things (name TEXT PRIMARY KEY)"))


def give_sizes(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE things ADD COLUMN size INTEGER"))
    connection.execute(text("UPDATE things SET size = length(name)"))


def fail(connection: Connection) -> None:
    raise ZeroDivisionError


OLD = Component("things", (make_things,))
NEW = Component("things", (make_things, give_sizes))


def add(name: str) -> Callable[[Connection], None]:
    def work(connection: Connection) -> None:
        connection.execute(insert(THINGS), {"name": name, "size": 0})

    return work


def names(connection: Connection) -> set[str]:
    return set(connection.scalars(select(THINGS.c.name)))


def versions(path: Path) -> dict[str, int]:
    return dict(by_hand(path, "SELECT component, version FROM schema_versions"))


def by_hand(path: Path, *statements: str) -> list[Any]:
    """What the last statement finds, past the store."""
    connection = sqlite3.connect(path)
    try:
        found = [connection.execute(statement).fetchall() for statement in statements][-1]
        connection.commit()
        return found
    finally:
        connection.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    store = Store(path, [NEW])
    yield store
    store.close()


@pytest.fixture
def impatient(path: Path) -> Iterator[Store]:
    store = Store(path, [NEW], patience=0.01)
    yield store
    store.close()


# The file


def test_nothing_is_opened_before_it_is_used(store: Store, path: Path) -> None:
    assert not path.exists()
    store.close()
    assert not path.exists()


def test_only_its_owner_can_read_it_and_what_lies_beside_it(store: Store, path: Path) -> None:
    before = os.umask(0)
    try:
        store.write("one", add("a"))
    finally:
        os.umask(before)
    modes = {found.name: stat.S_IMODE(found.stat().st_mode) for found in path.parent.iterdir()}
    assert modes == {"store.sqlite": 0o600, "store.sqlite-wal": 0o600, "store.sqlite-shm": 0o600}


def test_a_file_that_was_open_to_others_is_closed_to_them(store: Store, path: Path) -> None:
    path.touch(mode=0o644)
    store.write("one", add("a"))
    assert {stat.S_IMODE(found.stat().st_mode) for found in path.parent.iterdir()} == {0o600}


def test_it_leaves_one_file_and_nothing_open(path: Path) -> None:
    before = open_files()
    store = Store(path, [NEW])
    store.write("one", add("a"))
    store.close()
    assert os.listdir(path.parent) == ["store.sqlite"]
    assert open_files() == before


def test_closed_is_closed(store: Store) -> None:
    store.read(names)
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        store.read(names)
    with pytest.raises(StoreError, match="is closed"):
        store.write("one", add("a"))


def test_a_transaction_under_way_ends_as_if_nothing_was_closed(path: Path) -> None:
    before = open_files()
    store = Store(path, [NEW])

    def work(connection: Connection) -> None:
        store.close()
        add("a")(connection)

    store.write("one", work)
    assert open_files() == before
    assert by_hand(path, "SELECT name FROM things") == [("a",)]


def test_an_empty_file_is_what_a_process_left_that_was_killed_while_it_made_it(store: Store, path: Path) -> None:
    path.touch(mode=0o600)
    store.write("one", add("a"))
    assert store.read(names) == {"a"}


def test_two_that_make_the_same_file_do_not_turn_each_other_away(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    pauses = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        other.execute("COMMIT")

    monkeypatch.setattr(time, "sleep", pause)
    assert store.read(names) == set()
    assert len(pauses) == 1
    other.close()


def test_every_connection_waits_and_writes_as_it_should(path: Path) -> None:
    def settings(connection: Connection) -> list[Any]:
        return [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("busy_timeout", "synchronous", "journal_mode")
        ]

    store = Store(path, [NEW], patience=7)
    assert store.read(lambda first: [settings(first), store.read(settings)]) == [[7000, 1, "wal"]] * 2
    store.close()


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


def test_a_read_stands_as_of_one_moment(store: Store) -> None:
    def work(connection: Connection) -> list[set[str]]:
        first = names(connection)
        other = Store(store._path, [NEW])
        other.write("one", add("a"))
        other.close()
        return [first, names(connection)]

    assert store.read(work) == [set(), set()]
    assert store.read(names) == {"a"}


def test_reading_goes_on_while_somebody_writes(store: Store) -> None:
    def work(connection: Connection) -> set[str]:
        add("a")(connection)
        return store.read(names)

    assert store.write("one", work) == set()


def test_the_fault_hook_hears_of_a_write_around_its_commit(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.read(names)
    heard = []
    monkeypatch.setattr(
        store_module, "fault", lambda point: heard.append((point, by_hand(path, "SELECT name FROM things")))
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


def test_a_write_gives_up_on_another_process_that_holds_it(impatient: Store, path: Path) -> None:
    impatient.read(names)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match=r"store\.sqlite is kept busy by others for too long; try again\.$"):
        impatient.write("one", add("a"))
    assert impatient.read(names) == set()
    other.execute("ROLLBACK")
    impatient.write("one", add("a"))
    other.close()


def test_a_write_gives_up_on_another_thread_that_holds_it(impatient: Store) -> None:
    def work(_connection: Connection) -> None:
        with ThreadPoolExecutor(1) as pool, pytest.raises(StoreError, match="is kept busy"):
            pool.submit(impatient.write, "two", add("b")).result()

    impatient.write("one", work)
    impatient.write("three", add("c"))
    assert impatient.read(names) == {"c"}


def test_opening_gives_up_on_a_file_that_stays_locked(impatient: Store, path: Path) -> None:
    by_hand(path, "CREATE TABLE things (name TEXT PRIMARY KEY)")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match="is kept busy"):
        impatient.read(names)
    other.close()


def test_a_file_that_is_no_database_is_damaged(store: Store, path: Path) -> None:
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match="is damaged; move it away"):
        store.read(names)
    path.unlink()
    assert store.read(names) == set()


def test_a_database_with_a_hole_is_damaged(path: Path) -> None:
    first = Store(path, [NEW])
    first.write("one", lambda connection: [add(f"{number:0500}")(connection) for number in range(200)])
    first.close()
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))
    second = Store(path, [NEW])
    with pytest.raises(StoreError, match="is damaged; move it away"):
        second.read(names)
    second.close()


@pytest.mark.parametrize("code", [sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT_INDEX])
def test_what_turns_out_to_be_damaged_is_opened_again(store: Store, path: Path, code: int) -> None:
    """Whoever mends it, or moves it away, has not to end the server for that."""
    store.write("one", add("a"))
    connections: list[object] = []

    def damaged(connection: Connection) -> None:
        connections.append(connection.connection.dbapi_connection)
        error = sqlite3.DatabaseError("malformed")
        error.sqlite_errorcode = code
        raise error

    with pytest.raises(StoreError, match="is damaged"):
        store.read(damaged)
    store.read(lambda connection: connections.append(connection.connection.dbapi_connection))
    assert connections[0] is not connections[1]
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connections[0].execute("SELECT 1")  # type: ignore[attr-defined]


def test_a_file_that_is_no_longer_at_its_path_is_let_go(store: Store, path: Path) -> None:
    store.write("one", add("a"))
    assert store.read(names) == {"a"}
    moved = move_away(path)
    assert store.read(names) == set()
    store.write("two", add("b"))
    assert by_hand(path, "SELECT name FROM things") == [("b",)]
    assert by_hand(moved, "SELECT name FROM things") == [("a",)]
    assert not [link for link in map(os.readlink, open_links()) if "moved" in link]


def test_a_transaction_goes_on_in_the_file_that_was_moved_away(store: Store, path: Path) -> None:
    def work(connection: Connection) -> set[str]:
        add("a")(connection)
        move_away(path)
        store.write("two", add("b"))
        return names(connection)

    store._writing = threading.RLock()  # type: ignore[assignment]
    assert store.write("one", work) == {"a"}
    assert store.read(names) == {"b"}
    assert not [link for link in map(os.readlink, open_links()) if "moved" in link]


def test_a_folder_that_was_removed_is_told(store: Store, path: Path) -> None:
    store.write("one", add("a"))
    path.parent.rename(path.parent.with_name("moved"))
    with pytest.raises(StoreError, match="cannot be made"):
        store.read(names)


def move_away(path: Path) -> Path:
    """The new place of the file, with what lies beside it."""
    for found in list(path.parent.iterdir()):
        found.rename(found.with_name(f"moved{found.name}"))
    return path.with_name(f"moved{path.name}")


def open_links() -> list[str]:
    return [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{name}")]


def test_a_database_without_its_tables_is_not_ours(store: Store, path: Path) -> None:
    store.read(names)
    by_hand(path, "DROP TABLE things")
    with pytest.raises(StoreError, match="does not hold what it should"):
        store.read(names)


def test_what_is_on_record_stays_readable_when_the_disk_is_full(store: Store) -> None:
    def work(connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA max_page_count = 10")
        for number in range(1000):
            add(f"{number:01000}")(connection)

    store.write("one", add("a"))
    with pytest.raises(StoreError, match="cannot grow, because the disk is full"):
        store.write("two", work)
    assert store.read(names) == {"a"}


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    store = Store(tmp_path / "nowhere" / "store.sqlite", [NEW])
    with pytest.raises(StoreError, match=r"cannot be made: No such file or directory\.$"):
        store.read(names)
    (tmp_path / "nowhere").mkdir()
    assert store.read(names) == set()
    store.close()


def test_a_folder_is_no_file(store: Store, path: Path) -> None:
    path.mkdir()
    with pytest.raises(StoreError, match="cannot be opened for writing"):
        store.read(names)


# Versions of the schema


def test_an_older_version_is_brought_forward(store: Store, path: Path) -> None:
    by_hand(
        path,
        "CREATE TABLE schema_versions (component TEXT PRIMARY KEY, version INTEGER NOT NULL)",
        "INSERT INTO schema_versions VALUES ('things', 1), ('others', 5)",
        "CREATE TABLE things (name TEXT PRIMARY KEY)",
        "INSERT INTO things VALUES ('one'), ('three')",
    )
    rows = store.read(lambda connection: [tuple(row) for row in connection.execute(select(THINGS))])
    assert sorted(rows) == [("one", 3), ("three", 5)]
    assert versions(path) == {"things": 2, "others": 5}


def test_a_current_version_is_left_as_it_is(store: Store, path: Path) -> None:
    store.write("one", add("a"))
    again = Store(path, [Component("things", (fail, fail))])
    assert again.read(names) == {"a"}
    again.close()


def test_a_current_version_is_opened_while_somebody_writes(store: Store, path: Path) -> None:
    def work(_connection: Connection) -> set[str]:
        other = Store(path, [NEW], patience=0.01)
        found = other.read(names)
        other.close()
        return found

    assert store.write("one", work) == set()


def test_a_newer_version_is_refused_and_stays_as_it_is(path: Path) -> None:
    newer = Store(path, [NEW])
    newer.write("one", add("a"))
    newer.close()
    before = by_hand(path, "SELECT sql FROM sqlite_schema")
    older = Store(path, [Component("first", (fail,)), OLD])
    with pytest.raises(StoreError) as failure:
        older.read(names)
    assert str(failure.value) == (
        f"The store {path} was written by a newer version of this server. "
        "Run that version, or choose another state folder."
    )
    older.close()
    assert by_hand(path, "SELECT sql FROM sqlite_schema") == before


def test_a_migration_that_fails_leaves_everything_as_it_was(path: Path) -> None:
    store = Store(path, [NEW, Component("more", (fail,))])
    with pytest.raises(ZeroDivisionError):
        store.read(names)
    store.close()
    assert by_hand(path, "SELECT name FROM sqlite_schema") == []


def test_components_have_versions_of_their_own(store: Store, path: Path) -> None:
    store.read(names)

    def make_others(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE others (name TEXT)"))

    both = Store(path, [NEW, Component("others", (make_others,))])
    both.read(names)
    both.close()
    assert versions(path) == {"things": 2, "others": 1}


def test_of_many_that_open_a_new_file_one_makes_the_tables(path: Path) -> None:
    together = threading.Barrier(6)
    made = []

    def make(connection: Connection) -> None:
        made.append(threading.get_ident())
        make_things(connection)

    def work(_number: int) -> None:
        store = Store(path, [Component("things", (make, give_sizes))])
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
