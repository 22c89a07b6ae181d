"""A store in PostgreSQL: how it is reached, what happens when it no longer is, and what is said when it cannot be used."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, exc, text

from tests.postgresql import USER, Server
from verbc.support import postgresql as postgresql_module
from verbc.support.postgresql import Postgresql
from verbc.support.store import Store, StoreError

from .databases import PostgresqlPlace, busy
from .programs import open_files
from .things import NEW, add, names

UNREACHABLE = (
    "The store in PostgreSQL cannot be reached; see that its server runs, and that its address, user and password "
    "are right."
)


@pytest.fixture
def place(postgresql: Server) -> Iterator[PostgresqlPlace]:
    place = PostgresqlPlace(postgresql)
    yield place
    postgresql.drop(place.name)


@pytest.fixture
def store(place: PostgresqlPlace) -> Iterator[Store]:
    with closing(Store(place.database(), [NEW])) as store:
        yield store


@contextmanager
def over(url: str, **changes: Any) -> Iterator[Store]:
    with closing(Store(Postgresql(url), [NEW], **changes)) as store:
        yield store


def told(url: str, **changes: Any) -> str:
    """What a store says that cannot be opened there."""
    with over(url, **changes) as store, pytest.raises(StoreError) as failure:
        store.read(names)
    return str(failure.value)


# How it is reached


def test_nothing_is_asked_of_it_before_it_is_used(place: PostgresqlPlace) -> None:
    before = open_files()
    Store(place.database(), [NEW]).close()
    assert open_files() == before
    assert place.tables() == set()


def test_it_leaves_nothing_open(store: Store, place: PostgresqlPlace) -> None:
    before = open_files()
    store.write("one", add("a"))
    assert len(place.connected()) == 1
    store.close()
    assert open_files() == before


@pytest.mark.parametrize("url", ["mysql://host/name", "postgresql+psycopg://host/name", "host=somewhere", "store.db"])
def test_an_address_of_something_else_is_refused(url: str) -> None:
    assert told(url) == "The address of a store in PostgreSQL begins with postgresql://."


@pytest.mark.parametrize("form", ["postgresql://me:{}%zz@host/name", "postgresql://me:x@host/name?{}=1"])
def test_an_address_that_cannot_be_read_is_told_without_a_word_of_it(form: str) -> None:
    secret = secrets.token_hex()
    said = told(form.format(secret))
    assert said.startswith("The address of the store in PostgreSQL cannot be read; in a password, ")
    assert secret not in said


def test_both_names_of_the_scheme_are_known(place: PostgresqlPlace) -> None:
    with over(place.address.replace("postgresql://", "postgres://")) as store:
        assert store.read(names) == set()


def test_a_wrong_password_lets_nobody_in_and_is_not_told(place: PostgresqlPlace) -> None:
    secret = secrets.token_hex()
    said = told(place.address.replace(place.server.password, secret))
    assert said == UNREACHABLE


def test_a_database_that_is_not_there_is_not_reached(postgresql: Server) -> None:
    assert told(postgresql.url("nowhere")) == UNREACHABLE


def test_it_is_made_once_it_is_there(postgresql: Server) -> None:
    with over(postgresql.url("later")) as store:
        with pytest.raises(StoreError, match="cannot be reached"):
            store.read(names)
        postgresql.order("CREATE DATABASE later")
        store.write("one", add("a"))
        assert store.read(names) == {"a"}
    postgresql.drop("later")


def test_without_its_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert told("postgresql://host/name") == (
        "The store in PostgreSQL needs the package psycopg; install this server with its extra “postgresql”."
    )


def test_its_driver_is_loaded_when_it_is_used() -> None:
    program = (
        "import sys; from verbc.support.postgresql import Postgresql; Postgresql('postgresql://host/name'); "
        "assert 'psycopg' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_connection_waits_and_speaks_as_it_should(place: PostgresqlPlace) -> None:
    def settings(connection: Connection) -> list[Any]:
        shown = ("lock_timeout", "idle_in_transaction_session_timeout", "client_encoding", "transaction_isolation")
        return [connection.execute(text(f"SHOW {name}")).scalar() for name in (*shown, "transaction_read_only")]

    with over(place.address, patience=7) as store:
        common = ["7s", "1min", "UTF8"]
        assert (
            store.read(lambda first: [settings(first), store.read(settings)])
            == [[*common, "repeatable read", "on"]] * 2
        )
        assert store.write("one", settings) == [*common, "read committed", "off"]


def test_what_a_database_has_as_its_default_counts_for_nothing(place: PostgresqlPlace) -> None:
    for setting in ("default_transaction_isolation TO serializable", "default_transaction_read_only TO on"):
        place.by_hand(f"ALTER DATABASE {place.name} SET {setting}")
    with over(place.address) as store:
        store.write("one", add("a"))
        assert store.write("two", lambda c: c.execute(text("SHOW transaction_isolation")).scalar()) == "read committed"


def test_text_is_text_in_every_encoding(postgresql: Server) -> None:
    postgresql.order("CREATE DATABASE plain TEMPLATE template0 ENCODING SQL_ASCII LOCALE_PROVIDER libc LOCALE 'C'")
    with over(postgresql.url("plain")) as store:
        store.write("one", add("ä€"))
        assert store.read(names) == {"ä€"}
    postgresql.drop("plain")


def test_a_database_that_cannot_hold_every_text_is_told(postgresql: Server) -> None:
    postgresql.order("CREATE DATABASE western TEMPLATE template0 ENCODING LATIN1 LOCALE_PROVIDER libc LOCALE 'C'")
    with over(postgresql.url("western")) as store:
        store.write("one", add("ä"))
        with pytest.raises(StoreError, match="PostgreSQL cannot hold every text; it has to have the encoding UTF8"):
            store.write("two", add("漢"))
        assert store.read(names) == {"ä"}
    postgresql.drop("western")


def test_the_address_can_say_otherwise_how_long_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def connect(**parameters: Any) -> None:
        asked.append(parameters)
        raise psycopg.OperationalError

    monkeypatch.setattr(psycopg, "connect", connect)
    for query in ("", "?keepalives_idle=5&connect_timeout=3"):
        assert told(f"postgresql://host/name{query}", patience=7) == UNREACHABLE
    waits = ["connect_timeout", "tcp_user_timeout", "keepalives_idle", "keepalives_interval", "keepalives_count"]
    assert [[str(parameters[name]) for name in waits] for parameters in asked] == [
        ["7", "7000", "30", "10", "3"],
        ["3", "7000", "5", "10", "3"],
    ]


# Connections


def test_there_are_only_so_many_connections(place: PostgresqlPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Postgresql, "most", 2)
    with over(place.address, patience=0.01) as store:

        def third(_connection: Connection) -> None:
            assert len(place.connected()) == 2
            store.read(names)

        store.read(lambda _first: store.read(names))
        with pytest.raises(StoreError, match="PostgreSQL is kept busy by others for too long; try again"):
            store.read(lambda _first: store.read(third))
        assert store.read(lambda _first: store.read(names)) == set()


def test_many_threads_share_the_connections(place: PostgresqlPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Postgresql, "most", 3)
    seen = []

    def work(store: Store, number: int) -> None:
        for turn in range(10):
            store.write("one", add(f"{number} {turn}"))
            assert f"{number} {turn}" in store.read(names)
            if number == 0:  # whoever looks is connected as well
                seen.append(len(place.connected()))

    with over(place.address) as store, ThreadPoolExecutor(12) as pool:
        list(pool.map(partial(work, store), range(12)))
        assert len(store.read(names)) == 120
    assert 0 < max(seen) <= 3


def test_what_was_lost_while_it_lay_idle_is_replaced_without_a_word(store: Store, place: PostgresqlPlace) -> None:
    store.write("one", add("a"))
    store.read(lambda _first: store.read(names))
    assert len(place.connected()) == 2
    place.turn_out()
    assert store.read(names) == {"a"}
    place.turn_out()
    store.write("two", add("b"))
    assert store.read(names) == {"a", "b"}


@pytest.mark.parametrize("writes", [True, False])
def test_what_is_lost_in_the_middle_is_told_and_left_no_trace(
    store: Store, place: PostgresqlPlace, writes: bool
) -> None:
    def work(connection: Connection) -> set[str]:
        if writes:
            add("a")(connection)
        place.turn_out()
        return names(connection)

    with pytest.raises(StoreError) as failure:
        store.write("one", work) if writes else store.read(work)
    assert str(failure.value) == UNREACHABLE
    assert store.read(names) == set()
    store.write("two", add("b"))
    assert store.read(names) == {"b"}


def test_what_is_lost_before_its_commit_left_no_trace(store: Store, place: PostgresqlPlace) -> None:
    def work(connection: Connection) -> None:
        add("a")(connection)
        place.turn_out()

    with pytest.raises(StoreError, match="cannot be reached"):
        store.write("one", work)
    assert store.read(names) == set()


def test_a_server_that_was_away_is_found_again(store: Store, place: PostgresqlPlace) -> None:
    store.write("one", add("a"))
    place.server.stop()
    try:
        for _ in range(2):
            with pytest.raises(StoreError) as failure:
                store.read(names)
            assert str(failure.value) == UNREACHABLE
    finally:
        place.server.start()
    assert store.read(names) == {"a"}


def test_a_database_that_was_exchanged_gets_its_tables(store: Store, place: PostgresqlPlace) -> None:
    store.write("one", add("a"))
    place.server.drop(place.name)
    place.server.order(f"CREATE DATABASE {place.name}")
    assert store.read(names) == set()
    store.write("two", add("b"))
    assert store.read(names) == {"b"}


def test_whoever_stops_in_the_middle_of_a_write_holds_the_others_up_only_for_so_long(
    place: PostgresqlPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_module, "_LONGEST_PAUSE", 100)

    def stop(connection: Connection) -> None:
        add("a")(connection)
        with over(place.address) as other:
            other.write("two", add("b"))

    with over(place.address) as store:
        with pytest.raises(StoreError, match="cannot be reached"):
            store.write("one", stop)
        assert store.read(names) == {"b"}


# When it cannot be used


def test_opening_gives_up_on_tables_that_somebody_makes_for_too_long(place: PostgresqlPlace) -> None:
    with busy(place):
        assert "is kept busy" in told(place.address, patience=0.01)


def test_a_user_who_may_make_no_tables_is_told_so(place: PostgresqlPlace) -> None:
    place.by_hand("CREATE ROLE weak LOGIN PASSWORD 'weak'")
    try:
        url = place.address.replace(f"{USER}:{place.server.password}", "weak:weak")
        assert told(url) == "The store in PostgreSQL does not let its user do this; look at the rights of the user."
    finally:
        place.by_hand("DROP ROLE weak")


def test_a_search_path_that_leads_nowhere_does_not_hold_what_it_should(place: PostgresqlPlace) -> None:
    said = told(f"{place.address}&options=-csearch_path%3Dnowhere")
    assert said == "The store in PostgreSQL does not hold what it should."


def test_tables_of_somebody_else_are_left_as_they_are(place: PostgresqlPlace) -> None:
    place.by_hand("CREATE TABLE things (other INTEGER)")
    assert told(place.address) == "The store in PostgreSQL does not hold what it should."
    assert place.tables() == {"things"}


def test_two_schemas_of_a_database_are_two_stores(place: PostgresqlPlace) -> None:
    place.by_hand("CREATE SCHEMA one", "CREATE SCHEMA two")
    for name in ("one", "two"):
        with over(f"{place.address}&options=-csearch_path%3D{name}") as store:
            store.write("one", add(name))
            assert store.read(names) == {name}
    assert place.tables() == set()


@pytest.mark.parametrize(
    ("code", "text", "lost"),
    [
        ("08006", "cannot be reached", True),
        ("22P05", "has to have the encoding UTF8", False),
        ("25006", "can be read but not written now", False),
        ("25P03", "cannot be reached", True),
        ("40001", "is kept busy", False),
        ("40P01", "is kept busy", False),
        ("42P01", "does not hold what it should", False),
        ("53100", "cannot grow, because the disk is full", False),
        ("53200", "is short of memory", False),
        ("53300", "cannot be reached", True),
        ("57014", "is kept busy", False),
        ("57P01", "cannot be reached", True),
        ("58030", "disk fails or is full", False),
        ("XX001", "is damaged", False),
        (None, "cannot be reached", True),
    ],
)
def test_what_its_errors_mean(code: str | None, text: str, lost: bool) -> None:
    error = psycopg.errors.lookup(code)() if code else psycopg.OperationalError()
    if code and error.sqlstate is None:
        error.sqlstate = code
    for shape in (error, exc.DBAPIError("SELECT 1", {}, error)):
        problem = Postgresql("postgresql://host/name").problem(shape)
        assert problem is not None
        assert text in problem.text
        assert problem.lost is lost


@pytest.mark.parametrize(
    "error",
    [psycopg.errors.UniqueViolation(), psycopg.errors.SyntaxError(), psycopg.DataError(), KeyError(), OSError()],
)
def test_other_errors_are_no_problem_of_the_database(error: Exception) -> None:
    assert Postgresql("postgresql://host/name").problem(error) is None


def test_what_is_no_text_for_it_is_our_mistake(store: Store) -> None:
    with pytest.raises(exc.DataError):
        store.write("one", add("a\0b"))
    assert store.read(names) == set()
