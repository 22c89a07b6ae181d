"""A small table for the tests of stores, in two versions, and what is done with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlalchemy import Column, Connection, Integer, MetaData, Table, Text, insert, select, text

from verbc.support.store import Component

THINGS: Final = Table("things", MetaData(), Column("name", Text, primary_key=True), Column("size", Integer))


def make_things(connection: Connection) -> None:
    connection.execute(text("CREATE TABLE things (name TEXT PRIMARY KEY)"))


def give_sizes(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE things ADD COLUMN size INTEGER"))
    connection.execute(text("UPDATE things SET size = length(name)"))


def fail(connection: Connection) -> None:
    raise ZeroDivisionError


OLD: Final = Component("things", (make_things,))
NEW: Final = Component("things", (make_things, give_sizes))


def add(name: str) -> Callable[[Connection], None]:
    def work(connection: Connection) -> None:
        connection.execute(insert(THINGS), {"name": name, "size": 0})

    return work


def names(connection: Connection) -> set[str]:
    return set(connection.scalars(select(THINGS.c.name)))
