"""The table of registered MCP servers, and the statements about it, each made once."""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Boolean, Column, Connection, MetaData, Table, Text, bindparam, insert, select, update

from .store import Component

_METADATA = MetaData()
# Times are microseconds since 1970. A row stays when its server is removed, without a manifest, so that the generation
# never falls back. What the spec has offered is known by its digests, the last 50 with blanks between them.
REGISTRATIONS: Final = Table(
    "registrations",
    _METADATA,
    Column("server_id", Text, primary_key=True),
    Column("manifest", Text),
    Column("digest", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("suspended", Boolean, nullable=False),
    Column("origin", Text, nullable=False),
    Column("seed_digests", Text),
    Column("registered_by", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)


def _make_tables(connection: Connection) -> None:
    _METADATA.create_all(connection, checkfirst=False)


# A later version of the table is a further step, and then this one makes the table as it was, from a copy.
COMPONENT: Final = Component("registrations", (_make_tables,))

_SERVER = REGISTRATIONS.c.server_id == bindparam("server")

ADD: Final = insert(REGISTRATIONS)
CHANGE: Final = update(REGISTRATIONS).where(_SERVER)
ONE: Final = select(REGISTRATIONS).where(_SERVER)
STANDING: Final = select(REGISTRATIONS.c.digest, REGISTRATIONS.c.generation, REGISTRATIONS.c.suspended).where(_SERVER)
# Put into order by who reads them: databases sort text in ways of their own.
ALL: Final = select(REGISTRATIONS)
SEEDS: Final = select(REGISTRATIONS.c.server_id, REGISTRATIONS.c.seed_digests)
