"""A store in a file: how the file is made, replaced and closed, and what is said when it cannot be used."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, delete

from verbc.support.sqlite_file import SqliteFile
from verbc.support.store import Store, StoreError
from verbc.support.wiping import wiped

from .databases import SqlitePlace
from .programs import open_files
from .things import NEW, THINGS, add, fail, names


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with closing(Store(SqliteFile(path), [NEW])) as store:
        yield store


def by_hand(path: Path, *statements: str) -> list[Any]:
    return SqlitePlace(path).by_hand(*statements)


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
    store = Store(SqliteFile(path), [NEW])
    store.write("one", add("a"))
    store.close()
    assert os.listdir(path.parent) == ["store.sqlite"]
    assert open_files() == before


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
            for name in ("busy_timeout", "synchronous", "journal_mode", "secure_delete")
        ]

    store = Store(SqliteFile(path), [NEW], patience=7)
    assert store.read(lambda first: [settings(first), store.read(settings)]) == [[7000, 1, "wal", 1]] * 2
    store.close()


GONE = "what nobody may read any more"


def wipe(connection: Connection) -> None:
    connection.execute(delete(THINGS))
    wiped(connection)


def holders(path: Path) -> set[str]:
    """The files that have the secret in them."""
    return {found.name for found in path.parent.iterdir() if GONE.encode() in found.read_bytes()}


def test_what_was_wiped_is_in_no_file_once_its_traces_are_removed(store: Store, path: Path) -> None:
    store.write("one", add(GONE * 1000))
    store.write("two", add(GONE))
    assert holders(path) == {"store.sqlite-wal"}
    assert not store.has_traces
    store.write("three", wipe)
    assert store.has_traces
    store.remove_traces()
    assert not store.has_traces
    assert holders(path) == set()
    store.write("four", add("a"))
    assert not store.has_traces


def test_a_wipe_that_is_not_committed_leaves_nothing_to_remove(store: Store) -> None:
    store.write("one", add(GONE))

    def work(connection: Connection) -> None:
        wipe(connection)
        fail(connection)

    with pytest.raises(ZeroDivisionError):
        store.write("two", work)
    store.write("three", add("a"))
    assert not store.has_traces


def test_traces_are_removed_at_the_end_though_another_has_the_file_open(path: Path) -> None:
    with closing(Store(SqliteFile(path), [NEW])) as other:
        store = Store(SqliteFile(path), [NEW])
        store.write("one", add(GONE))
        store.write("two", wipe)
        other.read(names)
        store.close()
        assert "store.sqlite-wal" in os.listdir(path.parent)
        assert holders(path) == set()


def test_whoever_reads_holds_the_removal_up_and_is_not_disturbed(store: Store, path: Path) -> None:
    store.write("one", add(GONE))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN")
        assert other.execute("SELECT name FROM things").fetchall() == [(GONE,)]
        store.write("two", wipe)
        store.remove_traces()
        assert store.has_traces
        assert other.execute("SELECT name FROM things").fetchall() == [(GONE,)]
        other.execute("COMMIT")
    store.write("three", add("a"))
    store.remove_traces()
    assert not store.has_traces
    assert holders(path) == set()


def test_after_the_removal_connections_wait_as_they_did(path: Path) -> None:
    with closing(Store(SqliteFile(path), [NEW], patience=7)) as store:
        store.write("one", wipe)
        store.remove_traces()
        store.write("two", add("a"), time.monotonic() - 6)
        found = store.read(lambda connection: connection.exec_driver_sql("PRAGMA busy_timeout").scalar())
    assert found == 7000


def test_opening_gives_up_on_a_file_that_stays_locked(path: Path) -> None:
    impatient = Store(SqliteFile(path), [NEW], patience=0.01)
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
    first = Store(SqliteFile(path), [NEW])
    first.write("one", lambda connection: [add(f"{number:0500}")(connection) for number in range(200)])
    first.close()
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))
    second = Store(SqliteFile(path), [NEW])
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
    store = Store(SqliteFile(tmp_path / "nowhere" / "store.sqlite"), [NEW])
    with pytest.raises(StoreError, match=r"cannot be made: No such file or directory\.$"):
        store.read(names)
    (tmp_path / "nowhere").mkdir()
    assert store.read(names) == set()
    store.close()


def test_a_folder_is_no_file(store: Store, path: Path) -> None:
    path.mkdir()
    with pytest.raises(StoreError, match="cannot be opened for writing"):
        store.read(names)


def move_away(path: Path) -> Path:
    """The new place of the file, with what lies beside it."""
    for found in list(path.parent.iterdir()):
        found.rename(found.with_name(f"moved{found.name}"))
    return path.with_name(f"moved{path.name}")


def open_links() -> list[str]:
    return [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{name}")]
